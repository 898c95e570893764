package board

import (
	"slices"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service/view"
)

// cold reports whether the board has no rows yet, and has them drawn in the background: whoever
// looks first need not wait for the rows of all locks.
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

// rows are those of the board, or, if there are none yet, what a glance at the view tells.
type rows struct {
	each func(give func(*view.Row)) (revision uint64)
	keep func(*view.Row) *view.Row // of a row that was given: one that stays
	done func()
}

// look returns the rows of locks in a state, or with "" of all, and perhaps of others.
func (b *Board) look(s Sight, state string) rows {
	if !b.ready.Load() {
		return rows{
			each: func(give func(*view.Row)) uint64 { return b.source.Glance(state, s.Tenant, give) },
			keep: func(row *view.Row) *view.Row {
				kept := *row
				kept.Holders = slices.Clone(row.Holders)
				return &kept
			},
			done: b.signal, // and not before: drawing the rows would take half of the machine from the glance
		}
	}
	b.refresh()
	b.mu.RLock()
	if s.May != nil { // which may take long for each name, and who draws waits for who reads, as then all others do
		defer b.mu.RUnlock()
		return b.apart(s.Tenant)
	}
	return rows{
		each: func(give func(*view.Row)) uint64 {
			for _, row := range b.rows {
				give(row)
			}
			return b.revision
		},
		keep: func(row *view.Row) *view.Row { return row },
		done: b.mu.RUnlock,
	}
}

// apart is the rows of a tenant's locks, or with "" of all, to be gone through without the board. The caller
// holds mu. Rows do not change: others are put in their places.
func (b *Board) apart(tenant string) rows {
	var own []*view.Row
	for _, row := range b.rows {
		if tenant == "" || row.Tenant == tenant {
			own = append(own, row)
		}
	}
	revision := b.revision
	return rows{
		each: func(give func(*view.Row)) uint64 {
			for _, row := range own {
				give(row)
			}
			return revision
		},
		keep: func(row *view.Row) *view.Row { return row },
		done: func() {},
	}
}

// firstPage is a page by name, from the indexes: only the rows of the page are read.
func (b *Board) firstPage(q Query) *Page {
	page := &Page{Now: b.now()}
	first, probe := best{most: q.Limit + 1, compare: q.compare}, &view.Row{}
	page.Revision = b.source.Names(q.State, q.Tenant, func(r lock.Ref) {
		page.Looked++
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

// byWaits reports whether those locks come first for which others wait, and the rest by tenants and names.
func (q *Query) byWaits() bool {
	return (q.Sort == ByWaiters || q.Sort == ByOldestWait) && q.Down && q.After == nil && q.Holder == "" && q.State == ""
}

// firstWaits is the first page by waits: the locks for which others wait, and, where these leave room,
// others by tenants and names. Locks change between the reads, so the page goes by what each has yielded: a
// lock that is on it is not taken again, and if there is a next page is known before rows turn out to be gone.
func (b *Board) firstWaits(q Query) *Page {
	waits := q
	waits.State = "contended"
	page := b.Page(waits)
	rest := b.rest(q, page)
	b.source.Rows(rest, func(_ lock.Ref, row *view.Row) {
		if row != nil { // else it is gone meanwhile
			line := b.line(q.Sort, row, page.Now)
			line.Share = b.share(row, page.Now)
			page.Rows = append(page.Rows, line)
		}
	})
	slices.SortFunc(page.Rows, q.compare) // somebody may have come to wait at one of the rest
	return page
}

// rest returns which locks fill the page besides its rows, counts all that match, and says where the
// next page begins. The revision stays that of the rows, which were read before.
func (b *Board) rest(q Query, page *Page) (rest []lock.Ref) {
	there := make(map[lock.Ref]struct{}, len(page.Rows))
	for _, l := range page.Rows {
		there[l.Ref] = struct{}{}
	}
	page.Matching, page.Looked = 0, 0
	b.source.Names("", q.Tenant, func(r lock.Ref) {
		page.Looked++
		if !q.Sees(r) || q.Match != nil && !q.Match(r.Name) {
			return
		}
		page.Matching++
		if _, again := there[r]; !again && len(page.Rows)+len(rest) <= q.Limit {
			rest = append(rest, r)
		}
	})
	room := q.Limit - len(page.Rows)
	if len(rest) <= room {
		return rest
	}
	last := b.line(q.Sort, &view.Row{Ref: rest[max(room-1, 0)]}, page.Now)
	if room == 0 {
		last = page.Rows[q.Limit-1]
	}
	page.Next = last.Cursor()
	return rest[:room]
}

// firstTotals counts from the indexes, and reads the rows of locks at which somebody waits.
func (b *Board) firstTotals(s Sight, worst int) *Totals {
	t := &Totals{Now: b.now()}
	var refs []lock.Ref
	t.Revision = b.source.Names("contended", s.Tenant, func(r lock.Ref) {
		if s.Sees(r) {
			refs = append(refs, r)
		}
	})
	sums := b.source.Sums(s.Tenant) // not before: they are complete up to the revision
	t.Locks, t.Held, t.Holding = sums.Locks, sums.Held, sums.Holding
	q := Query{Sort: ByWaiters, Down: true}
	first := best{most: worst, compare: q.compare}
	b.source.Rows(refs, func(_ lock.Ref, row *view.Row) {
		if row == nil || row.Waiting == 0 {
			return
		}
		t.Contended++
		t.Waiting += row.Waiting
		if t.older(row) {
			t.Oldest = row
		}
		first.add(b.line(ByWaiters, row, t.Now))
	})
	t.Worst = first.take()
	return t
}
