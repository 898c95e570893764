package zookeeper

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
)

// maxHistory is how many bytes of records a feed may begin before, which are kept in memory
// while it tells them.
const maxHistory = 32 << 20

// gone is a whole entry that went.
type gone struct {
	store.Value
	Position int64 `json:"position"` // its czxid
}

// saysAll reports whether what is remembered of an entry is all of it.
func saysAll(was json.RawMessage, e *lock.Entry) bool {
	return len(was) > 0 && !store.IsPlace(was) && store.SaysAll(e)
}

// goneOf returns an entry that goes as its record has it; nil if nothing is known of it.
func goneOf(e *lock.Entry, position int64) json.RawMessage {
	if e.Opaque {
		return nil
	}
	return store.Encode(gone{*valueOf(e, e.Handle), position})
}

// errUntold is why what happened since a number cannot be told.
var errUntold = errors.New("the log does not say all of it any more")

// went returns the entry that a change says is gone.
func (r *reader) went(c change) (*lock.Entry, error) {
	k := c.key().pastKey()
	if c.Whole {
		if e := (store.Past{Text: c.Was, Floor: r.trust.Floor()}).Entry(c.Tenant, c.ID); e != nil {
			return e, nil
		}
	}
	var g gone
	if c.Gone == nil || json.Unmarshal(c.Gone, &g) != nil {
		return nil, fmt.Errorf("%w: what %s was", errUntold, c.ID)
	}
	if err := g.Check(k); err != nil || g.Form > r.trust.Understood() {
		return nil, fmt.Errorf("%w: what %s was: %w", errUntold, c.ID, cmp.Or(err, errDamaged))
	}
	return g.Entry(k, r.number(g.Position)), nil
}

// rewind returns the entries that there were at the end of the transaction since, of those
// that there are after all the records: without what came, and with what went.
func (r *reader) rewind(now []*lock.Entry, records []written, since int64) (*index, error) {
	was, came := newIndex(), map[key]*lock.Entry{}
	for _, e := range now {
		if r.zxid(e.Number) <= since {
			was.add(e)
		} else {
			came[keyOf(e)] = e
		}
	}
	there, left := map[key]uint64{}, map[key]bool{} // what came since, and what was there and went
	for _, w := range records {
		if w.record.Meta && w.record.Form == 0 {
			return nil, errMeta
		}
		for _, c := range w.record.Changes {
			k := c.key()
			switch {
			case c.Notice != nil:
			case c.Joined != nil:
				there[k] = r.number(w.zxid)
			case there[k] != 0:
				delete(there, k)
			case !left[k]:
				e, err := r.went(c)
				if err != nil {
					return nil, err
				}
				if was.byKey[k] != nil || r.zxid(e.Number) > since {
					return nil, fmt.Errorf("%w: where %s was", errUntold, c.ID)
				}
				left[k] = true
				was.add(e)
			}
		}
	}
	if len(there) != len(came) || slices.ContainsFunc(now, func(e *lock.Entry) bool { return came[keyOf(e)] == e && there[keyOf(e)] != e.Number }) {
		return nil, fmt.Errorf("%w: it is not how what there is came about", errUntold)
	}
	return &was, nil
}

// retell returns what the records tell who has the entries and was told everything up to at.
func (r *reader) retell(entries *index, records []written, at lastTold) []retold {
	all := make([]retold, 0, len(records))
	for _, w := range records {
		at.number, at.next, at.last = r.number(w.zxid), w.n+1, &w // a copy, which does not keep all others in memory
		one := retold{to: at}
		for _, c := range w.record.Changes {
			if told, ok := r.tellAgain(entries, c, w); ok {
				one.changes = append(one.changes, told)
			}
		}
		all = append(all, one)
	}
	return all
}

func (r *reader) tellAgain(entries *index, c change, w written) (store.Change, bool) {
	number, k := r.number(w.zxid), c.key()
	switch {
	case c.Notice != nil:
		n, err := noticeIn(c, number)
		return store.Change{Number: number, Notice: n}, err == nil
	case c.Joined != nil:
		e := r.joined(c, w.zxid)
		entries.add(e)
		return store.Change{Number: number, Joined: e}, true
	}
	e := entries.byKey[k]
	if e == nil || !r.ends(c, e) {
		return store.Change{}, false
	}
	entries.remove(k)
	return store.Change{Number: number, Left: c.ID, Reason: c.Reason, Note: (*lock.Note)(c.Note)}, true
}

