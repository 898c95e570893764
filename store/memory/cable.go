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
	Silent Cut = "silent" // nothing gets through, and nobody says so
	Deaf   Cut = "deaf"   // requests get through, answers do not
	Broken Cut = "broken" // both ends know that nothing gets through
)

// Cable is a wire that takes no time and can be cut.
type Cable struct {
	mu      sync.Mutex
	cut     Cut
	changed chan struct{} // closed and replaced when cut changes
}

// NewCable returns a cable that is whole.
func NewCable() *Cable { return &Cable{changed: make(chan struct{})} }

// Cut cuts the cable; "" mends it.
func (c *Cable) Cut(how Cut) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cut = how
	close(c.changed)
	c.changed = make(chan struct{})
}

func (c *Cable) state() (Cut, <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cut, c.changed
}

// Call implements [Wire].
func (c *Cable) Call(ctx context.Context, _ Operation, _ lock.ID, do func() error) error {
	switch cut, _ := c.state(); cut {
	case "":
		return do()
	case Broken:
		return ErrUnsent
	case Deaf:
		_ = do() // nobody learns what came of it
	}
	<-ctx.Done()
	return ErrUnknown
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
