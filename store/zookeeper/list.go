package zookeeper

import (
	"context"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
)

// listing is a list of all entries in progress while the feed follows the log. So it ends however
// long it takes and however much is written. Entries that join meanwhile go into the feed's
// entries. Older ones are listed, unless they left meanwhile. Those that are narrowed meanwhile are
// in both, and the feed's are newer. So it keeps no more than there are entries.
type listing struct {
	from int64            // zxid after which the feed follows
	gone map[key]struct{} // older entries that left since
}

// left records the end of an entry that may be listed, and returns false if it was already
// recorded.
func (l *listing) left(k key) bool {
	if _, noted := l.gone[k]; noted {
		return false
	}
	l.gone[k] = struct{}{}
	return true
}

// update is what followers receive in one call.
type update struct {
	upTo    uint64
	changes []store.Change
}

// start begins to follow the log. It begins at a record no older than the call, or at the
// interruption of the feed. The log does not report earlier changes of meta, so meta must not have
// changed since it was read.
func (f *feed) start(ctx context.Context, l *link) error {
	f.takeOwn() // they will be in the list, or are read
	epoch, floor := f.reader.epoch.Load(), f.reader.trust.Floor()
	stat, err := f.meta.barrierAsKnown(ctx, l)
	if err != nil {
		return err
	}
	f.leases.clock.tick() // also for a feed that breaks before its guard writes
	if f.reader.epoch.Load() != epoch {
		return errRotated
	}
	if goesOn, err := f.goOn(ctx, l, place{epoch, created(stat)}, stat); goesOn || err != nil {
		return err
	}
	f.settleDoubts()
	next, zxid := created(stat), stat.Mzxid
	last, err := f.reader.lastBefore(ctx, l, epoch, next)
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.epoch, f.born, f.next, f.last, f.zxid = epoch, stat.Czxid, next, last, zxid
	f.time, f.newest, f.whole = stat.Mtime, stat.Mzxid, false
	f.entries = newIndex()
	f.records = logRecords{from: next}
	f.floor, f.listing = floor, &listing{from: zxid, gone: map[key]struct{}{}}
	return nil
}

// settleDoubts drops the reason for which the feed starts over.
func (f *feed) settleDoubts() {
	select {
	case why := <-f.again:
		f.reader.log.Debug("the feed starts over", "why", why)
	default:
	}
}

// goOn continues the feed where it was interrupted, if it has all entries as of there and the log
// has all records since. Otherwise the feed lists the entries again.
func (f *feed) goOn(ctx context.Context, l *link, end place, stat *zk.Stat) (bool, error) {
	f.mu.Lock()
	next, was := f.next, f.last
	same := f.whole && end.epoch == f.epoch && stat.Czxid == f.born && next <= end.n &&
		stat.Mzxid >= f.zxid && f.reader.trust.Floor() == f.floor && f.reader.trust.Refusal() == nil
	f.mu.Unlock()
	if !same {
		return false, nil
	}
	last, err := f.reader.lastBefore(ctx, l, end.epoch, next)
	if err != nil || !sameRecord(was, last) || last == nil && next > 0 {
		return false, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.newest, f.time, f.current = stat.Mzxid, stat.Mtime, true
	f.beginAll()
	return true, nil
}

// sameRecord reports whether two records are the same, as far as they are known. If not, the
// store has lost its past and has since reached the same numbers again. A join has a random id,
// and so has an attempt to end something.
func sameRecord(a, b *written) bool {
	switch {
	case a == nil || b == nil:
		return true
	case a.record == nil || b.record == nil:
		return a.zxid == b.zxid
	}
	same := func(a, b change) bool { return a.ID == b.ID && a.Try == b.Try }
	return a.zxid == b.zxid && slices.EqualFunc(a.record.Changes, b.record.Changes, same)
}

// list reads the entries that existed when the feed started, unless it resumes. Once the feed has
// reached what the last of these reads saw, they and the log since form a consistent view, with
// which all followers begin.
func (f *feed) list(ctx context.Context, l *link) error {
	f.mu.Lock()
	listing := f.listing != nil
	f.mu.Unlock()
	if !listing {
		return nil
	}
	r := f.reader
	keys, err := r.listKeys(ctx, l, nil)
	if err != nil {
		return err
	}
	snap := &snapshot{entries: make(map[key]*lock.Entry, len(keys))}
	if err := r.readEntries(ctx, l, keys, snap); err != nil {
		return err
	}
	stat, err := r.barrierOn(ctx, l)
	if err != nil {
		return err
	}
	for {
		f.mu.Lock()
		if f.zxid >= stat.Mzxid {
			defer f.mu.Unlock()
			return f.begin(snap)
		}
		f.mu.Unlock()
		if err := store.Pause(ctx, time.Millisecond); err != nil {
			return err
		}
	}
}

// begin combines the listed entries with the log since. If the floor has risen since, the numbers
// do not show the order, and the feed restarts. The caller holds mu.
func (f *feed) begin(listed *snapshot) error {
	r, since := f.reader, f.entries
	if r.trust.Floor() != f.floor {
		return errMeta
	}
	f.entries = newIndex()
	for _, e := range listed.sorted() {
		if _, went := f.listing.gone[keyOf(e)]; !went && r.zxid(e.Number) <= f.listing.from {
			f.entries.add(e)
		}
	}
	for _, e := range (&snapshot{entries: since.byKey}).sorted() {
		f.entries.add(e)
	}
	f.listing, f.current, f.whole = nil, true, true
	f.number = r.number(f.zxid)
	f.leases.reset(f.entries.byKey)
	f.beginAll()
	return nil
}

// beginAll gives all followers a view. The caller holds mu.
func (f *feed) beginAll() {
	for to := range f.followers {
		to.begin(f)
	}
}
