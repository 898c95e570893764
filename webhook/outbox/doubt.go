package outbox

import "github.com/fencepost/fencepost/lock"

// doubt is a caller whose entry may have come to hold among what was missed: its lock was closed
// there too, and it is not known yet who held then. As long as that is so the cursor stays.
type doubt struct {
	before lock.EventID // what was missed was before it
	item   *item
}

// doubtCall remembers a caller of whom it is to be learned whether his entry holds.
func (w *owner) doubtCall(e *lock.Entry, before lock.EventID, it *item) {
	if _, known := w.doubts[e.ID]; known || shardOf(e.Tenant) != w.name {
		return
	}
	it.open++
	w.doubts[e.ID] = doubt{before, it}
}

// lookAtDoubts calls back those who turn out to hold. Of who waits after all, or is gone, an event
// tells.
func (w *owner) lookAtDoubts() {
	if len(w.doubts) == 0 {
		return
	}
	held, doubtful := w.Locks.HeldCallbacks()
	open := make(map[lock.ID]bool, len(doubtful))
	for _, e := range doubtful {
		open[e.ID] = true
	}
	for _, e := range held {
		if d, ok := w.doubts[e.ID]; ok {
			d.item.kept = false // it may have a delivery more
			w.callBackFor(e, d.before, d.item)
		}
	}
	for id, d := range w.doubts {
		if !open[id] {
			delete(w.doubts, id)
			d.item.settle()
		}
	}
}
