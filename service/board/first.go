package board

import (
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service/view"
)

// cold reports whether the board has no rows yet, and has them drawn in the background: whoever
// looks first need not wait for the rows of all locks if the indexes of names will do.
func (b *Board) cold() bool {
	if b.ready.Load() {
		return false
	}
	b.signal()
	return true
}

func (b *Board) signal() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// firstPage is a page by name, from the indexes: only the rows of the page are read.
func (b *Board) firstPage(q Query) *Page {
	page := &Page{Now: b.now()}
	first, probe := best{most: q.Limit + 1, compare: q.compare}, &view.Row{}
	page.Revision = b.source.Names(q.State, q.Tenant, func(r lock.Ref) {
		if !q.Sees(r) || q.Match != nil && !q.Match(r.Name) {
			return
		}
		page.Matching++
		probe.Ref = r
		if line := (Line{Row: probe}); first.wants(line) && q.follows(line) {
			first.add(Line{Row: &view.Row{Ref: r}})
		}
	})
	lines := first.take()
	if len(lines) > q.Limit {
		lines = lines[:q.Limit]
		page.Next = lines[q.Limit-1].Cursor()
	}
	refs := make([]lock.Ref, 0, len(lines))
	for _, l := range lines {
		refs = append(refs, l.Ref)
	}
	b.source.Rows(refs, func(_ lock.Ref, row *view.Row) {
		if row != nil { // else it is gone meanwhile
			page.Rows = append(page.Rows, Line{Row: row, Share: b.share(row, page.Now)})
		}
	})
	return page
}

// firstTotals counts from the indexes, and reads the rows of locks at which somebody waits.
func (b *Board) firstTotals(s Sight, worst int) *Totals {
	sums := b.source.Sums(s.Tenant)
	t := &Totals{Locks: sums.Locks, Held: sums.Held, Holding: sums.Holding, Now: b.now()}
	var refs []lock.Ref
	t.Revision = b.source.Names("contended", s.Tenant, func(r lock.Ref) {
		if s.Sees(r) {
			refs = append(refs, r)
		}
	})
	q := Query{Sort: ByWaiters, Down: true}
	first := best{most: worst, compare: q.compare}
	b.source.Rows(refs, func(_ lock.Ref, row *view.Row) {
		if row == nil || row.Waiting == 0 {
			return
		}
		t.Contended++
		t.Waiting += row.Waiting
		t.oldest(row)
		first.add(b.line(ByWaiters, row, t.Now))
	})
	t.Worst = first.take()
	return t
}
