package outbox

import (
	"math"
	"slices"
	"time"

	"github.com/fencepost/fencepost/lock"
)

// window is the events that were read and are not settled yet, in their order: those of
// which a delivery is neither made nor kept in the store.
type window struct {
	items []*item
	head  int
	last  lock.EventID // everything up to it was read
	sweep int          // with how many it is looked for those that are settled, behind one that is not
}

// sweepAfter is how many events at least come between two such looks.
const sweepAfter = 1024

// item is one event of a window, or something else that is done when its deliveries are
// settled.
type item struct {
	id    lock.EventID
	read  time.Time
	at    time.Time   // when the event happened; zero is when it was read
	open  int         // deliveries that are not settled
	its   []*delivery // all of them
	kept  bool        // it was seen to that those are kept
	again bool        // somebody asked for it once more
	done  func()      // called when the last one is settled; nil is nothing
}

func (w *window) len() int { return len(w.items) - w.head }

// add adds an event, and forgets those that are settled, now and then: they are not in the way of what is read next while
// one before them waits.
func (w *window) add(it *item) {
	w.items = append(w.items, it)
	if w.len() < max(w.sweep, sweepAfter) {
		return
	}
	open := slices.DeleteFunc(w.items[w.head:], func(it *item) bool { return it.open == 0 })
	w.items = w.items[:w.head+len(open)]
	w.sweep = len(open) + max(sweepAfter, len(open)/4)
}

// reached says that everything up to id was read.
func (w *window) reached(id lock.EventID) {
	if w.last.Compare(id) < 0 {
		w.last = id
	}
}

// settled returns up to where everything is, and forgets that.
func (w *window) settled() lock.EventID {
	for w.head < len(w.items) && w.items[w.head].open == 0 {
		w.items[w.head] = nil
		w.head++
	}
	if w.head > 1024 && w.head > len(w.items)/2 {
		w.items = append([]*item(nil), w.items[w.head:]...)
		w.head = 0
	}
	if w.head == len(w.items) {
		w.items, w.head = w.items[:0], 0
		return w.last
	}
	return justBefore(w.items[w.head].id)
}

// oldest returns when the first event happened that is not settled; zero without any.
func (w *window) oldest() time.Time {
	if w.len() == 0 {
		return time.Time{}
	}
	it := w.items[w.head]
	if it.at.IsZero() || it.at.After(it.read) {
		return it.read
	}
	return it.at
}

// justBefore is the place before an event, as an id.
func justBefore(id lock.EventID) lock.EventID {
	switch {
	case id.Index > 0:
		return lock.EventID{Number: id.Number, Index: id.Index - 1}
	case id.Number > 0:
		return lock.EventID{Number: id.Number - 1, Index: math.MaxUint32}
	}
	return id
}

// settle says that one of the item's deliveries is made or kept.
func (it *item) settle() {
	if it.open--; it.open == 0 && it.done != nil {
		it.done()
	}
}
