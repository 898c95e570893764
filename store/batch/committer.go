package batch

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/fencepost/fencepost/lock"
)

// Limits of a [Committer].
type Limits struct {
	// Ops and Bytes bound a batch. A write that is larger goes alone.
	Ops, Bytes int

	// InFlight bounds the batches that are under way at once: what arrives meanwhile
	// gathers for the next, which spends less on each write. While writes are pending that
	// cannot share a batch, as those that join one lock, the bound is Most.
	InFlight, Most int

	// Linger is for how long a write that lingers is held back at most.
	Linger time.Duration

	// Inline has a batch sent by the goroutine of one of its writes, which saves a lone
	// write a switch of goroutines. A batch that is not full waits for the one under way,
	// which saves the store batches. It is for a store whose calls always end soon.
	Inline bool

	// Pending bounds the writes that are not sent yet.
	Pending Backlog
}

// MostPending bounds how long a write stays pending after it is due, while others are written.
const MostPending = 22500 * time.Millisecond

// A store that wrote no batch for silence counts as lost for the writes that are pending and due,
// which is checked every lookAfter. A write that was sent late gets silence for its outcome.
const (
	silence   = 2 * time.Second
	lookAfter = 250 * time.Millisecond
)

// Committer puts writes that arrive while others are in flight into the next batch.
type Committer[P, O any] struct {
	limits Limits
	send   func(writes []*Write[P, O]) (again [][]*Write[P, O])
	ready  func() bool

	// Sending is called with the spans of the sampled requests of a batch, before it is sent;
	// sent is called after it. It may be nil, and is set before the first call.
	Sending func(requests []trace.SpanContext) (sent func())

	mu      sync.Mutex
	pending *pending[P, O]
	wrote   time.Time // when a batch was written last
	running int       // workers, each with at most one batch in flight
	linger  *time.Timer
	armed   bool      // linger runs
	due     time.Time // when the first of the writes that linger has done so for long enough
	closed  bool
	workers sync.WaitGroup
}

// NewCommitter returns a committer. send writes a batch, settles its writes, and returns those
// that did not run and need sending again, as batches of their own that go before all
// others; writes whose callers stopped waiting are left out then. Before a batch is chosen, await
// may wait until the store can be reached, so that writes can be withdrawn until then; it returns
// soon if it cannot. It may be nil.
func NewCommitter[P, O any](
	limits Limits, send func([]*Write[P, O]) [][]*Write[P, O], await func() bool,
) *Committer[P, O] {
	limits.Pending = limits.Pending.orDefault()
	return &Committer[P, O]{
		limits: limits, send: send, ready: await, pending: newPending[P, O](limits),
	}
}

// Do has w sent and returns the outcome that the send function settled. If w was not sent the
// error is [ErrNotSent], or [lock.Overloaded] if too many writes are pending. If ctx ends first,
// or w is due, and w was sent, it is [ErrUnknown].
func (c *Committer[P, O]) Do(ctx context.Context, w *Write[P, O]) (O, error) {
	var none O
	if ctx.Err() != nil {
		return none, ErrNotSent
	}
	w.done = make(chan struct{})
	if c.Sending != nil {
		w.request = trace.SpanContextFromContext(ctx)
	}
	lead, err := c.enter(w)
	if err != nil {
		return none, err
	}
	if lead {
		c.lead()
	}
	why := c.await(ctx, w)
	switch {
	case why == nil:
		return w.out, w.err
	case errors.Is(why, ErrNotSent), errors.Is(why, lock.Overloaded):
		return none, why
	case c.withdraw(w):
		return none, ErrNotSent
	}
	w.abandoned.Store(true)
	if w.settled() {
		return w.out, w.err
	}
	return none, errors.Join(ErrUnknown, why)
}

// await waits until w is settled, or returns why it stopped waiting.
func (c *Committer[P, O]) await(ctx context.Context, w *Write[P, O]) error {
	var due <-chan time.Time
	if !w.Due.IsZero() {
		t := time.NewTimer(time.Until(w.Due))
		defer t.Stop()
		due = t.C
	}
	for {
		select {
		case <-w.done:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case now := <-due:
			more, err := c.overdue(w, now)
			if err != nil {
				return err
			}
			due = time.After(more)
		}
	}
}

// overdue returns for how much longer Do waits for a write that is due, or why it stops. A write
// that is pending is withdrawn then.
func (c *Committer[P, O]) overdue(w *Write[P, O], now time.Time) (time.Duration, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	lost, late := now.Sub(c.wrote) >= silence, now.Sub(w.Due) >= MostPending
	switch {
	case !w.state.in && w.waited > 0 && now.Before(w.taken.Add(silence)):
		return w.taken.Add(silence).Sub(now), nil
	case !w.state.in:
		return 0, context.DeadlineExceeded
	case !lost && !late:
		return lookAfter, nil
	}
	c.pending.withdraw(w)
	if lost {
		return 0, ErrNotSent
	}
	return 0, overloaded()
}

// Reserve counts w as pending until release is called: for a write that has to wait for something
// else first, and is not to be rejected after that. It returns [lock.Overloaded] as Do does.
func (c *Committer[P, O]) Reserve(w *Write[P, O]) (release func(), err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.pending.reject(w); err != nil {
		return nil, err
	}
	c.pending.reserve(w, 1, w.Bytes)
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.pending.reserve(w, -1, -w.Bytes)
	}, nil
}

// Close settles what is pending with [ErrNotSent], and waits for what is in flight.
func (c *Committer[P, O]) Close() {
	c.Stop()
	c.workers.Wait()
}

// Stop is Close without the wait, for a store that can end what is in flight only then.
func (c *Committer[P, O]) Stop() {
	c.mu.Lock()
	c.closed = true
	left := c.pending.drain()
	if c.linger != nil {
		c.linger.Stop()
	}
	c.mu.Unlock()
	for _, w := range left {
		w.notSent()
	}
}

// Pending returns the number and bytes of the writes that wait to be sent.
func (c *Committer[P, O]) Pending() Size {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pending.all
}

// enter adds a write to the pending ones. lead says that the caller is to send a batch.
func (c *Committer[P, O]) enter(w *Write[P, O]) (lead bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false, ErrNotSent
	}
	if err := c.pending.reject(w); err != nil {
		return false, err
	}
	w.arrived = time.Now()
	c.pending.add(w)
	if w.Lingers {
		c.arm(w.arrived)
	}
	if !c.limits.Inline {
		c.start()
		return false, nil
	}
	return c.reserve(), nil
}

// withdraw takes back a write that is in no batch yet.
func (c *Committer[P, O]) withdraw(w *Write[P, O]) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pending.withdraw(w)
}

// arm starts the timer that ends the patience of writes that linger. The caller holds mu.
func (c *Committer[P, O]) arm(now time.Time) {
	if c.pending.lingering == 1 {
		c.due = now.Add(c.limits.Linger)
	}
	switch {
	case c.armed:
		return
	case c.linger == nil:
		c.linger = time.AfterFunc(c.limits.Linger, c.hurry)
	default:
		c.linger.Reset(c.limits.Linger)
	}
	c.armed = true
}

// hurry makes all that is pending urgent, unless what lingers came after the timer was started.
func (c *Committer[P, O]) hurry() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.armed = false
	if c.pending.lingering == 0 {
		return
	}
	if early := time.Until(c.due); early > 0 {
		c.linger.Reset(early)
		c.armed = true
		return
	}
	c.pending.hurry()
	c.start()
}
