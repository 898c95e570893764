package view

import (
	"iter"
	"maps"
	"slices"

	"github.com/fencepost/fencepost/lock"
)

// asyncIndex holds the view's async entries and which of them changed, for the keeper. The
// entries in the view bound its size.
type asyncIndex struct {
	there   map[lock.ID]struct{}
	changed map[lock.ID]struct{} // since the keeper last took them; some are gone
	listed  bool                 // the same: there was a Reset
	ready   chan struct{}        // holds a value after changed became non-empty
}

func newAsyncIndex() asyncIndex {
	return asyncIndex{
		there: map[lock.ID]struct{}{}, changed: map[lock.ID]struct{}{}, ready: make(chan struct{}, 1),
	}
}

// note marks an async entry as changed.
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

// relist handles a table that was built from a list: all entries before and after it changed.
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

// forget drops an entry that is gone; its mark as changed stays.
func (a *asyncIndex) forget(e *lock.Entry) { delete(a.there, e.ID) }

func (a *asyncIndex) wake() {
	select {
	case a.ready <- struct{}{}:
	default:
	}
}

// AsyncChanges returns a channel that receives when [Waits.TakeAsync] has something.
func (v *Waits) AsyncChanges() <-chan struct{} { return v.async.ready }

// TakeAsync returns the async entries that changed since the last call: they joined, were
// granted, were rejected, or ended. listed reports that the feed was interrupted since; changed
// then has all async entries.
func (v *Waits) TakeAsync() (changed []lock.ID, listed bool) {
	// the caller gets the map: walking or clearing a large one takes long
	var taken map[lock.ID]struct{}
	v.mu.Lock()
	if len(v.async.changed) > 0 {
		taken, v.async.changed = v.async.changed, map[lock.ID]struct{}{}
	}
	listed, v.async.listed = v.async.listed, false
	v.mu.Unlock()
	return slices.Sorted(maps.Keys(taken)), listed
}
