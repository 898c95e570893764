package lists

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service/view"
)

// Sort is an order of locks.
type Sort string

// The orders. Equal locks follow each other by tenant and name.
const (
	ByName        Sort = "name"
	ByWaiters     Sort = "waiters"
	ByOldestWait  Sort = "oldest_wait"
	ByHeldFor     Sort = "held_for"
	ByUtilization Sort = "utilization"
)

// Sorts returns all orders.
func Sorts() []Sort { return []Sort{ByName, ByWaiters, ByOldestWait, ByHeldFor, ByUtilization} }

// Sight is the set of locks that an operator may see.
type Sight struct {
	Tenant string            // "" is all but the replicas' own
	May    func(string) bool // by name; nil is all
}

// Sees reports whether a lock is in sight.
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

// Cursor marks where a page ends.
type Cursor struct {
	Key int64
	lock.Ref
}

// Page is a page of a list.
type Page struct {
	Rows     []Line
	Next     *Cursor // nil on the last page
	Matching int     // locks on all pages
	Revision uint64
	Now      time.Time // the instant of the shares
}

// Line is a lock on a page.
type Line struct {
	*view.Row
	Share   int           // percent of the last five minutes for which it was held
	Closure *lock.Closure // the closure of the lock that ends last, or nil

	// Of the lines of totals: the first holder hangs, and how long others held the lock, 0 if unknown.
	Hangs bool
	Usual time.Duration

	// ExpiresAt is the end of the first holder's lease, zero if unknown.
	ExpiresAt time.Time

	key int64
}

// Holder returns the entry that has held the lock longest, or nil.
func (l *Line) Holder() *lock.Entry {
	if len(l.Holders) == 0 {
		return nil
	}
	return l.Holders[0].Entry
}

// Cursor returns the position after the line.
func (l *Line) Cursor() *Cursor { return &Cursor{l.key, l.Ref} }

// follows reports whether a line comes after the page before.
func (q *Query) follows(l Line) bool {
	return q.After == nil || q.compare(l, Line{Row: &view.Row{Ref: q.After.Ref}, key: q.After.Key}) > 0
}

// matches reports whether a lock is in sight and matches the search.
func (q *Query) matches(r lock.Ref) bool { return q.Sees(r) && (q.Match == nil || q.Match(r.Name)) }

func (q *Query) selects(row *view.Row) bool {
	switch {
	case q.State == "held" && row.Holding == 0, q.State == "contended" && row.Waiting == 0:
		return false
	case q.Holder != "" &&
		!slices.ContainsFunc(row.Holders, func(h view.Holder) bool { return h.Entry.Holder == q.Holder }):
		return false
	}
	return q.matches(row.Ref)
}

// line adds the sort key to a row.
func (l *Lists) line(by Sort, row *view.Row, now time.Time) Line {
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
		_, share := l.recent(row, now)
		line.key = int64(share)
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

// best keeps the first lines of many.
type best struct {
	most    int
	compare func(a, b Line) int
	lines   []Line
	cut     bool // the first most lines are sorted; later lines are dropped
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
