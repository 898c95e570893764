package service_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/store/memory"
)

var _ store.Store = (*client)(nil)

// callLimit bounds the client's unanswered calls, as in the etcd adapter.
const callLimit = 4 * time.Second

// The methods of a store, as faults and counts name them.
const (
	enqueue   = "Enqueue"
	remove    = "Remove"
	narrow    = "Narrow"
	refresh   = "Renew"
	remaining = "Remaining"
	queue     = "Queue"
	newest    = "Newest"
	distrust  = "Distrust"
)

var allMethods = []string{enqueue, remove, refresh, remaining, queue, newest, distrust}

// client is one replica's way to a shelf. Each method and the feed can be made
// to misbehave.
type client struct {
	inner *memory.Client // over a wire that always works, but for its feed

	mu      sync.Mutex
	faults  map[string]fault
	calls   []call
	feed    feed
	lag     time.Duration // between what happens and when the feed tells it
	changed chan struct{} // closed and replaced when feed or lag change
}

// fault answers a call; do carries it out.
type fault func(ctx context.Context, do func() error) error

type call struct {
	method string
	id     lock.ID
	at     time.Time
}

// feed is how the feed does.
type feed int

const (
	running feed = iota
	frozen       // it looks alive and tells nothing
	lost         // it said that it is interrupted
	// it goes on where it was, and is yet to tell what happened since; then it runs by beginning again
	retelling
)

func newClient(s *sharedStore) *client {
	c := &client{faults: map[string]fault{}, changed: make(chan struct{})}
	c.inner = s.Connect((*wire)(c))
	s.t.Cleanup(c.inner.Close)
	return c
}

// on sets the fault of methods; nil repairs them.
func (c *client) on(f fault, methods ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range methods {
		c.faults[m] = f
	}
}

func (c *client) setFeed(f feed) { c.setLag(f, 0) }

func (c *client) setLag(f feed, lag time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.feed, c.lag = f, lag
	close(c.changed)
	c.changed = make(chan struct{})
}

func (c *client) feedNow() (feed, time.Duration, <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.feed, c.lag, c.changed
}

// count returns how often a method was called.
func (c *client) count(method string) int { return len(c.times(method, "")) }

// counts returns how often each method was called.
func (c *client) counts() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := map[string]int{}
	for _, call := range c.calls {
		n[call.method]++
	}
	return n
}

// times returns when a method was called for the entry; "" is any.
func (c *client) times(method string, id lock.ID) []time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	var at []time.Time
	for _, call := range c.calls {
		if call.method == method && (id == "" || call.id == id) {
			at = append(at, call.at)
		}
	}
	return at
}

func (c *client) note(method string, id lock.ID) fault {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls = append(c.calls, call{method, id, time.Now()})
	return c.faults[method]
}

func (c *client) call(ctx context.Context, method string, id lock.ID, do func() error) error {
	f := c.note(method, id)
	switch {
	case ctx.Err() != nil:
		return unavailable(false)
	case f != nil:
		return f(ctx, do)
	}
	return do()
}

// silent never answers and does nothing.
func silent(ctx context.Context, _ func() error) error {
	pause(ctx, callLimit)
	return unavailable(false)
}

// broken fails at once and does nothing.
func broken(context.Context, func() error) error { return unavailable(false) }

// deaf does it, and the answer is lost.
func deaf(_ context.Context, do func() error) error {
	_ = do() // its outcome stays unknown
	return unavailable(true)
}

// slow does it after d, unless the caller has given up by then.
func slow(d time.Duration) fault {
	return func(ctx context.Context, do func() error) error {
		if pause(ctx, d); ctx.Err() != nil {
			return unavailable(false)
		}
		return do()
	}
}

// late does it at once and answers after d, unless the caller has given up by
// then.
func late(d time.Duration) fault {
	return func(ctx context.Context, do func() error) error {
		err := do()
		if pause(ctx, d); ctx.Err() != nil {
			return unavailable(true)
		}
		return err
	}
}

// first applies f to the first n calls.
func first(n int64, f fault) fault {
	var calls atomic.Int64
	return func(ctx context.Context, do func() error) error {
		if calls.Add(1) <= n {
			return f(ctx, do)
		}
		return do()
	}
}

