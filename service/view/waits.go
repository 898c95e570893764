package view

import (
	"fmt"
	"time"

	"github.com/fencepost/fencepost/lock"
)

// Waits are the requests that wait on entries.
type Waits struct {
	base
	watched map[lock.ID]watched
	async   asyncIndex
}

// watched is what the view keeps of an entry while requests wait on it.
type watched struct {
	first     *Watch      // head of the list of watches
	announced bool        // the entry's grant is near
	freed     *lock.Entry // the entry whose end caused the grant
	refused   refusal     // why another request removed the entry
}

// Watch notifies one request of changes to an entry.
type Watch struct {
	Changed chan struct{} // receives after each change
	of      *Waits
	id      lock.ID
	next    *Watch // of the same entry
}

func newWaits(shared base) Waits {
	return Waits{base: shared, watched: map[lock.ID]watched{}, async: newAsyncIndex()}
}

// refusal is why a request removed an entry. Since then its key may have another entry with the
// same id.
type refusal struct {
	number uint64
	why    error
}

// maxAttending bounds the requests that wait for one entry at a time, because each renews its
// lease. A client that retries has one that is alive.
const maxAttending = 100

// Attend is Watch for a request that will wait for the entry. It returns an error if too many
// requests wait.
func (v *Waits) Attend(id lock.ID) (*Watch, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	n := 0
	for w := v.watched[id].first; w != nil; w = w.next {
		n++
	}
	if n >= maxAttending {
		return nil, &lock.Error{
			Code: lock.Overloaded, RetryAfter: time.Second,
			Detail: fmt.Sprintf("%d requests wait for this entry already; "+
				"retry after Retry-After", maxAttending),
		}
	}
	return v.watch(id), nil
}

// Watch starts to notify of changes to the entry, until [Watch.End].
func (v *Waits) Watch(id lock.ID) *Watch {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.watch(id)
}

func (v *Waits) watch(id lock.ID) *Watch {
	all := v.watched[id]
	all.first = &Watch{Changed: make(chan struct{}, 1), of: v, id: id, next: all.first}
	v.watched[id] = all
	return all.first
}

// End ends the watch. Calling it again is safe.
func (w *Watch) End() {
	w.of.mu.Lock()
	defer w.of.mu.Unlock()
	all, ok := w.of.watched[w.id]
	if !ok {
		return
	}
	at := &all.first
	for *at != nil && *at != w {
		at = &(*at).next
	}
	if *at != nil {
		*at = w.next
	}
	if w.of.watched[w.id] = all; all.first == nil {
		delete(w.of.watched, w.id)
	}
}

// change updates what is kept of an entry, if a request waits on it.
func (v *Waits) change(id lock.ID, change func(*watched)) {
	if all, ok := v.watched[id]; ok {
		change(&all)
		v.watched[id] = all
	}
}

// FreedBy returns the entry whose end caused the grant of another, while requests wait on that
// one; nil if the view did not see it.
func (v *Waits) FreedBy(id lock.ID) *lock.Entry {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.watched[id].freed
}

// notify wakes the requests that wait on the entry, and the keeper of async entries. One pending
// wake-up suffices.
func (v *Waits) notify(id lock.ID) {
	v.async.note(id)
	for w := v.watched[id].first; w != nil; w = w.next {
		select {
		case w.Changed <- struct{}{}:
		default:
		}
	}
}

// refusedWith returns why a request removed the entry with the id and number. It returns nil if
// that was not for a rejection, or no request waits on the entry.
func (v *Waits) refusedWith(id lock.ID, number uint64) error {
	if r := v.watched[id].refused; r.number == number {
		return r.why
	}
	return nil
}
