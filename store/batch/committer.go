package batch

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/fencepost/fencepost/lock"
)

// Limits of a [Committer]. Those of what is pending have defaults.
type Limits struct {
	// Ops and Bytes bound a batch. A write that is larger goes alone.
	Ops, Bytes int

	// InFlight batches are under way at once as a rule: what comes meanwhile gathers
	// for the next, which spends less on each write. Up to Most are while writes are
	// pending that cannot share a batch, as those that join one lock; fewer while the
	// store is slow.
	InFlight, Most int

	// Linger is how long a patient write is held back at most.
	Linger time.Duration

	// Inline has a batch sent by the goroutine of one of its writes, which saves a lone
	// write the way through another. It is for a store whose calls always end soon.
	Inline bool

	// Pending bounds the writes that are not sent yet.
	Pending Backlog
}

// Committer puts writes that arrive while others are in flight into the next batch
// (group commit). What a batch is, the send function knows.
//
// A batch is chosen in constant time for each write in it: the writes that wait for a
// key form a chain in the order of their arrival, and a write is ready when it is the
// first of all its chains. So a long chain of joins of one lock holds up nothing else.
type Committer[P, O any] struct {
	limits Limits
	send   func(batch []*Write[P, O]) (again [][]*Write[P, O])
	ready  func() bool

	// Sending is [Observer.Sending], or nil. It is set before the first call.
	Sending func(requests []trace.SpanContext) (sent func())

	mu      sync.Mutex
	pending *pending[P, O]
	pace    pace
	wrote   time.Time // when a batch was written last
	running int       // workers, each with at most one batch in flight
	linger  *time.Timer
	closed  bool
	workers sync.WaitGroup
}

// NewCommitter returns a committer. send writes a batch, settles its writes, and hands
// back those that were not executed and are to be sent again, as batches of their own
// that go before all others; those whose callers have given up are left out then.
// Before a batch is chosen, await may wait until the store can be reached, so that
// writes can be withdrawn until then; it returns soon if it cannot. It may be nil.
func NewCommitter[P, O any](limits Limits, send func([]*Write[P, O]) [][]*Write[P, O], await func() bool) *Committer[P, O] {
	limits.Pending = limits.Pending.orDefault()
	return &Committer[P, O]{
		limits: limits, send: send, ready: await, pending: newPending[P, O](limits), pace: pace{window: float64(limits.Most)},
	}
}

// Do has w sent and waits for what became of it, as the send function settled it. If w
// was not sent the error is [ErrNotSent], or [lock.Overloaded] if it could not be in
// time: at once, unless the store has become slower than it was. If ctx ends first, or w
// is due, and w was sent, it is [ErrUnknown].
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

// await waits until w is settled, or returns why it is waited for no more.
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

// silence is how long it may be since the last batch was written until the store counts
// as lost for those who are pending, and lookAfter how often that is looked at. A write
// that had to wait for others is waited for that long when its turn has come.
const (
	silence   = 2 * time.Second
	lookAfter = 250 * time.Millisecond
)

// overdue returns for how much longer a write that is due is waited for, or why not. It
// is withdrawn if it is pending then.
func (c *Committer[P, O]) overdue(w *Write[P, O], now time.Time) (time.Duration, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	lost, late := now.Sub(c.wrote) >= silence, now.Sub(w.arrived) >= c.limits.Pending.longest()
	switch {
	case !w.pending.in && w.waited > 0 && now.Before(w.taken.Add(silence)):
		return w.taken.Add(silence).Sub(now), nil
	case !w.pending.in:
		return 0, context.DeadlineExceeded
	case !lost && !late:
		return lookAfter, nil
	}
	c.pending.withdraw(w)
	if lost {
		return 0, ErrNotSent
	}
	return 0, overloaded(silence)
}

