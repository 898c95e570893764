package board

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service/view"
)

// Sort is by what locks are listed.
type Sort string

// By what locks can be listed. Locks that are alike follow each other by tenant and name.
const (
	ByName        Sort = "name"
	ByWaiters     Sort = "waiters"
	ByOldestWait  Sort = "oldest_wait"
	ByHeldFor     Sort = "held_for"
	ByUtilization Sort = "utilization"
)

// Sorts returns all of them.
func Sorts() []Sort { return []Sort{ByName, ByWaiters, ByOldestWait, ByHeldFor, ByUtilization} }

// Sight is which locks somebody may see.
type Sight struct {
	Tenant string            // "" is all but that of the replicas themselves
	May    func(string) bool // which names; nil is all
}

// Sees reports whether a lock is among them.
func (s Sight) Sees(r lock.Ref) bool { return s.isOf(r) && (s.May == nil || s.May(r.Name)) }

func (s Sight) isOf(r lock.Ref) bool {
	return s.Tenant == r.Tenant || s.Tenant == "" && r.Tenant != lock.OwnTenant
}

// Query asks for a page of locks.
type Query struct {
	Sight
	Match  func(name string) bool // nil is all
	State  string                 // "", "held" or "contended"
	Holder string                 // "" is all; otherwise one of the first ten holders
	Sort   Sort
	Down   bool // the largest first
	Limit  int
	After  *Cursor
}

// Cursor is where a page ends.
type Cursor struct {
	Key int64
	lock.Ref
}

// Page is a part of the locks.
type Page struct {
	Rows     []Line
	Next     *Cursor // nil on the last page
	Matching int     // how many locks there are on all pages
	Looked   int     // at so many of the tenant, or of all, to find them
	Revision uint64
	Now      time.Time // to which the shares are
}

// Line is a lock on a page.
type Line struct {
	*view.Row
	Share   int           // in hundredths: for how much of the last five minutes it was held
	Closure *lock.Closure // keeps new entries out, of several the one that lasts longest; nil if the lock is open

	// ExpiresAt is until when the lease of the first holder lasts; zero if that is not known.
	ExpiresAt time.Time

	key int64
}

// Cursor returns the place after the line.
func (l *Line) Cursor() *Cursor { return &Cursor{l.key, l.Ref} }

// Page returns a page of locks as they were a moment ago. It takes time in proportion to how
// many locks are in use, but not of grants. Whoever looks first does not wait for the rows.
func (b *Board) Page(q Query) *Page {
	if q.Sort == ByName && q.Holder == "" && b.cold() {
		return b.firstPage(q)
	}
	if q.byWaits() && b.cold() {
		return b.firstWaits(q)
	}
	all := b.look(q.Sight, q.State)
	defer all.done()
	page := &Page{Now: b.now()}
	first := best{most: q.Limit + 1, compare: q.compare}
	page.Revision = all.each(func(row *view.Row) {
		if q.isOf(row.Ref) {
			page.Looked++
		}
		if !q.selects(row) {
			return
		}
		page.Matching++
		line := b.line(q.Sort, row, page.Now)
		if q.follows(line) && first.wants(line) {
			line.Row = all.keep(row)
			first.add(line)
		}
	})
	if page.Rows = first.take(); len(page.Rows) > q.Limit {
		page.Rows = page.Rows[:q.Limit]
		page.Next = page.Rows[q.Limit-1].Cursor()
	}
	for i := range page.Rows {
		page.Rows[i].Share = b.share(page.Rows[i].Row, page.Now)
	}
	return page
}

// follows reports whether a line comes after the page before.
func (q *Query) follows(l Line) bool {
	return q.After == nil || q.compare(l, Line{Row: &view.Row{Ref: q.After.Ref}, key: q.After.Key}) > 0
}

func (q *Query) selects(row *view.Row) bool {
	switch {
	case !q.Sees(row.Ref), q.State == "held" && row.Holding == 0, q.State == "contended" && row.Waiting == 0:
		return false
	case q.Holder != "" && !slices.ContainsFunc(row.Holders, func(h view.Holder) bool { return h.Entry.Holder == q.Holder }):
		return false
	}
	return q.Match == nil || q.Match(row.Name)
}

func (b *Board) share(row *view.Row, now time.Time) int { return row.Use.Share(now, now.Sub(b.began)) }

// line gives a row the number by which it is sorted.
func (b *Board) line(by Sort, row *view.Row, now time.Time) Line {
	line := Line{Row: row}
	switch by {
	case ByWaiters:
		line.key = int64(row.Waiting)
	case ByOldestWait:
		line.key = math.MinInt64
		if row.Oldest != nil {
			line.key = -row.Oldest.EnqueuedAt.UnixNano()
		}
	case ByHeldFor:
		line.key = math.MinInt64
		if since := row.Since(); !since.IsZero() {
			line.key = -since.UnixNano()
		}
	case ByUtilization:
		line.key = int64(b.share(row, now))
	}
	return line
}

func (q *Query) compare(a, b Line) int {
	order := cmp.Compare(a.key, b.key)
	if q.Down {
		order = -order
	}
	if q.Sort != ByName {
		return cmp.Or(order, cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Name, b.Name))
	}
	if order = cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Tenant, b.Tenant)); q.Down {
		order = -order
	}
	return order
}

// best keeps the first of many lines.
type best struct {
	most    int
	compare func(a, b Line) int
	lines   []Line
	cut     bool // there are most of them in order at the front, and no other will do behind the last of those
}

// wants reports whether a line may be among the first.
func (b *best) wants(l Line) bool { return !b.cut || b.compare(l, b.lines[b.most-1]) < 0 }

func (b *best) add(l Line) {
	if !b.wants(l) {
		return
	}
	if b.lines = append(b.lines, l); len(b.lines) >= 2*b.most+64 {
		b.order()
		b.cut = true
	}
}

func (b *best) order() {
	slices.SortFunc(b.lines, b.compare)
	if len(b.lines) > b.most {
		b.lines = b.lines[:b.most]
	}
}

func (b *best) take() []Line {
	b.order()
	return b.lines
}
