package view

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/fencepost/fencepost/lock"
)

// maxAttending is how many requests may wait for one entry at a time. Each renews its
// lease; a client that repeats itself has one that is alive.
const maxAttending = 100

// Attend is watch for a request that is going to wait for the entry. It is refused if
// too many do.
func (v *View) Attend(id lock.ID) (<-chan struct{}, func(), error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.watchers[id]) >= maxAttending {
		return nil, nil, &lock.Error{
			Code: lock.Overloaded, RetryAfter: time.Second,
			Detail: fmt.Sprintf("%d requests wait for this entry already", maxAttending),
		}
	}
	changed, unwatch := v.addWatcher(id)
	return changed, unwatch, nil
}

// Watch returns a channel that is sent to whenever something happens to the
// entry, and a func that ends it.
func (v *View) Watch(id lock.ID) (<-chan struct{}, func()) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.addWatcher(id)
}

func (v *View) addWatcher(id lock.ID) (<-chan struct{}, func()) {
	c := make(chan struct{}, 1)
	v.watchers[id] = append(v.watchers[id], c)
	return c, func() { v.unwatch(id, c) }
}

func (v *View) unwatch(id lock.ID, c chan struct{}) {
	v.mu.Lock()
	defer v.mu.Unlock()
	left := v.watchers[id]
	if i := slices.Index(left, c); i >= 0 {
		last := len(left) - 1
		left[i], left[last] = left[last], nil
		left = left[:last]
	}
	if v.watchers[id] = left; len(left) == 0 {
		delete(v.watchers, id)
		delete(v.rejections.carriedOut, id)
		delete(v.announced, id)
		delete(v.freed, id)
	}
}

// free notes by whose end an entry came to hold on which requests wait.
func (v *View) free(id lock.ID, by *lock.Entry) {
	if len(v.watchers[id]) > 0 {
		v.freed[id] = by
	}
}

// FreedBy returns the entry by whose end one came to hold, while requests wait on that; nil
// if the view did not see it.
func (v *View) FreedBy(id lock.ID) *lock.Entry {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.freed[id]
}

// notify wakes the requests that wait for the entry, and whoever keeps it. One wake-up
// that nobody has taken yet is as good as two.
func (v *View) notify(id lock.ID) {
	v.async.note(id)
	for _, c := range v.watchers[id] {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}

// AwaitReasons waits until the reasons from before the last list are known.
func (v *View) AwaitReasons(ctx context.Context) {
	v.mu.RLock()
	recalled := v.recalled
	v.mu.RUnlock()
	if recalled == nil {
		return
	}
	select {
	case <-recalled:
	case <-ctx.Done():
	}
}
