package view

import (
	"context"
	"sync"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/lock/heap"
)

// base is what all parts of a view share. It has no methods.
type base struct {
	*Config
	mu *sync.RWMutex // guards all parts
}

// Progress tracks how far a view has followed the feed.
type Progress struct {
	base
	number   uint64    // everything up to it is in the table
	applying uint64    // the number that the feed is applying now
	begun    bool      // there was a first Reset
	current  bool      // the feed is up
	goal     uint64    // the feed is catching up until this number
	whole    time.Time // when the view was last known to be complete
	gap      time.Time // since when it may be incomplete; zero if every end is explained
	lostAt   time.Time // when the feed was lost; before the first Reset, when the view began to wait
	lateAt   time.Time // the same, for the first loss since the view was complete
	waiters  heap.Heap[*numberWaiter]
}

// numberWaiter is a request that waits until the view has reached a number.
type numberWaiter struct {
	heap.Place // among the waiters, until the number is reached
	number     uint64
	reached    chan struct{}
}

// Before puts the smallest number in front. Thousands of requests can wait for a stale view, and
// all can give up at once.
func (w *numberWaiter) Before(other *numberWaiter) bool { return w.number < other.number }

// Await waits until the view has reached number.
func (v *Progress) Await(ctx context.Context, number uint64) error {
	v.mu.Lock()
	if v.current && v.number >= number {
		v.mu.Unlock()
		return nil
	}
	w := &numberWaiter{number: number, reached: make(chan struct{})}
	v.waiters.Push(w)
	v.mu.Unlock()
	select {
	case <-w.reached:
		return nil
	case <-ctx.Done():
		v.dropWaiter(w)
		return &lock.Error{
			Code: lock.StoreUnavailable, Detail: "this replica has not caught up with the store; " +
				"retry, here or at another",
			RetryAfter: time.Second, Cause: ctx.Err(),
		}
	}
}

func (v *Progress) dropWaiter(w *numberWaiter) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if w.Queued() {
		v.waiters.Remove(w)
	}
}

// reach moves the view on to number.
func (v *Progress) reach(number uint64) {
	v.number = max(v.number, number)
	for v.current && v.waiters.Len() > 0 && v.waiters.First().number <= v.number {
		close(v.waiters.Pop().reached)
	}
}

// HadAll records that the view had everything at the instant. Without events it cannot know that
// by itself.
func (v *Progress) HadAll(at time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if at.After(v.whole) {
		v.whole = at
	}
}

// Number returns the store's number up to which everything is in the view, 0 before the
// first list.
func (v *Progress) Number() uint64 {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.number
}

// Reached reports whether everything up to number is in the view.
func (v *Progress) Reached(number uint64) bool {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.number >= number
}

// Missing returns an error if this replica never had a view of the store.
func (v *Progress) Missing() error {
	v.mu.RLock()
	defer v.mu.RUnlock()
	if v.begun {
		return nil
	}
	return &lock.Error{
		Code: lock.StoreUnavailable, Detail: "this replica has not seen the store's locks yet; " +
			"retry, here or at another",
		RetryAfter: time.Second,
	}
}

// LostFor returns how long the feed has been down, or 0 if it is up.
func (v *Progress) LostFor() time.Duration {
	at, lost := v.LostSince()
	if !lost {
		return 0
	}
	return max(time.Since(at), 1)
}

// LostSince returns since when the feed is down, and whether it is down.
func (v *Progress) LostSince() (at time.Time, lost bool) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.lostAt, !v.current
}

// LateFor returns how long the view has been incomplete, or 0 if it is complete. That time starts
// when the feed goes down. It ends when the feed is up and has caught up.
func (v *Progress) LateFor() time.Duration {
	v.mu.RLock()
	defer v.mu.RUnlock()
	if v.current && v.number >= v.goal {
		return 0
	}
	return max(time.Since(v.lateAt), 1)
}

// found publishes a finding, with the fields that all findings have.
func (v *Progress) found(what Finding, now time.Time) {
	what.Number, what.At = v.applying, now
	v.Events.Find(what)
}
