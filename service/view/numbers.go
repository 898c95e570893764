package view

import (
	"container/heap"
	"context"
	"time"

	"github.com/fencepost/fencepost/lock"
)

// numberWaiter is a request that waits until the view has reached a number.
type numberWaiter struct {
	number  uint64
	reached chan struct{}
	place   int // among the waiters; -1 when it was told
}

// numberWaiters are a heap with the smallest number first: thousands can wait for a
// late view, and all of them can give up at one time.
type numberWaiters []*numberWaiter

// Await waits until the view has reached number.
func (v *View) Await(ctx context.Context, number uint64) error {
	v.mu.Lock()
	if v.current && v.number >= number {
		v.mu.Unlock()
		return nil
	}
	w := &numberWaiter{number: number, reached: make(chan struct{})}
	heap.Push(&v.waiters, w)
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
	if w.place >= 0 {
		heap.Remove(&v.waiters, w.place)
	}
}

// reach moves the view on to number.
func (v *View) reach(number uint64) {
	v.number = max(v.number, number)
	for v.current && len(v.waiters) > 0 && v.waiters[0].number <= v.number {
		close(heap.Pop(&v.waiters).(*numberWaiter).reached)
	}
}

// Len implements [heap.Interface], like the methods below.
func (all numberWaiters) Len() int           { return len(all) }
func (all numberWaiters) Less(i, j int) bool { return all[i].number < all[j].number }
func (all numberWaiters) Swap(i, j int) {
	all[i], all[j] = all[j], all[i]
	all[i].place, all[j].place = i, j
}

// Push adds one at the end.
func (all *numberWaiters) Push(w any) {
	added := w.(*numberWaiter)
	added.place = len(*all)
	*all = append(*all, added)
}

// Pop removes the one at the end.
func (all *numberWaiters) Pop() any {
	last := len(*all) - 1
	w := (*all)[last]
	(*all)[last] = nil
	*all = (*all)[:last]
	w.place = -1
	return w
}