// Reserve decides whether w can be written in time, as Do does, and counts it as pending
// until release is called: for a write that has to wait for something else first, and is
// not to be refused after that.
func (c *Committer[P, O]) Reserve(w *Write[P, O]) (release func(), err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.pending.refuse(w, &c.pace, time.Now()); err != nil {
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

// enter adds a write to what is pending. lead says that the caller is to send a batch.
func (c *Committer[P, O]) enter(w *Write[P, O]) (lead bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false, ErrNotSent
	}
	if err := c.pending.refuse(w, &c.pace, time.Now()); err != nil {
		return false, err
	}
	w.arrived = time.Now()
	c.pending.add(w, w.arrived)
	if w.Lingers {
		c.arm()
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

// arm sees to it that writes which are held back are so for no longer than they may.
// The caller holds mu.
func (c *Committer[P, O]) arm() {
	due, any := c.pending.nextDue()
	switch {
	case !any || c.closed || c.pending.armed:
		return
	case c.linger == nil:
		c.linger = time.AfterFunc(time.Until(due), c.hurry)
	default:
		c.linger.Reset(time.Until(due))
	}
	c.pending.armed = true
}

// hurry ends the patience of the writes that were held back for long enough.
func (c *Committer[P, O]) hurry() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pending.armed = false
	c.pending.hurry(time.Now().Add(c.limits.Linger / 2)) // soon due is due: the timer is not to run for each
	c.start()
	c.arm()
}

// allowed is how many workers there may be. The caller holds mu.
func (c *Committer[P, O]) allowed() int {
	if c.pending.blocked > 0 {
		return int(c.pace.window)
	}
	return min(c.limits.InFlight, int(c.pace.window))
}

// reserve lets one more worker be if there is something for it to do. The caller holds
// mu.
func (c *Committer[P, O]) reserve() bool {
	if c.closed || c.pending.urgent == 0 || c.running >= c.allowed() {
		return false
	}
	c.running++
	c.workers.Add(1)
	return true
}

func (c *Committer[P, O]) start() {
	if c.reserve() {
		go c.work()
	}
}

// lead sends one batch in the goroutine of one of its writes. What came meanwhile is
// not that write's to wait for.
func (c *Committer[P, O]) lead() {
	c.round()
	if c.proceed() {
		go c.work()
	}
}

// work sends batch after batch for as long as there is something to send.
func (c *Committer[P, O]) work() {
	for c.round(); c.proceed(); {
		c.round()
	}
}

// proceed lets a worker go on, or go.
func (c *Committer[P, O]) proceed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed && c.pending.urgent > 0 && c.running <= c.allowed() {
		return true
	}
	c.running--
	c.workers.Done()
	return false
}

// round sends one batch.
func (c *Committer[P, O]) round() {
	if c.ready != nil && !c.ready() {
		return
	}
	c.mu.Lock()
	var batch []*Write[P, O]
	if c.pending.urgent > 0 {
		batch = c.take()
		c.start() // what could not share this batch
	}
	running := c.running
	c.mu.Unlock()
	for parts := [][]*Write[P, O]{batch}; len(parts) > 0; {
		part := c.wanted(parts[0])
		parts = parts[1:]
		if len(part) > 0 {
			parts = append(c.commit(part, running), parts...)
		}
	}
}

// take takes the next batch. The caller holds mu.
func (c *Committer[P, O]) take() []*Write[P, O] {
	batch, now := c.pending.take(), time.Now()
	for _, w := range batch {
		w.taken, w.waited = now, max(0, c.wrote.Sub(w.arrived))
	}
	return batch
}

// wanted leaves out the writes of a batch that are not to be sent any more.
func (c *Committer[P, O]) wanted(batch []*Write[P, O]) []*Write[P, O] {
	c.mu.Lock()
	closed := c.closed
	c.mu.Unlock()
	wanted := batch[:0:0]
	for _, w := range batch {
		if w.retried = false; closed || w.Abandoned() {
			w.notSent()
			continue
		}
		wanted = append(wanted, w)
	}
	return wanted
}

// errForgotten is a bug of a send function. The write may have been executed.
var errForgotten = errors.New("bug: the outcome of a write was not told")

// sending tells which requests share a batch.
func (c *Committer[P, O]) sending(batch []*Write[P, O]) (sent func()) {
	var requests []trace.SpanContext
	for _, w := range batch {
		if w.request.IsSampled() {
			requests = append(requests, w.request)
		}
	}
	if len(requests) == 0 {
		return func() {}
	}
	return c.Sending(requests)
}

// commit sends a batch, and returns what is to be sent again.
func (c *Committer[P, O]) commit(batch []*Write[P, O], running int) (again [][]*Write[P, O]) {
	began := time.Now()
	sent := c.sending(batch)
	again = c.send(batch)
	sent()
	took := time.Since(began)
	for _, part := range again {
		for _, w := range part {
			w.retried = true
		}
	}
	var none O
	worked := false
	for _, w := range batch {
		if !w.retried && !w.settled() {
			w.Settle(none, errForgotten)
		}
		worked = worked || !w.retried && w.err == nil
	}
	c.mu.Lock()
	if worked {
		c.wrote = began.Add(took)
	}
	c.pace.saw(sample{
		at: began.Add(took), took: took, parallel: max(running, min(c.limits.InFlight, fewest)), worked: worked, chained: c.pending.blocked > 0,
	}, c.limits.Most)
	c.mu.Unlock()
	return again
}

// Pending is how many writes wait to be sent.
func (c *Committer[P, O]) Pending() Size {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pending.all
}
