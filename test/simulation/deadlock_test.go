package simulation

import (
	"cmp"
	"slices"
	"time"

	"github.com/fencepost/fencepost/lock"
)

// queues are all queues at one instant.
type queues struct {
	of map[string][]*lock.Entry // by lock
}

// queuesAt returns the queues as they were at an instant.
func (t *truth) queuesAt(at time.Duration) queues {
	q := queues{of: map[string][]*lock.Entry{}}
	for name, all := range t.queues {
		if some := all.between(at, at); len(some) > 0 {
			q.of[name] = slices.Clone(some[len(some)-1].entries)
		}
	}
	return q
}

// stuck returns the entries that are never granted. Tries leave, and so do entries with a mode in
// which the lock is not in use. Those that wait for any of several locks are left out.
func (q queues) stuck() []*lock.Entry {
	q.removeTries()
	q.removeClashing(nil)
	return q.simulate()
}

// stuckBesideTries is like stuck while those who do not want to queue are still there: a
// lock is in use in their mode until they have left.
func (q queues) stuckBesideTries() []*lock.Entry {
	q.removeClashing(nil)
	q.removeTries()
	return q.simulate()
}

// stuckBesideRefused is like stuck while those are still there that are refused because they
// would wait forever: no lock is in use in their mode.
func (q queues) stuckBesideRefused() []*lock.Entry {
	q.removeTries()
	all := queues{of: map[string][]*lock.Entry{}}
	for name, entries := range q.of {
		all.of[name] = slices.Clone(entries)
	}
	q.removeClashing(all.simulate())
	return q.simulate()
}

func (q queues) removeTries() {
	q.remove(func(e *lock.Entry) bool { return (e.Tries() || e.Choosing()) && !q.holds(e) })
}

// simulate releases every holder that can proceed, repeatedly, and returns the rest. A named
// holder releases when none of its entries waits, one without a name when its entry holds.
func (q queues) simulate() []*lock.Entry {
	for {
		waits := map[string]bool{}
		for _, e := range q.entries() {
			if e.Named && !q.holds(e) {
				waits[e.Holder] = true
			}
		}
		n := q.remove(func(e *lock.Entry) bool { return q.holds(e) && !(e.Named && waits[e.Holder]) })
		if n == 0 {
			return slices.DeleteFunc(q.entries(), q.holds)
		}
	}
}

// removeClashing takes out, in their order, those that wait and do not agree with all who
// are in front of them, but for those that are refused.
func (q queues) removeClashing(refused []*lock.Entry) {
	all := q.entries()
	slices.SortFunc(
		all, func(a, b *lock.Entry) int { return cmp.Compare(a.Number-1, b.Number-1) },
	) // one without a number is last
	for _, e := range all {
		clashes := slices.ContainsFunc(e.Claims, func(c lock.Claim) bool {
			counts := slices.DeleteFunc(
				slices.Clone(before(q.of[c.Name], e.ID)),
				func(o *lock.Entry) bool { return slices.Contains(refused, o) },
			)
			return slices.ContainsFunc(
				lock.ClaimsOn(counts, c.Name), func(o lock.Claim) bool { return !o.Agrees(c) },
			)
		})
		if clashes && !q.holds(e) {
			q.remove(func(other *lock.Entry) bool { return other == e })
		}
	}
}

func (q queues) holds(e *lock.Entry) bool {
	return !e.Choosing() && !slices.ContainsFunc(
		e.Claims, func(c lock.Claim) bool { return !inFront(q.of[c.Name], e.ID, c) },
	)
}

// entries are all, each once.
func (q queues) entries() []*lock.Entry {
	var all []*lock.Entry
	for _, queue := range q.of {
		for _, e := range queue {
			if lock.Place(all, e.ID) < 0 {
				all = append(all, e)
			}
		}
	}
	return all
}

// remove takes out those that are to go, and returns how many.
func (q queues) remove(goes func(*lock.Entry) bool) int {
	gone := map[lock.ID]bool{}
	for _, e := range q.entries() {
		if goes(e) {
			gone[e.ID] = true
		}
	}
	for name := range q.of {
		q.of[name] = slices.DeleteFunc(q.of[name], func(e *lock.Entry) bool { return gone[e.ID] })
	}
	return len(gone)
}

// checkDeadlock: at some instant of the call the refused request would have waited
// forever.
func (t *truth) checkDeadlock(c *call, e *lock.Error) {
	if len(e.Cycle) == 0 {
		t.w.problem("%v: a deadlock without a cycle", c)
	}
	closed := func(claim lock.Claim) bool { return t.w.operator.everClosed(claim) }
	if c.asked.req.Any > 0 && slices.ContainsFunc(c.claims, closed) {
		return // it may have asked for all the others
	}
	for _, at := range t.changes(t.joinedOr(c), t.w.now()) {
		for _, stuck := range []func(queues) []*lock.Entry{
			queues.stuck, queues.stuckBesideTries, queues.stuckBesideRefused,
		} {
			q := t.queuesAt(at)
			id := c.id
			if l := t.last(id); l == nil || !l.there(at) {
				id = q.append(c)
			}
			if lock.Place(stuck(q), id) >= 0 {
				return
			}
		}
	}
	t.w.problem("%v: was refused for a deadlock that there never was", c)
}

// append puts the request of a call at the end of its queues, as if it were written.
func (q queues) append(c *call) lock.ID {
	req := c.asked.req
	e := &lock.Entry{
		ID: "new", Tenant: req.Tenant, Claims: c.claims, Holder: req.Holder, Named: req.Named,
		WaitUntil: time.Now().Add(req.Wait), Any: req.Any,
	}
	for _, claim := range c.claims {
		q.of[claim.Name] = append(q.of[claim.Name], e)
	}
	return e.ID
}

// changes are the instants of the time at which any queue changed, and its beginning.
func (t *truth) changes(from, to time.Duration) []time.Duration {
	all := []time.Duration{from}
	for _, q := range t.queues {
		for _, s := range q.states {
			all = append(all, s.from)
		}
	}
	all = slices.DeleteFunc(all, func(at time.Duration) bool { return at < from || at > to })
	slices.Sort(all)
	return slices.Compact(all)
}

// standing returns the ids of entries that wait for each other, each of them with a
// request that waits for its answer.
func (t *truth) standing() []lock.ID {
	var ids []lock.ID
	for _, e := range t.queuesAt(t.w.now()).stuck() {
		if !slices.ContainsFunc(t.w.open, func(c *call) bool { return c.id == e.ID && !c.gone }) {
			return nil // it lapses
		}
		ids = append(ids, e.ID)
	}
	slices.Sort(ids)
	return ids
}
