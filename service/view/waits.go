package view

import (
	"fmt"
	"slices"
	"time"

	"github.com/fencepost/fencepost/lock"
)

// waits are the requests that wait for something to happen to an entry.
type waits struct {
	base
	watchers  map[lock.ID][]chan struct{}
	announced map[lock.ID]bool        // those with a watcher that are granted soon
	freed     map[lock.ID]*lock.Entry // those with a watcher that were granted: by whose end
	async     asyncIndex

	// carriedOut has the errors of entries that were taken back for them, for the requests that
	// still wait on such an entry: another one did it.
	carriedOut map[lock.ID]refusal
}

func newWaits(shared base) waits {
	return waits{
		base: shared, watchers: map[lock.ID][]chan struct{}{}, announced: map[lock.ID]bool{},
		freed: map[lock.ID]*lock.Entry{}, async: newAsyncIndex(), carriedOut: map[lock.ID]refusal{},
	}
}

// refusal is why an entry was taken back. Its key may have another of the same id since.
type refusal struct {
	number uint64
	why    error
}

// maxAttending is how many requests may wait for one entry at a time. Each renews its
// lease; a client that repeats itself has one that is alive.
const maxAttending = 100

// Attend is watch for a request that is going to wait for the entry. It is refused if
// too many do.
func (v *waits) Attend(id lock.ID) (<-chan struct{}, func(), error) {
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
func (v *waits) Watch(id lock.ID) (<-chan struct{}, func()) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.addWatcher(id)
}

func (v *waits) addWatcher(id lock.ID) (<-chan struct{}, func()) {
	c := make(chan struct{}, 1)
	v.watchers[id] = append(v.watchers[id], c)
	return c, func() { v.unwatch(id, c) }
}

func (v *waits) unwatch(id lock.ID, c chan struct{}) {
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
		delete(v.carriedOut, id)
		delete(v.announced, id)
		delete(v.freed, id)
	}
}

// free notes by whose end an entry came to hold on which requests wait.
func (v *waits) free(id lock.ID, by *lock.Entry) {
	if len(v.watchers[id]) > 0 {
		v.freed[id] = by
	}
}

// FreedBy returns the entry by whose end one came to hold, while requests wait on that; nil
// if the view did not see it.
func (v *waits) FreedBy(id lock.ID) *lock.Entry {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.freed[id]
}

// notify wakes the requests that wait for the entry, and the keeper of async entries. One pending
// wake-up is enough.
func (v *waits) notify(id lock.ID) {
	v.async.note(id)
	for _, c := range v.watchers[id] {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}

// refusedWith returns why the entry with the id and number was taken back, nil if it was not
// for a rejection, or no request waits on it.
func (v *waits) refusedWith(id lock.ID, number uint64) error {
	if r := v.carriedOut[id]; r.number == number {
		return r.why
	}
	return nil
}
