package figures

import (
	"slices"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/lock/order"
)

const (
	// betweenContradictions is the least time between two log lines about one tenant's contradicting
	// orders.
	betweenContradictions = 10 * time.Second

	maxLimiters = 1000 // tenants with a limiter
)

// orders are the orders in which named holders take locks.
type orders struct {
	graph        *order.Graph
	contradicted uint64
	limiters     map[string]*limiter // of log lines, by tenant
}

// Contradiction is one that a grant has shown.
type Contradiction struct {
	order.Contradiction
	Number   uint64 // the store's number that the view had reached
	At       time.Time
	Entry    *lock.Entry
	Silenced uint64 // contradictions of the tenant without a log line since the last one
	Quiet    bool   // no log line, because the tenant's last one is recent
}

// OrderReport holds the orders in which locks are taken, as one replica has learnt them.
type OrderReport struct {
	Contradictions []order.Contradiction // the newest first
	Orders         []order.Edge          // the most recently seen first
	Total          int                   // the number of known orders
	Dropped        uint64                // orders dropped over the limit, of all tenants
}

// Granted leaves the grant of a named holder, with what else it holds, the latest first. number is
// what the view has reached.
func (f *Figures) Granted(e *lock.Entry, also []*lock.Entry, number uint64, now time.Time) {
	f.leave(&note{Event: lock.Event{ID: lock.EventID{Number: number}, Entry: e, At: now}, also: also})
}

// learn learns the order in which the holder of an entry takes locks.
func (f *Figures) learn(n *note) {
	for _, c := range f.orders.graph.Granted(n.Entry, slices.Values(n.also), n.At) {
		f.orders.contradicted++
		silenced, ok := f.orders.limiter(n.Entry.Tenant).pass(n.At, betweenContradictions)
		if f.Contradicts != nil {
			f.Contradicts(Contradiction{
				Contradiction: c, Number: n.ID.Number, At: n.At, Entry: n.Entry, Silenced: silenced, Quiet: !ok,
			})
		}
	}
}

func (o *orders) limiter(tenant string) *limiter {
	l := o.limiters[tenant]
	if l == nil {
		if len(o.limiters) >= maxLimiters {
			clear(o.limiters)
		}
		l = &limiter{}
		o.limiters[tenant] = l
	}
	return l
}

// LockOrder returns the orders in which named holders take locks, and their contradictions.
// tenant "" is all.
func (f *Figures) LockOrder(tenant string, limit int) OrderReport {
	f.lock()
	defer f.mu.Unlock()
	r := OrderReport{Contradictions: f.orders.graph.Contradictions(tenant, limit)}
	r.Orders, r.Total, r.Dropped = f.orders.graph.Edges(tenant, limit)
	return r
}

// Contradicted returns how many contradictions were found.
func (f *Figures) Contradicted() uint64 {
	f.lock()
	defer f.mu.Unlock()
	return f.orders.contradicted
}

// limiter passes one call per interval and counts the others.
type limiter struct {
	last   time.Time
	passed uint64 // calls skipped since the last pass
}

// pass reports whether the interval is over, and how many calls were skipped since the last pass.
func (l *limiter) pass(now time.Time, every time.Duration) (silenced uint64, ok bool) {
	if !l.last.IsZero() && now.Sub(l.last) < every {
		l.passed++
		return 0, false
	}
	silenced, l.passed, l.last = l.passed, 0, now
	return silenced, true
}
