package view

import (
	"time"

	"github.com/google/btree"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service/figures"
)

const (
	// MaxRowHolders is how many holders a row has at most.
	MaxRowHolders = 10

	// rowChunk is how many rows are read before the view is let go for a moment.
	rowChunk = 500
)

// Row is a lock in use, as operators see it.
type Row struct {
	lock.Ref
	Holders []Holder // the longest holding first, without ExpiresAt; at most 10
	Holding int      // how many hold
	Waiting int
	Oldest  *lock.Entry // of those that wait, who has done so longest; nil if nobody waits
	Newest  uint64      // the newest fence, 0 if this replica saw none
	Use     figures.Use
}

// Since returns since when the lock is held by the one who has held it longest, zero if
// nobody holds it.
func (r *Row) Since() time.Time {
	if len(r.Holders) == 0 {
		return time.Time{}
	}
	return r.Holders[0].Since
}

// Rows reads the rows of locks; of those that nobody uses there is none. It holds the view
// for a part of them at a time.
func (v *View) Rows(refs []lock.Ref, give func(lock.Ref, *Row)) {
	for len(refs) > 0 {
		n := min(len(refs), rowChunk)
		v.rows(refs[:n], give)
		refs = refs[n:]
	}
}

func (v *View) rows(refs []lock.Ref, give func(lock.Ref, *Row)) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	for _, r := range refs {
		give(r, v.row(r))
	}
}

// row describes a lock, nil if nobody uses it.
func (v *View) row(r lock.Ref) *Row {
	row := &Row{}
	if !v.fill(row, r) {
		return nil
	}
	return row
}

// fill describes a lock in a row that may have been another's, and reports whether anybody uses it.
func (v *View) fill(row *Row, r lock.Ref) bool {
	q := v.table.Queue(r)
	if q == nil {
		return false
	}
	*row = Row{Ref: r, Holders: row.Holders[:0], Holding: q.Holders(), Waiting: q.Len() - q.Holders()}
	for e := range without("", q.Holding(), MaxRowHolders) {
		row.Holders = append(row.Holders, Holder{Entry: e, Since: v.since[e.ID]})
		row.Newest = max(row.Newest, e.Number)
	}
	for e := range without("", q.Waiters(), 1) {
		row.Oldest = e
	}
	newest, use := v.Figures.Recent(r, row.Since())
	row.Newest, row.Use = max(row.Newest, newest), use
	return true
}

// newTenants returns the index of tenants with entries.
func newTenants() *btree.BTreeG[string] { return btree.NewOrderedG[string](32) }
