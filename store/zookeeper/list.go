package zookeeper

import (
	"cmp"
	"context"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
)

// listing is a list of all entries that is under way while the feed follows the log,
// so that it comes to its end however long it takes and however much is written.
// What joins meanwhile goes into the feed's entries; what is older is listed, unless
// it went meanwhile. So no more is kept than there are entries.
type listing struct {
	from int64         // zxid at which the feed began to follow
	gone map[key]int64 // czxids of older entries that went since
}

// left notes the end of an entry that may be listed.
func (l *listing) left(c change) {
	if c.Czxid <= l.from {
		l.gone[c.key()] = c.Czxid
	}
}

// has reports whether an entry that was read belongs to the list.
func (l *listing) has(r *reader, e *lock.Entry) bool {
	gone, went := l.gone[keyOf(e)]
	return r.zxid(e.Number) <= l.from && !(went && r.ends(change{Czxid: gone}, e))
}

// start begins to follow the log, at a record that is no older than the call. What has
// changed in meta before that the log does not tell, so it must not have changed since it
// was read.
func (f *feed) start(ctx context.Context, l *link) error {
	f.takeOwn() // they will be in the list
	epoch, floor := f.reader.epoch.Load(), f.reader.trust.Floor()
	stat, err := f.meta.barrierAsKnown(ctx, l)
	if err != nil {
		return err
	}
	if f.reader.epoch.Load() != epoch {
		return errRotated
	}
	last, err := f.reader.lastBefore(ctx, l, epoch, created(stat))
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.epoch, f.born, f.next, f.last, f.zxid, f.time = epoch, stat.Czxid, created(stat), last, stat.Mzxid, stat.Mtime
	f.began = cmp.Or(f.began, f.time)
	f.entries, f.attached, f.records = newIndex(), store.Attached{}, logRecords{from: created(stat)}
	f.floor, f.listing = floor, &listing{from: stat.Mzxid, gone: map[key]int64{}}
	return nil
}

// list reads the entries that were there when the feed started. When the feed has
// reached what the last of these reads saw, they and what the log said since are a
// view of one moment, with which all followers begin.
func (f *feed) list(ctx context.Context, l *link) error {
	r := f.reader
	keys, err := r.listKeys(ctx, l, nil)
	if err != nil {
		return err
	}
	snap := &snapshot{entries: make(map[key]*lock.Entry, len(keys))}
	if err := r.readEntries(ctx, l, keys, snap); err != nil {
		return err
	}
	notices, err := r.listNotices(ctx, l)
	if err != nil {
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
			return f.begin(snap, notices)
		}
		f.mu.Unlock()
		if err := store.Pause(ctx, time.Millisecond); err != nil {
			return err
		}
	}
}

// begin makes a view of what was listed and what the log said meanwhile. If the floor has
// risen since, their numbers do not tell their order, and the feed starts over. The caller
// holds mu.
func (f *feed) begin(listed *snapshot, notices []*lock.Notice) error {
	r, since := f.reader, f.entries
	if r.trust.Floor() != f.floor {
		return errMeta
	}
	f.entries = newIndex()
	for _, e := range listed.sorted() {
		if f.listing.has(r, e) {
			f.entries.add(e)
		}
	}
	for _, e := range (&snapshot{entries: since.byKey}).sorted() {
		f.entries.add(e)
	}
	f.attach(notices)
	f.listing, f.current = nil, true
	f.number = r.number(f.zxid)
	f.leases.reset(f.entries.byKey)
	for to := range f.followers {
		to.begin(f)
	}
	return nil
}
