package memory

import (
	"context"
	"errors"
	"sync"

	"github.com/fencepost/fencepost/lock"
)

// Cut is a way in which a [Cable] fails.
type Cut string

// The ways to cut a cable.
const (
	// nothing gets through, without an error; requests arrive when the cable is repaired
	Silent Cut = "silent"
	Deaf   Cut = "deaf"   // requests get through, answers do not
	Broken Cut = "broken" // both ends know that nothing gets through
)

// Cable is a wire that takes no time and can be cut.
type Cable struct {
	mu      sync.Mutex
	cut     Cut
	held    []func() error // requests on a silent cable
	changed chan struct{}  // closed and replaced when cut changes
	broken  chan struct{}  // the same, when the cable breaks
}

// NewCable returns a working cable.
func NewCable() *Cable {
	return &Cable{changed: make(chan struct{}), broken: make(chan struct{})}
}

// Cut cuts the cable; "" repairs it. A repair first delivers the held requests; any other change
// drops them.
func (c *Cable) Cut(how Cut) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for how == "" && len(c.held) > 0 {
		held := c.held
		c.held = nil
		c.mu.Unlock() // a write may wait for others
		for _, do := range held {
			_ = do() // no caller waits for its answer
		}
		c.mu.Lock()
	}
	if how == Broken {
		close(c.broken)
		c.broken = make(chan struct{})
	}
	c.cut, c.held = how, nil
	close(c.changed)
	c.changed = make(chan struct{})
}

// hold keeps a request, if the cable is still silent.
func (c *Cable) hold(do func() error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cut == Silent {
		c.held = append(c.held, do)
	}
}

func (c *Cable) state() (Cut, <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cut, c.changed
}

// Call implements [Wire].
func (c *Cable) Call(ctx context.Context, _ Operation, _ lock.ID, do func() error) error {
	breaks := c.breaks()
	switch cut, _ := c.state(); cut {
	case "":
		return do()
	case Broken:
		return ErrUnsent
	case Deaf:
		_ = do() // its outcome stays unknown
	case Silent:
		c.hold(do)
	}
	select {
	case <-breaks:
	case <-ctx.Done():
	}
	return ErrUnknown
}

// breaks is closed when the cable breaks next.
func (c *Cable) breaks() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.broken
}

// Listen implements [Wire].
func (c *Cable) Listen(ctx context.Context) (context.Context, context.CancelFunc) {
	for {
		cut, changed := c.state()
		if cut != "" {
			select {
			case <-changed:
				continue
			case <-ctx.Done():
			}
		}
		listening, end := context.WithCancelCause(ctx)
		watch := make(chan struct{})
		go func() {
			defer close(watch)
			select {
			case <-changed:
				end(errors.New("the cable was cut"))
			case <-listening.Done():
			}
		}()
		return listening, func() {
			end(nil)
			<-watch
		}
	}
}

// Tell implements [Wire].
func (c *Cable) Tell(ctx context.Context, _ Run) error { return context.Cause(ctx) }
