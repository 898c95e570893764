package storetest_test

import (
	"context"
	"math"
	"sync"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/store/storetest"
)

var _ store.Store = (*client)(nil)

// client is one client of a memory.
type client struct {
	m      *memory
	second bool // some bugs are in the second client only

	mu      sync.Mutex
	fault   storetest.Fault
	changed chan struct{} // closed and replaced when fault changes
}

func newClient(m *memory, second bool) *client {
	return &client{m: m, second: second, changed: make(chan struct{})}
}

func (c *client) setFault(f storetest.Fault) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fault = f
	close(c.changed)
	c.changed = make(chan struct{})
}

func (c *client) state() (storetest.Fault, <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.fault, c.changed
}

// call does what a client does with its store, unless it is cut off.
func (c *client) call(ctx context.Context, write bool, do func() error) error {
	if ctx.Err() != nil && c.m.bug != ignoresContext {
		return c.bare(unavailable(c.m.bug == alwaysAmbiguous))
	}
	fault, _ := c.state()
	if fault == "" {
		return c.bare(c.ask(ctx, do))
	}
	if fault == storetest.Deaf && write {
		_ = do() // its answer is what gets lost
	}
	limit := callLimit
	if c.m.bug == hangs {
		limit = math.MaxInt64
	}
	sleep(ctx, limit)
	if c.m.bug == brokenCallsSucceed {
		return nil
	}
	return c.bare(unavailable(write && fault == storetest.Deaf && c.m.bug != neverAmbiguous))
}

// ask takes its time for those who have little, so that contexts end meanwhile.
func (c *client) ask(ctx context.Context, do func() error) error {
	if end, ok := ctx.Deadline(); ok && time.Until(end) < time.Second {
		sleep(ctx, time.Millisecond)
	}
	if ctx.Err() == nil || c.m.bug == ignoresContext {
		return do()
	}
	if c.m.bug == lateWrite {
		_ = do() // the bug
	}
	return unavailable(false)
}

func (c *client) Enqueue(ctx context.Context, e *lock.Entry) (placed *lock.Entry, written bool, err error) {
	if c.m.refuses(c) {
		return nil, false, unavailable(false)
	}
	err = c.call(ctx, true, func() (err error) {
		if fault, _ := c.state(); fault == storetest.Deaf && e.Set && c.m.bug == setHalfWritten {
			half := *e
			half.Claims = e.Claims[:1]
			e = &half
		}
		placed, written, err = c.m.insert(e)
		return err
	})
	if err != nil && placed != nil && !e.Resumable() && c.m.bug != givenUpStays {
		_ = c.m.remove(placed, lock.Withdrawn, nil) // what it learns of the outcome
	}
	if err != nil {
		return nil, false, err
	}
	return placed, written, nil
}

func (c *client) Remove(ctx context.Context, e *lock.Entry, why lock.Reason, while ...*lock.Entry) error {
	return c.call(ctx, true, func() error { return c.m.remove(e, why, while) })
}

func (c *client) Refresh(ctx context.Context, e *lock.Entry) error {
	if c.m.bug == distrustStopsAll && c.m.refuses(c) {
		return unavailable(false)
	}
	return c.call(ctx, false, func() error { return c.m.refresh(e) })
}

func (c *client) Remaining(ctx context.Context, e *lock.Entry) (left time.Duration, err error) {
	err = c.call(ctx, false, func() error {
		left, err = c.m.remaining(e)
		return err
	})
	return left, err
}

func (c *client) Queue(ctx context.Context, r lock.Ref) (entries []*lock.Entry, number uint64, err error) {
	err = c.call(ctx, false, func() error {
		entries, number = c.m.queue(r)
		if c.m.bug == emptyIsError && len(entries) == 0 {
			return &lock.Error{Code: lock.NotFound}
		}
		if c.m.bug == readsThePast && c.second {
			entries, number = c.m.past(r, entries), number-1
		}
		return nil
	})
	return entries, number, err
}

func (c *client) Newest(ctx context.Context) (number uint64, err error) {
	err = c.call(ctx, false, func() error {
		_, number = c.m.queue(lock.Ref{})
		if c.m.bug == newestIsOld && number > 0 {
			number--
		}
		return nil
	})
	return number, err
}

func (c *client) Distrust(ctx context.Context, number uint64) error {
	return c.call(ctx, true, func() error {
		c.m.mu.Lock()
		defer c.m.mu.Unlock()
		c.m.distrusted = c.m.distrusted || number > c.m.number
		return nil
	})
}

func (c *client) Refusal() error {
	if c.m.refuses(c) && c.m.bug != distrustUntold {
		return c.bare(unavailable(false))
	}
	return nil
}

func (c *client) Follow(ctx context.Context, f store.Follower) {
	for ctx.Err() == nil || c.m.bug == followNeverEnds {
		fault, changed := c.state()
		if fault == "" {
			c.followOnce(ctx, f, changed)
			continue
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// followOnce follows until ctx ends or the client is cut off.
func (c *client) followOnce(ctx context.Context, f store.Follower, changed <-chan struct{}) {
	s, view, ended := c.m.subscribe()
	defer c.m.unsubscribe(s)
	if c.m.bug != feedStartsEmpty {
		f.Reset(view)
	}
	f.Recall(ended, true)
	done := ctx.Done()
	if c.m.bug == followNeverEnds {
		done = nil
	}
	for {
		select {
		case <-done:
			return
		case <-changed:
			if c.cutOff(ctx, f) {
				return
			}
			_, changed = c.state()
			s.take() // what came meanwhile is missed: the bug
		case <-s.ready:
			for _, r := range c.m.disorder(s.take()) {
				f.Apply(r.upTo, r.changes)
				c.m.applyTwice(f, r.upTo)
			}
		}
	}
}

// cutOff tells the follower, and whether the feed must start over.
func (c *client) cutOff(ctx context.Context, f store.Follower) (startOver bool) {
	if c.m.bug == feedGapUnnoticed {
		_, changed := c.state()
		select {
		case <-changed:
		case <-ctx.Done():
		}
		return false
	}
	if c.m.bug != lostUntold {
		f.Lost(unavailable(false))
	}
	return true
}