// foldMark says which record of a log was folded last.
type foldMark struct {
	Epoch int32 `json:"epoch"`
	N     int32 `json:"record"`
	Zxid  int64 `json:"zxid"`
}

// lastFolded reads which record was folded last; its log is none if none is known to be.
func (j *journal) lastFolded(ctx context.Context, l *link) (mark foldMark, err error) {
	n, err := do(ctx, l, get(j.root.logs()))
	if err == nil && json.Unmarshal(n.data, &mark) != nil {
		mark = foldMark{Epoch: -1}
	}
	return mark, err
}

// lastBefore reads the record before another one, without what it says if it was folded. It is nil if
// there is none, or if it cannot be told.
func (j *journal) lastBefore(ctx context.Context, l *link, epoch, n int32) (*written, error) {
	if n == 0 {
		return nil, nil //nolint:nilnil // as it says
	}
	last, err := j.readRecord(ctx, l, epoch, n-1)
	switch {
	case err == nil:
		return &last, nil
	case !answered(err) && !errors.Is(err, errDamaged):
		return nil, err
	}
	mark, err := j.lastFolded(ctx, l)
	if err != nil || mark.Epoch != epoch || mark.N != n-1 {
		return nil, err
	}
	return &written{n: mark.N, zxid: mark.Zxid}, nil
}

// errFolding says that records were folded while the ones behind them were read.
var errFolding = errors.New("the log is being folded")

// history reads the records of a log that were written after a transaction, before the one at
// end, and the last one before these: without what it says if it was folded, and -1 if there is
// none. It fails if it cannot tell that these are all of them.
func (j *journal) history(ctx context.Context, l *link, epoch, end int32, since int64) (all []written, before written, err error) {
	for {
		if all, before, err = j.readHistory(ctx, l, epoch, end, since); !errors.Is(err, errFolding) {
			return all, before, err
		}
	}
}

func (j *journal) readHistory(ctx context.Context, l *link, epoch, end int32, since int64) (all []written, before written, err error) {
	if _, err := j.barrierOn(ctx, l); err != nil {
		return nil, before, err
	}
	mark, err := j.lastFolded(ctx, l)
	if err != nil {
		return nil, before, err
	}
	log, err := do(ctx, l, func(c *zk.Conn) (*zk.Stat, error) {
		_, stat, err := c.Get(j.root.log(epoch))
		return stat, err
	})
	if err != nil {
		return nil, before, err
	}
	for from, size := end, 0; from > 0; {
		to := from
		from = max(0, from-foldRecords)
		part, err := j.presentRecords(ctx, l, epoch, from, to)
		if err != nil {
			return nil, before, err
		}
		for _, w := range part {
			size += w.size
		}
		first, _ := slices.BinarySearchFunc(part, since, func(w written, at int64) int { return cmp.Compare(w.zxid, at+1) })
		all = append(part[first:], all...)
		switch {
		case first > 0:
			return all, part[first-1], nil
		case size > maxHistory:
			return nil, before, fmt.Errorf("%w: it is more than %d bytes", errUntold, maxHistory)
		case len(part) < int(to-from):
			return all, written{n: mark.N, zxid: mark.Zxid}, j.foldedBefore(ctx, l, mark, place{epoch, to - int32(len(part))}, since)
		}
	}
	if log.Czxid <= since {
		return all, written{n: -1}, nil
	}
	return nil, before, errUntold
}

// presentRecords reads those of some records that are there still: the last ones, without a
// gap.
func (j *journal) presentRecords(ctx context.Context, l *link, epoch, from, to int32) ([]written, error) {
	all := make([]written, to-from)
	err := inParallel(len(all), func(i int) (err error) {
		if all[i], err = j.readRecord(ctx, l, epoch, from+int32(i)); errors.Is(err, zk.ErrNoNode) {
			return nil
		}
		return err
	})
	first := len(all)
	for first > 0 && all[first-1].record != nil {
		first--
	}
	return all[first:], err
}

// foldedBefore fails unless all records before one were folded, and the last of them is not after the
// transaction. The mark was read before it was found which records are there: it may be of earlier ones, and
// then another reading is to tell.
func (j *journal) foldedBefore(ctx context.Context, l *link, mark foldMark, first place, since int64) error {
	if mark.Epoch == first.epoch && mark.N == first.n-1 && mark.Zxid <= since {
		return nil
	}
	now, err := j.lastFolded(ctx, l)
	switch {
	case err != nil:
		return err
	case now == mark || now.Epoch != first.epoch || now.Zxid > since:
		return errUntold
	}
	return errFolding
}
