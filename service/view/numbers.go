package view

import (
	"context"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/lock/heap"
)

// numberWaiter is a request that waits until the view has reached a number.
type numberWaiter struct {
	heap.Place // among the waiters, until it is told
	number     uint64
	reached    chan struct{}
}

// Before has those told first that wait for the smallest number: thousands can wait for a
// late view, and all of them can give up at one time.
func (w *numberWaiter) Before(other *numberWaiter) bool { return w.number < other.number }

// Await waits until the view has reached number.
func (v *View) Await(ctx context.Context, number uint64) error {
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
			Code: lock.StoreUnavailable, Detail: "this replica has not caught up with the store",
			RetryAfter: time.Second, Cause: ctx.Err(),
		}
	}
}

func (v *View) dropWaiter(w *numberWaiter) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if w.Queued() {
		v.waiters.Remove(w)
	}
}

// reach moves the view on to number.
func (v *View) reach(number uint64) {
	v.number = max(v.number, number)
	for v.current && v.waiters.Len() > 0 && v.waiters.First().number <= v.number {
		close(v.waiters.Pop().reached)
	}
}
