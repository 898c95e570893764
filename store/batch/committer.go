package batch

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/fencepost/fencepost/lock"
)

// Limits configure a [Committer].
type Limits struct {
	// Ops and Bytes bound a batch. A larger write forms its own batch.
	Ops, Bytes int

	// InFlight bounds the concurrent batches. Writes that arrive meanwhile gather for the next
	// batch, which lowers the cost of each. While there are pending writes that cannot share a
	// batch, such as joins of one lock, the bound is Most, or InFlight full batches: many small
	// ones, because each write waits for the batches before its own.
	InFlight, Most int

	// Linger bounds how long a lingering write is delayed.
	Linger time.Duration

	// Inline makes the goroutine of one of its writes send a batch, which saves a lone write a
	// switch of goroutines. InFlight is then 1, which saves the store batches, and their writes the
	// wait for each other. It suits a store whose calls always end soon.
	Inline bool

	// Pending bounds the unsent writes.
	Pending Backlog
}

// MostPending bounds how long a write stays pending after it is due, while other writes proceed.
const MostPending = 22500 * time.Millisecond

// If the store has written no batch for silence, pending writes that are due fail; each checks
// that every lookAfter. A write that was sent late gets silence for its outcome.
const (
	silence   = 2 * time.Second
	lookAfter = 250 * time.Millisecond
)

// Committer gathers the writes that arrive during a batch into the next one.
type Committer[P, O any] struct {
	limits Limits
	send   func(writes []*Write[P, O]) (again [][]*Write[P, O])
	ready  func() bool

	// Sending, if not nil, is called with the spans of a batch's sampled requests before the batch
	// is sent; sent is called after it. Set it before the first call.
	Sending func(requests []trace.SpanContext) (sent func())

	mu      sync.Mutex
	pending *pending[P, O]
	wrote   time.Time // the last successful batch
	running int       // workers, each with at most one batch in flight

	underWay int // operations in flight
	linger   *time.Timer
	armed    bool      // the linger timer runs
	due      time.Time // when the first lingering write becomes urgent
	closed   bool
	workers  sync.WaitGroup
}

// NewCommitter returns a committer. send writes a batch and settles its writes. It returns those
// that did not run and must be sent again, as batches of their own, before all others. The
// committer then leaves out writes whose callers have stopped waiting.
//
// Before a batch is chosen, await may wait until the store is reachable, so that writes can still
// be withdrawn. It returns soon if the store is not reachable. It may be nil.
func NewCommitter[P, O any](
	limits Limits, send func([]*Write[P, O]) [][]*Write[P, O], await func() bool,
) *Committer[P, O] {
	limits.Pending = limits.Pending.orDefault()
	return &Committer[P, O]{
		limits: limits, send: send, ready: await, pending: newPending[P, O](limits),
	}
}

// Do queues w, waits, and returns the outcome that the send function settled. If w was not sent,
// the error is [ErrNotSent], or [lock.Overloaded] if too many writes are pending. If w was sent
// and ctx ends or w is due first, it is [ErrUnknown].
func (c *Committer[P, O]) Do(ctx context.Context, w *Write[P, O]) (O, error) {
	var none O
	if ctx.Err() != nil || w.gone() {
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
	gone := w.Gone
	for {
		select {
		case <-w.done:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-gone:
			if c.withdraw(w) {
				return ErrNotSent
			}
			gone = nil
		case now := <-due:
			more, err := c.overdue(w, now)
			if err != nil {
				return err
			}
			due = time.After(more)
		}
	}
}

// overdue returns how much longer Do waits for a write that is due, or why it stops. It withdraws
// a write that is still pending.
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

// Reserve counts w as pending until release is called. It serves a write that first has to wait
// for something else and must not be rejected afterwards. It returns [lock.Overloaded] as Do
// does.
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

// Close settles the pending writes with [ErrNotSent], and waits for those in flight.
func (c *Committer[P, O]) Close() {
	c.Stop()
	c.workers.Wait()
}

// Stop is Close without the wait, for a store that must end the writes in flight first.
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

// Pending returns the number and bytes of the unsent writes.
func (c *Committer[P, O]) Pending() Size {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pending.all
}

// enter adds a pending write. lead reports that the caller must send a batch.
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

// withdraw removes a write that is in no batch yet.
func (c *Committer[P, O]) withdraw(w *Write[P, O]) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pending.withdraw(w)
}

// arm starts the timer after which lingering writes are urgent. The caller holds mu.
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

// hurry makes all pending writes urgent, unless the lingering ones came after the timer started.
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