// unavailable is the answer of a store that cannot be asked.
func unavailable(ambiguous bool) error {
	return &lock.Error{
		Code: lock.StoreUnavailable, OutcomeUnknown: ambiguous, RetryAfter: time.Second,
		Cause: errors.New("cut off"),
	}
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

func (c *client) Enqueue(
	ctx context.Context, e *lock.Entry,
) (placed *lock.Entry, written bool, err error) {
	err = c.call(ctx, enqueue, e.ID, func() (err error) {
		placed, written, err = c.inner.Enqueue(ctx, e)
		return err
	})
	if err != nil {
		return nil, false, err
	}
	return placed, written, nil
}

func (c *client) Remove(
	ctx context.Context, e *lock.Entry, why lock.Reason, while ...*lock.Entry,
) error {
	return c.call(ctx, remove, e.ID, func() error { return c.inner.Remove(ctx, e, why, while...) })
}

func (c *client) Narrow(
	ctx context.Context, e *lock.Entry, kept []lock.Claim,
) (now *lock.Entry, err error) {
	err = c.call(ctx, narrow, e.ID, func() (err error) {
		now, err = c.inner.Narrow(ctx, e, kept)
		return err
	})
	if err != nil {
		return nil, err
	}
	return now, nil
}

func (c *client) RemoveAndPut(
	ctx context.Context, e *lock.Entry, why lock.Reason, note *lock.Note, p store.RecordPut,
) error {
	return c.call(
		ctx, remove, e.ID, func() error { return c.inner.RemoveAndPut(ctx, e, why, note, p) },
	)
}

func (c *client) Renew(ctx context.Context, e *lock.Entry) error {
	return c.call(ctx, refresh, e.ID, func() error { return c.inner.Renew(ctx, e) })
}

func (c *client) Remaining(ctx context.Context, e *lock.Entry) (left time.Duration, err error) {
	err = c.call(ctx, remaining, e.ID, func() (err error) {
		left, err = c.inner.Remaining(ctx, e)
		return err
	})
	return left, err
}

func (c *client) Queue(
	ctx context.Context, r lock.Ref,
) (entries []*lock.Entry, number uint64, err error) {
	err = c.call(ctx, queue, "", func() (err error) {
		entries, number, err = c.inner.Queue(ctx, r)
		return err
	})
	return entries, number, err
}

func (c *client) Newest(ctx context.Context) (number uint64, err error) {
	err = c.call(ctx, newest, "", func() (err error) {
		number, err = c.inner.Newest(ctx)
		return err
	})
	return number, err
}

func (c *client) Distrust(ctx context.Context, number uint64) error {
	return c.call(ctx, distrust, "", func() error { return c.inner.Distrust(ctx, number) })
}

func (c *client) Refusal() error { return c.inner.Refusal() }

func (c *client) Watch(ctx context.Context, f store.Watcher) {
	c.inner.Watch(ctx, &resuming{Watcher: f, c: c})
}

// resuming goes on where it was while the feed is retelling.
type resuming struct {
	store.Watcher
	c   *client
	was store.Snapshot
}

func (r *resuming) Reset(s store.Snapshot) {
	if now, _, _ := r.c.feedNow(); now == retelling {
		r.was.Newest = s.Number
		s = r.was
	}
	r.was = s
	r.Watcher.Reset(s)
}

func (r *resuming) Apply(upTo uint64, changes []store.Change) {
	r.was.Number = upTo
	for _, c := range changes {
		switch {
		case c.Joined != nil:
			r.was.Entries = append(slices.Clone(r.was.Entries), c.Joined)
		case c.Left != "":
			r.was.Entries = slices.DeleteFunc(
				slices.Clone(r.was.Entries), func(e *lock.Entry) bool { return e.ID == c.Left },
			)
		}
	}
	r.Watcher.Apply(upTo, changes)
}

// wire is a client as its own way to the shelf: it carries all requests, and the
// feed as that does.
type wire client

func (w *wire) Call(_ context.Context, _ memory.Operation, _ lock.ID, do func() error) error {
	return do()
}

// Listen waits until the feed runs, and returns a context that ends when it is lost.
func (w *wire) Listen(ctx context.Context) (context.Context, context.CancelFunc) {
	c := (*client)(w)
	began, _, changed := c.feedNow()
	for ; began != running && began != retelling && ctx.Err() == nil; began, _, changed = c.feedNow() {
		await(ctx, changed, nil)
	}
	listening, end := context.WithCancelCause(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for listening.Err() == nil {
			now, _, changed := c.feedNow()
			if now == lost || began == retelling && now == running {
				end(errors.New("cut off"))
			}
			await(listening, changed, nil)
		}
	}()
	return listening, func() {
		end(nil)
		<-done
	}
}

// Tell waits for as long as the feed lags, or is frozen.
func (w *wire) Tell(ctx context.Context, r memory.Run) error {
	for ctx.Err() == nil {
		now, lag, changed := (*client)(w).feedNow()
		left := time.Until(r.At.Add(lag))
		if now == running && left <= 0 {
			return nil
		}
		var due <-chan time.Time
		if now == running {
			due = time.After(left)
		}
		await(ctx, changed, due)
	}
	return context.Cause(ctx)
}

func await(ctx context.Context, changed <-chan struct{}, due <-chan time.Time) {
	select {
	case <-ctx.Done():
	case <-changed:
	case <-due:
	}
}
