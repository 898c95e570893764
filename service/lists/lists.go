// Package lists sorts, searches and counts the locks of all tenants for operators. It keeps no
// state. It reads the view in parts, so that grants do not wait for a list.
package lists

import (
	"slices"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service/figures"
	"github.com/fencepost/fencepost/service/view"
)

// Source provides the locks; [view.Lists] is one.
type Source interface {
	// Rows reads the rows of some locks; nil for a lock that is not in use.
	Rows(refs []lock.Ref, give func(lock.Ref, *view.Row))

	// EachRow yields the rows of locks in a state, or with "" of all. A row is valid until
	// give returns.
	EachRow(state, tenant string, give func(*view.Row)) (number uint64)

	// EachName is EachRow for names, which are cheaper.
	EachName(state, tenant string, give func(lock.Ref)) (number uint64)

	TenantNames() []string
	Sums(tenant string) view.Sums
}

// Lists are the lists of one replica.
type Lists struct {
	source  Source
	figures *figures.Figures
	now     func() time.Time
	began   time.Time
}

// New returns lists. now is the clock by which entries joined their queues.
func New(source Source, f *figures.Figures, now func() time.Time) *Lists {
	return &Lists{source: source, figures: f, now: now, began: now()}
}

// Page returns a page of locks. Its cost grows with the number of locks of the tenant, or of all
// tenants: about 0.1 µs for each in the orders of names and waiters, and 1 µs in the others.
func (l *Lists) Page(q Query) *Page {
	l.figures.Settle() // not while it reads the view
	switch {
	case q.Sort == ByName && q.Holder == "":
		return l.byName(q)
	case q.byWaits():
		return l.firstByWaits(q)
	}
	page := &Page{Now: l.now()}
	first := best{most: q.Limit + 1, compare: q.compare}
	page.Revision = l.source.EachRow(q.State, q.Tenant, func(row *view.Row) {
		if !q.selects(row) {
			return
		}
		page.Matching++
		if line := l.line(q.Sort, row, page.Now); q.follows(line) && first.wants(line) {
			line.Row = keep(row)
			first.add(line)
		}
	})
	page.Rows = page.cut(first.take(), q.Limit)
	l.addFigures(page.Rows, page.Now)
	return page
}

// keep copies a row, which is only valid briefly.
func keep(row *view.Row) *view.Row {
	kept := *row
	kept.Holders = slices.Clone(row.Holders)
	return &kept
}

// cut returns at most limit lines, and notes where the next page begins.
func (p *Page) cut(lines []Line, limit int) []Line {
	if len(lines) > limit {
		lines = lines[:limit]
		p.Next = lines[limit-1].Cursor()
	}
	return lines
}

// addFigures reads the figures of the page's lines only. For every lock of a tenant, that would
// cost more than reading the lock.
func (l *Lists) addFigures(lines []Line, now time.Time) {
	for i := range lines {
		newest, share := l.recent(lines[i].Row, now)
		lines[i].Newest, lines[i].Share = max(lines[i].Newest, newest), share
	}
}

func (l *Lists) recent(row *view.Row, now time.Time) (newest uint64, share int) {
	newest, use := l.figures.Recent(row.Ref, row.Since())
	return newest, use.Share(now, now.Sub(l.began))
}
