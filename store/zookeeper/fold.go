package zookeeper

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/fencepost/fencepost/store"
)

const (
	// The log keeps its records for keepFor, by the server's clock, for followers that lag and for
	// calls whose answer was lost. keepRecords and keepBytes bound them. The ends in older records
	// move to a node below ended/, in the transaction that deletes the records. foldSpread and a
	// random part of the other bounds are added, so that one replica usually does so before the
	// others.
	keepFor     = time.Minute
	foldSpread  = 10 * time.Second
	keepRecords = 20_000
	keepBytes   = 64 << 20

	// Bounds of one transaction that moves ends, or it moves one record. A server that accepts the
	// committer's largest transaction accepts this one.
	foldRecords = 500
	foldBytes   = 256 << 10

	// After rotateAfter records the next log begins: the count of created and deleted children would
	// overflow at twice as many.
	rotateAfter = 1 << 29
)

// folded holds the ends of one record.
type folded struct {
	n    int32
	at   int64 // ms, by the server's clock
	zxid int64 // of the record
	size int   // in bytes
	ends []end
}

// logRecords lists the records that are still in the log, as far as they are known.
type logRecords struct {
	from    int32 // those before it are known once they were read
	loaded  bool
	records []folded
	size    int
}

func (k *logRecords) add(w written, at int64) {
	r := folded{n: w.n, at: at, zxid: w.zxid, size: w.size, ends: w.record.ends()}
	k.records, k.size = append(k.records, r), k.size+r.size
}

// part returns the oldest records that one transaction can move, if some are due.
func (k *logRecords) part(now time.Time) []folded {
	spread := rand.N(foldSpread)
	if !k.exceeds(0, k.size, now.Add(-spread), int(spread/time.Millisecond)) {
		return nil
	}
	n, bytes, left := 0, 0, k.size
	for ; n < len(k.records) && n < foldRecords && k.exceeds(n, left, now, 0); n++ {
		r := k.records[n]
		if bytes += sizeOf(r); n > 0 && bytes > foldBytes {
			break
		}
		left -= r.size
	}
	return slices.Clone(k.records[:n])
}

// exceeds reports whether the record at n is over a bound, when size bytes are left. more raises
// the bound by that many records.
func (k *logRecords) exceeds(n, size int, now time.Time, more int) bool {
	if n >= len(k.records) {
		return false
	}
	old := now.UnixMilli()-k.records[n].at > keepFor.Milliseconds()
	return old || len(k.records)-n > keepRecords+more || size > keepBytes+more<<10
}

// drop removes records from the list.
func (k *logRecords) drop(gone func(folded) bool) {
	k.records = slices.DeleteFunc(k.records, func(r folded) bool {
		if gone(r) {
			k.size -= r.size
			return true
		}
		return false
	})
}

// sizeOf estimates what moving a record adds to a request.
func sizeOf(r folded) int {
	bytes := 100
	for _, e := range r.ends {
		bytes += 80 + len(e.ID) + len(e.Reason) + len(e.Tenant) + len(e.Was) + noteBytes(e.Note)
	}
	return bytes
}

// noteBytes estimates the size of a note: JSON can write a byte as two.
func noteBytes(n *store.ValueNote) int {
	if n == nil {
		return 0
	}
	return 50 + 2*(len(n.By)+len(n.Reason))
}

func endsOf(records []folded) []end {
	var ends []end
	for _, r := range records {
		ends = append(ends, r.ends...)
	}
	return ends
}

// fold moves the ends of records that were kept long enough. ahead is added to the time that has
// passed.
func (a *archive) fold(ctx context.Context, ahead time.Duration) error {
	if err := a.loadRecords(ctx); err != nil {
		return err
	}
	for {
		part, epoch, last := a.feed.foldable(ahead)
		if last >= rotateAfter {
			return a.rotate(ctx)
		}
		if len(part) == 0 {
			return nil
		}
		err := a.move(ctx, epoch, part, &zk.CheckVersionRequest{Path: a.root.epoch(), Version: epoch})
		switch {
		case err == nil:
			_ = a.feed.forgetFolded(part[len(part)-1].n, nil)
		case errors.Is(err, zk.ErrNoNode):
			return a.compareRecords(ctx, epoch, part[len(part)-1].n)
		case errors.Is(err, zk.ErrBadVersion):
			return nil // the log was rotated
		}
		if err != nil {
			return err
		}
	}
}

// foldable returns the oldest records if they are due.
func (f *feed) foldable(ahead time.Duration) (part []folded, epoch, last int32) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.current && f.records.loaded {
		part = f.records.part(time.UnixMilli(f.time).Add(ahead))
	}
	return part, f.epoch, f.next
}

// forgetFolded removes the records up to one from the list, except those that still exist, and
// reports whether there were some.
func (f *feed) forgetFolded(upTo int32, there map[int32]bool) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	before := len(f.records.records)
	f.records.drop(func(r folded) bool { return r.n <= upTo && !there[r.n] })
	return len(f.records.records) < before
}

// compareRecords finds out which records still exist, after another replica was faster.
func (a *archive) compareRecords(ctx context.Context, epoch, upTo int32) error {
	l, err := a.chores.get(ctx)
	if err != nil {
		return err
	}
	names, err := a.recordNames(ctx, l, epoch)
	there := make(map[int32]bool, len(names))
	for _, n := range names {
		there[n] = true
	}
	if err == nil && !a.feed.forgetFolded(upTo, there) {
		err = a.deleted(a.root.ended(), zk.ErrNoNode) // nothing else is missing
	}
	return err
}

// loadRecords reads the records from before the start of the feed.
func (a *archive) loadRecords(ctx context.Context) error {
	f := a.feed
	f.mu.Lock()
	todo, epoch, from := f.current && !f.records.loaded, f.epoch, f.records.from
	f.mu.Unlock()
	if !todo {
		return nil
	}
	l, err := a.chores.get(ctx)
	if err != nil {
		return err
	}
	if _, err := a.barrierOn(ctx, l); err != nil {
		return err
	}
	before := logRecords{from: from, loaded: true}
	err = a.eachPart(ctx, l, epoch, from, func(records []folded) error {
		before.records = append(before.records, records...)
		return nil
	})
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.epoch != epoch || f.records.from != from || f.records.loaded {
		return nil // the feed has restarted
	}
	before.records = append(before.records, f.records.records...)
	for _, r := range before.records {
		before.size += r.size
	}
	f.records = before
	return nil
}

// move moves the ends in records and deletes the records.
func (a *archive) move(ctx context.Context, epoch int32, records []folded, checks ...any) error {
	l, err := a.chores.get(ctx)
	if err != nil {
		return err
	}
	ops := checks
	for _, r := range records {
		ops = append(ops, &zk.DeleteRequest{Path: recordPath(a.root.log(epoch), r.n), Version: -1})
	}
	if last := records[len(records)-1]; epoch == a.epoch.Load() {
		mark := store.Encode(foldMark{epoch, last.n, last.zxid})
		ops = append(ops, &zk.SetDataRequest{Path: a.root.logs(), Data: mark, Version: -1})
	}
	if ends := endsOf(records); len(ends) > 0 {
		ops = append(ops, a.create(a.endedPath(), store.Encode(ends)))
	}
	_, err = do(ctx, l, multi(ops...))
	return err
}
