package lists

import (
	"slices"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service/view"
)

// byName returns a page in the order of names. Of all other locks it reads only the names.
func (l *Lists) byName(q Query) *Page {
	page := &Page{Now: l.now()}
	first, probe := best{most: q.Limit + 1, compare: q.compare}, &view.Row{}
	page.Revision = l.source.EachName(q.State, q.Tenant, func(r lock.Ref) {
		if !q.matches(r) {
			return
		}
		page.Matching++
		probe.Ref = r
		if line := (Line{Row: probe}); first.wants(line) && q.follows(line) {
			first.add(Line{Row: &view.Row{Ref: r}})
		}
	})
	var refs []lock.Ref
	for _, line := range page.cut(first.take(), q.Limit) {
		refs = append(refs, line.Ref)
	}
	l.addRows(page, q, refs)
	l.addFigures(page.Rows, page.Now)
	return page
}

// addRows adds the locks that are still in use.
func (l *Lists) addRows(page *Page, q Query, refs []lock.Ref) {
	l.source.Rows(refs, func(_ lock.Ref, row *view.Row) {
		if row != nil {
			page.Rows = append(page.Rows, l.line(q.Sort, row, page.Now))
		}
	})
}

// byWaits reports whether contended locks come first, and then the others by tenant and name.
func (q *Query) byWaits() bool {
	waits := q.Sort == ByWaiters || q.Sort == ByOldestWait
	return waits && q.Down && q.After == nil && q.Holder == "" && q.State == ""
}

// firstByWaits returns the first page by waits: the contended locks, and, if they do not fill
// it, others by tenant and name. Locks change between the two reads. A lock that is on the page
// is not added again, and the cursor does not depend on rows that are gone by then.
func (l *Lists) firstByWaits(q Query) *Page {
	waits := q
	waits.State = "contended"
	page := l.Page(waits)
	l.addRows(page, q, l.rest(q, page))
	slices.SortFunc(page.Rows, q.compare) // an entry may have joined the queue of one of the rest
	l.addFigures(page.Rows, page.Now)
	return page
}

// rest returns the locks that fill the page after its rows, counts all matches, and notes where
// the next page begins. The page keeps the revision of its rows, which is the older one.
func (l *Lists) rest(q Query, page *Page) (rest []lock.Ref) {
	there := make(map[lock.Ref]struct{}, len(page.Rows))
	for _, line := range page.Rows {
		there[line.Ref] = struct{}{}
	}
	page.Matching = 0
	l.source.EachName("", q.Tenant, func(r lock.Ref) {
		if !q.matches(r) {
			return
		}
		page.Matching++
		if _, again := there[r]; !again && len(page.Rows)+len(rest) <= q.Limit {
			rest = append(rest, r)
		}
	})
	left := q.Limit - len(page.Rows)
	if len(rest) <= left {
		return rest
	}
	last := l.line(q.Sort, &view.Row{Ref: rest[max(left-1, 0)]}, page.Now)
	if left == 0 {
		last = page.Rows[q.Limit-1]
	}
	page.Next = last.Cursor()
	return rest[:left]
}
