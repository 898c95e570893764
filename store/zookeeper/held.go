package zookeeper

import (
	"fmt"
	"slices"
	"time"

	"github.com/fencepost/fencepost/store"
)

// maxHeld is how much is held back for a follower that is told of the past, about in bytes. With
// more to come it begins with what there is.
const maxHeld = 16 << 20

// lastTold is up to where a follower was told what happened.
type lastTold struct {
	number uint64
	placed bool // the rest is known, too

	floor uint64   // by which the number is
	epoch int32    // of the log
	next  int32    // the record that was to be told next
	last  *written // the one before it, without what it says if it was folded; nil if it is not known
}

// told returns where the feed is. The caller holds mu.
func (f *feed) told() lastTold {
	return lastTold{number: f.number, placed: true, floor: f.floor, epoch: f.epoch, next: f.next, last: f.last}
}

// leads returns an error if a later place is known not to be of the same past.
func (t lastTold) leads(to lastTold) error {
	switch {
	case t.number <= to.floor || t.number > to.number:
	case t.placed && (t.floor != to.floor || t.epoch != to.epoch || t.next > to.next):
	default:
		return nil
	}
	return fmt.Errorf("%w: it is of another past", errUntold)
}

// follows returns an error if a record is not the one that was told last: the store has lost its past
// then, and has come to as great numbers again.
func (t lastTold) follows(last written) error {
	switch {
	case !t.placed:
		return nil
	case last.n == t.next-1 && (t.last == nil || t.last.zxid == last.zxid && sameChanges(t.last.record, last.record)):
		return nil
	}
	return fmt.Errorf("%w: it does not follow on what was told", errUntold)
}

// sameChanges reports whether two records are the same, as far as they are known. What comes has an id
// by chance, and so has the attempt to end something.
func sameChanges(a, b *record) bool {
	return a == nil || b == nil || slices.EqualFunc(a.Changes, b.Changes, func(a, b change) bool { return a.ID == b.ID && a.Try == b.Try })
}

// retold is what a feed tells of one record, or of several.
type retold struct {
	to      lastTold
	changes []store.Change
	bytes   int // of the records
}

// cost is what it takes to hold it back, about in bytes.
func (r retold) cost() int { return r.bytes + 200*len(r.changes) }

// held is what a follower is not told before it was told what happened earlier.
type held struct {
	first store.Snapshot // its view
	at    lastTold
	calls []retold // all since
	cost  int      // of these
}

// add holds back what happened, unless it is too much.
func (h *held) add(one retold) bool {
	if last := len(h.calls) - 1; last >= 0 && len(one.changes) == 0 {
		h.calls[last].to = one.to
		return true
	}
	h.calls, h.cost = append(h.calls, one), h.cost+one.cost()
	return h.cost <= maxHeld
}

// during does something unless what was held back is not told any more, which it reports.
func (f *follower) during(h *held, what func()) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.over || f.held != h {
		return false
	}
	what()
	return true
}

// reset begins with a view. The caller holds mu.
func (f *follower) reset(s store.Snapshot, at lastTold) {
	f.told = at
	f.f.Reset(s)
}

// tell tells what happened. The caller holds mu.
func (f *follower) tell(one retold) {
	if one.to.last == nil && one.to.epoch == f.told.epoch && one.to.next == f.told.next {
		one.to.last = f.told.last
	}
	f.told = one.to
	f.f.Apply(one.to.number, one.changes)
}

// release tells what was held back, and from there on everything as it comes.
func (f *follower) release(h *held) {
	next := func() {
		if len(h.calls) == 0 {
			f.held, f.behind = nil, time.Time{}
			return
		}
		f.tell(h.calls[0])
		h.calls, h.cost = h.calls[1:], h.cost-h.calls[0].cost()
	}
	for f.during(h, next) {
	}
}
