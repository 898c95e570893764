package outbox

import (
	"slices"
	"time"
)

// turns are an owner's deliveries that wait to be put into the store, by tenant.
type turns struct {
	waiting map[string]*waiting
	next    time.Time      // when the first tenant has its turn, if some wait
	owed    map[string]int // that are neither made nor kept, by tenant
}

// waiting are those of a tenant: those that the cursor waits for, and those of which is only to be put down what has
// become of them, which have every fourth turn.
type waiting struct {
	fresh, other []*delivery
	at           time.Time // of the next turn
	turns        int
	over         int // of them, which nobody needs any more
}

const turnOfOther = 4

func newTurns() turns { return turns{waiting: map[string]*waiting{}, owed: map[string]int{}} }

// timer returns what is sent to when a tenant has its turn; nil if none waits.
func (q *turns) timer() (<-chan time.Time, func() bool) {
	if len(q.waiting) == 0 {
		return noTimer()
	}
	return timerAt(q.next)
}

// soonest says that a tenant has its turn at some time.
func (q *turns) soonest(at time.Time) {
	if q.next.IsZero() || at.Before(q.next) {
		q.next = at
	}
}

func (q *waiting) add(d *delivery) {
	if len(d.items) > 0 {
		q.fresh = append(q.fresh, d)
	} else {
		q.other = append(q.other, d)
	}
}

// next takes out the next one, nil if there is none.
func (q *waiting) next() (d *delivery) {
	q.turns++
	from, then := &q.fresh, &q.other
	if q.turns%turnOfOther == 0 {
		from, then = then, from
	}
	if len(*from) == 0 {
		from = then
	}
	if len(*from) == 0 {
		return nil
	}
	d, (*from)[0] = (*from)[0], nil
	*from = (*from)[1:]
	return d
}

// forgetOver forgets those that are over when they are most of them.
func (q *waiting) forgetOver() {
	if q.over++; 2*q.over <= len(q.fresh)+len(q.other) {
		return
	}
	over := func(d *delivery) bool { return d.over }
	q.fresh, q.other, q.over = slices.DeleteFunc(q.fresh, over), slices.DeleteFunc(q.other, over), 0
}

// hasTurn reports whether a delivery may be written now; it waits for that otherwise. What tells that something is
// missed need not wait: there is one for each target.
func (w *owner) hasTurn(d *delivery) bool {
	tenant := d.target.tenant
	all := w.turns.waiting[tenant]
	switch {
	case d.turn || d.tellsMissed():
		return true
	case d.queued:
		return false
	case all == nil && w.keeping.take(tenant, time.Now()):
		return true
	case all == nil:
		w.keeping.wait(tenant, 1)
		all = &waiting{at: w.keeping.reserve(tenant, time.Now())}
		w.turns.waiting[tenant] = all
		w.turns.soonest(all.at)
	}
	d.queued = true
	all.add(d)
	return false
}

// takeTurns has those written whose turn it is.
func (w *owner) takeTurns(now time.Time) {
	w.turns.next = time.Time{}
	for tenant, all := range w.turns.waiting {
		if !all.at.After(now) {
			if !w.takeNext(all) {
				delete(w.turns.waiting, tenant)
				w.keeping.wait(tenant, -1)
				continue
			}
			all.at = w.keeping.reserve(tenant, now)
		}
		w.turns.soonest(all.at)
	}
}

// takeNext has the next one written that needs its turn still, and reports whether there was one.
func (w *owner) takeNext(all *waiting) bool {
	for d := all.next(); d != nil; d = all.next() {
		if d.over {
			all.over--
		}
		if w.takeTurn(d) {
			return true
		}
	}
	return false
}

// needsNoTurn says that a delivery is over.
func (w *owner) needsNoTurn(d *delivery) {
	if all := w.turns.waiting[d.target.tenant]; d.queued && all != nil {
		all.forgetOver()
	}
}

// takeTurn has a delivery written that has waited, unless it was made meanwhile, or written.
func (w *owner) takeTurn(d *delivery) bool {
	d.queued = false
	if !d.stale || d.over {
		return false
	}
	d.turn = true
	w.keep(d)
	return true
}

// mayOwe reports whether there may be one more of a tenant's deliveries that are neither made nor kept.
func (w *owner) mayOwe(tenant string) bool {
	return windowShare*w.turns.owed[tenant] < maxWindow-w.window.len() && w.keeping.mayOwe(tenant)
}

// owe counts a delivery that is neither made nor kept, until it is settled.
func (w *owner) owe(d *delivery) {
	if !d.owed {
		d.owed = true
		w.turns.owed[d.target.tenant]++
		w.keeping.owe(d.target.tenant, 1)
	}
}

func (w *owner) owesNoMore(d *delivery) {
	if !d.owed {
		return
	}
	d.owed = false
	tenant := d.target.tenant
	w.keeping.owe(tenant, -1)
	if w.turns.owed[tenant]--; w.turns.owed[tenant] == 0 {
		delete(w.turns.owed, tenant)
	}
}

// leaveTurns leaves what waits, and is owed, to the shard's next owner.
func (w *owner) leaveTurns() {
	for tenant := range w.turns.waiting {
		w.keeping.wait(tenant, -1)
	}
	for tenant, n := range w.turns.owed {
		w.keeping.owe(tenant, -n)
	}
	w.turns = newTurns()
}
