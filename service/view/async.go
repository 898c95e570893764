package view

import (
	"iter"
	"maps"
	"slices"

	"github.com/fencepost/fencepost/lock"
)

// asyncIndex knows the async entries of a view, and to which of them something happened,
// for the one who keeps them. It is bounded by the entries that are there.
type asyncIndex struct {
	there   map[lock.ID]struct{}
	changed map[lock.ID]struct{} // since they were taken last; some of them are gone
	listed  bool                 // likewise: there was a Reset
	ready   chan struct{}        // holds a value after changed ceased to be empty
}

func newAsyncIndex() asyncIndex {
	return asyncIndex{
		there:   map[lock.ID]struct{}{},
		changed: map[lock.ID]struct{}{},
		ready:   make(chan struct{}, 1),
	}
}

// note marks an entry to which something happened, if it is async.
func (a *asyncIndex) note(id lock.ID) {
	if len(a.there) == 0 {
		return
	}
	if _, ok := a.there[id]; !ok {
		return
	}
	a.changed[id] = struct{}{}
	a.wake()
}

// relist is for a table that was built from a list: all entries before and after it changed.
func (a *asyncIndex) relist(entries iter.Seq2[*lock.Entry, bool]) {
	before := a.there
	a.there = map[lock.ID]struct{}{}
	for e := range entries {
		a.add(e)
		a.note(e.ID)
	}
	for id := range before {
		if _, ok := a.there[id]; !ok {
			a.changed[id] = struct{}{}
		}
	}
	a.listed = true
	a.wake()
}

func (a *asyncIndex) add(e *lock.Entry) {
	if e.Async {
		a.there[e.ID] = struct{}{}
	}
}

// forget is for an entry that is gone; what was noted of it stays.
func (a *asyncIndex) forget(e *lock.Entry) { delete(a.there, e.ID) }

func (a *asyncIndex) wake() {
	select {
	case a.ready <- struct{}{}:
	default:
	}
}

// AsyncChanges returns a channel that is sent to when [View.TakeAsync] has something.
func (v *waits) AsyncChanges() <-chan struct{} { return v.async.ready }

// TakeAsync returns the async entries to which something happened since it was called
// last: they joined, came to hold, were rejected, or ended. listed says that the feed
// was interrupted since, and all are among them.
func (v *waits) TakeAsync() (changed []lock.ID, listed bool) {
	var taken map[lock.ID]struct{} // of the caller: to walk or clear a large one takes long
	v.mu.Lock()
	if len(v.async.changed) > 0 {
		taken, v.async.changed = v.async.changed, map[lock.ID]struct{}{}
	}
	listed, v.async.listed = v.async.listed, false
	v.mu.Unlock()
	return slices.Sorted(maps.Keys(taken)), listed
}
