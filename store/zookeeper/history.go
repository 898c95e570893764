package zookeeper

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sort"

	"github.com/go-zookeeper/zk"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
)

// gone is a whole entry that left.
type gone struct {
	store.Value
	Position int64 `json:"position"` // its czxid
}

// saysAll reports whether the past of an entry is all of it.
func saysAll(was json.RawMessage, e *lock.Entry) bool {
	return len(was) > 0 && !store.IsPlace(was) && store.SaysAll(e)
}

// goneOf returns a leaving entry in the form of its record, or nil if nothing is known of it.
func goneOf(e *lock.Entry, position int64) json.RawMessage {
	if e.Opaque {
		return nil
	}
	return store.Encode(gone{*valueOf(e, e.Handle), position})
}

// errUntold means that a feed cannot begin at an earlier number.
var errUntold = errors.New("the log has not all of it any more")

// went returns the entry of a change that removed it, if it existed at a transaction.
func (r *reader) went(c change, since int64) (*lock.Entry, error) {
	e, err := r.wentOf(c)
	if err == nil && r.zxid(e.Number) > since {
		return nil, fmt.Errorf("%w: where %s was", errUntold, c.ID)
	}
	return e, err
}

func (r *reader) wentOf(c change) (*lock.Entry, error) {
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
	if err := g.Check(k); err != nil {
		return nil, fmt.Errorf("%w: what %s was: %w", errUntold, c.ID, err)
	}
	return g.Entry(k, r.number(g.Position)), nil
}

// foldMark names the last folded record of a log.
type foldMark struct {
	Epoch int32 `json:"epoch"`
	N     int32 `json:"record"`
	Zxid  int64 `json:"zxid"`
}

// lastFolded reads which record was folded last; its log is none if that is unknown.
func (j *journal) lastFolded(ctx context.Context, l *link) (mark foldMark, err error) {
	n, err := do(ctx, l, get(j.root.logs()))
	if err == nil && json.Unmarshal(n.data, &mark) != nil {
		mark = foldMark{Epoch: -1}
	}
	return mark, err
}

// lastBefore reads the record before another one, without its changes if it was folded. It is nil
// if there is none, or if it is unknown.
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

// errFolding means that records were folded while later ones were read.
var errFolding = errors.New("the log is being folded")

// placeTries bounds the attempts to find a position in a log that is being folded.
const placeTries = 10

// placeAfter returns the first record after a transaction, before the one at end. It fails if
// some records since then are gone.
func (j *journal) placeAfter(
	ctx context.Context, l *link, epoch, end int32, since int64,
) (int32, error) {
	for range placeTries {
		n, err := j.tryPlaceAfter(ctx, l, epoch, end, since)
		if !errors.Is(err, errFolding) && !errors.Is(err, zk.ErrNoNode) || ctx.Err() != nil {
			return n, err
		}
	}
	return 0, errUntold
}

func (j *journal) tryPlaceAfter(
	ctx context.Context, l *link, epoch, end int32, since int64,
) (n int32, err error) {
	numbers, err := j.recordNames(ctx, l, epoch)
	if err != nil {
		return 0, err
	}
	mark, err := j.lastFolded(ctx, l)
	if err != nil {
		return 0, err
	}
	before, _ := slices.BinarySearch(numbers, end)
	numbers = numbers[:before]
	first := sort.Search(len(numbers), func(i int) bool {
		w, failed := j.readRecord(ctx, l, epoch, numbers[i])
		err = cmp.Or(err, failed)
		return w.zxid > since
	})
	if err != nil {
		return 0, err
	}
	n = end - int32(len(numbers)-first)
	switch {
	case first < len(numbers) && numbers[first] != n: // a record is missing
	case first > 0 && numbers[first-1] == n-1:
		return n, nil
	case mark.Epoch == epoch && mark.N == n-1 && mark.Zxid <= since:
		return n, nil
	case n == 0:
		return n, j.bornBy(ctx, l, epoch, since)
	case mark.Epoch == epoch && first == 0 && mark.N >= n:
		return 0, errFolding
	}
	return 0, errUntold
}

// bornBy fails unless the log existed at a transaction.
func (j *journal) bornBy(ctx context.Context, l *link, epoch int32, since int64) error {
	stat, err := j.readHead(ctx, l, epoch)
	if err == nil && stat.Czxid > since {
		err = errUntold
	}
	return err
}
