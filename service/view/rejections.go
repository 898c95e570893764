package view

import (
	"errors"
	"slices"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/lock/order"
)

// maxDeadlocks is how many refused cycles are remembered, and maxKeptWaits how
// many waits of each.
const (
	maxDeadlocks = 100
	maxKeptWaits = 32
)

// betweenContradictions is the time between two lines about contradicting orders of one
// tenant.
const betweenContradictions = 10 * time.Second

// Deadlock is a cycle of waits that was found when it was closed, and who is
// refused for it.
type Deadlock struct {
	At      time.Time
	Tenant  string
	Refused *lock.Entry
	Cycle   []lock.Wait // the first of them
	Waits   int         // how many there are
}

// rejections are the refused cycles that are remembered. Who cannot stay in its queues
// is decided by the table, from the entries that are there: so all replicas agree
// without talking to each other, also one that has just listed. The replica that
// attends such an entry takes it back and answers with the error.
type rejections struct {
	deadlocks []Deadlock // the newest last

	// carriedOut has the errors of entries that were taken back for them, for the
	// requests that still wait on such an entry: another one did it.
	carriedOut map[lock.ID]refusal
}

// refusal is why an entry was taken back. Its key may have another of the same id since.
type refusal struct {
	number uint64
	why    error
}

func newRejections() rejections { return rejections{carriedOut: map[lock.ID]refusal{}} }

// detect brings the rejections up to date with a change. known has those that were known
// before a list, which are not told again.
func (v *View) detect(known func(lock.ID) bool, now time.Time) {
	for _, e := range v.table.Detect() {
		if rejection := v.table.Rejection(e.ID); rejection != nil && rejection.Clash == nil && (known == nil || !known(e.ID)) {
			v.report(e, rejection.Cycle, now)
		}
		v.notify(e.ID)
	}
}

// refused returns why the entry cannot stay in its queues, nil if it can.
func (v *View) refused(id lock.ID) error {
	switch rejection := v.table.Rejection(id); {
	case rejection == nil:
		return nil
	case rejection.Clash != nil:
		return lock.ErrModeMismatch(*rejection.Clash)
	default:
		return lock.ErrDeadlock(rejection.Cycle)
	}
}

// rejectedFor returns the reason with which the entry would be taken back for its
// rejection, "" if it can stay.
func (v *View) rejectedFor(id lock.ID) lock.Reason {
	switch rejection := v.table.Rejection(id); {
	case rejection == nil:
		return ""
	case rejection.Clash != nil:
		return lock.Mismatched
	default:
		return lock.Deadlocked
	}
}

// carriedOut notes that an entry leaves, if that is for its rejection and somebody waits
// on it.
func (v *View) carriedOut(id lock.ID, why lock.Reason) {
	if len(v.watchers[id]) == 0 || why != lock.Withdrawn && why != lock.Deadlocked && why != lock.Mismatched {
		return
	}
	if refused := v.refused(id); refused != nil {
		e, _ := v.table.Entry(id)
		v.rejections.carriedOut[id] = refusal{e.Number, refused}
	}
}

// refusedWith returns why the entry with the id and number was taken back, nil if it was not
// for a rejection, or nobody waits on it.
func (v *rejections) refusedWith(id lock.ID, number uint64) error {
	if r := v.carriedOut[id]; r.number == number {
		return r.why
	}
	return nil
}

// Grounds returns what the removal of an entry is decided by that cannot stay: what
// has to be there still when it is carried out. ok is false if it can stay.
func (v *View) Grounds(id lock.ID) (while []*lock.Entry, ok bool) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.table.Grounds(id)
}

// Blockers returns because of whom an entry waits. ok is false if the view does not
// show that it waits.
func (v *View) Blockers(e *lock.Entry) (while []*lock.Entry, ok bool) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	if known, _ := v.table.Entry(e.ID); known == nil || known.Number != e.Number {
		return nil, false
	}
	return v.table.Blockers(e.ID, false)
}

// report makes a refused cycle known. The entry may never have been written.
func (v *View) report(e *lock.Entry, cycle []lock.Wait, now time.Time) {
	if len(v.rejections.deadlocks) == maxDeadlocks {
		i := v.rejections.dispensable()
		v.rejections.deadlocks = slices.Delete(v.rejections.deadlocks, i, i+1)
	}
	kept := slices.Clone(cycle[:min(len(cycle), maxKeptWaits)])
	v.rejections.deadlocks = append(v.rejections.deadlocks, Deadlock{At: now, Tenant: e.Tenant, Refused: e, Cycle: kept, Waits: len(cycle)})
	v.found(Finding{Kind: DeadlockFound, Entry: e, Waits: len(cycle)}, now)
}

// dispensable returns the oldest deadlock of the tenant that has most, so that one
// tenant cannot make others' be forgotten.
func (v *rejections) dispensable() int {
	of, most := map[string]int{}, 0
	for _, d := range v.deadlocks {
		of[d.Tenant]++
		most = max(most, of[d.Tenant])
	}
	return slices.IndexFunc(v.deadlocks, func(d Deadlock) bool { return of[d.Tenant] == most })
}

// RefusalOf returns why e, which was not written yet, cannot join: the error that
// it would get in the end.
func (v *View) RefusalOf(e *lock.Entry) error {
	v.mu.RLock()
	c, clash := v.table.Clash(e)
	admitted := v.table.Admits(e.Tenant, e.Claims)
	v.mu.RUnlock()
	switch {
	case clash:
		return lock.ErrModeMismatch(c)
	case admitted:
		return nil
	case e.Tries():
		return lock.ErrHeld()
	case e.Named:
		return v.cycle(e)
	}
	return nil
}

// Admits reports whether e would hold at once.
func (v *View) Admits(e *lock.Entry) bool {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.table.Admits(e.Tenant, e.Claims)
}

func (v *View) cycle(e *lock.Entry) error {
	v.mu.RLock()
	defer v.mu.RUnlock()
	if cycle := v.table.Cycle(e); cycle != nil {
		return lock.ErrDeadlock(cycle)
	}
	return nil
}

// Refuse is like RefusalOf, and makes a deadlock known.
func (v *View) Refuse(e *lock.Entry) error {
	err := v.RefusalOf(e)
	var refused *lock.Error
	if errors.As(err, &refused) && refused.Code == lock.Deadlock {
		v.mu.Lock()
		defer v.mu.Unlock()
		v.report(e, refused.Cycle, time.Now())
	}
	return err
}

// learn notes in which order the holder of e takes locks.
func (v *View) learn(e *lock.Entry, now time.Time) {
	for _, c := range v.orders.Granted(e, v.table.AlsoHeld(e), now) {
		v.totals.Contradicted++
		silenced, ok := v.accounts.of(e.Tenant).contradictions.pass(now, betweenContradictions)
		v.found(Finding{Kind: OrdersContradict, Entry: e, Contradiction: &c, Silenced: silenced, Quiet: !ok}, now)
	}
}

// OrderReport is what one replica has learnt about the orders in which locks are
// taken.
type OrderReport struct {
	Contradictions []order.Contradiction // the newest first
	Orders         []order.Edge          // those seen last first
	Total          int                   // how many orders are known
	Dropped        uint64                // how many were forgotten to make room, of all tenants
}

// LockOrder tells in which orders named holders take locks, and where these
// contradict each other. tenant "" is all.
func (v *View) LockOrder(tenant string, limit int) OrderReport {
	v.mu.RLock()
	defer v.mu.RUnlock()
	r := OrderReport{Contradictions: v.orders.Contradictions(tenant, limit)}
	r.Orders, r.Total, r.Dropped = v.orders.Edges(tenant, limit)
	return r
}

// Deadlocks returns the cycles that were refused last, the newest first. tenant
// "" is all.
func (v *View) Deadlocks(tenant string, limit int) []Deadlock {
	v.mu.RLock()
	defer v.mu.RUnlock()
	var out []Deadlock
	all := v.rejections.deadlocks
	for i := len(all) - 1; i >= 0 && len(out) < limit; i-- {
		if tenant == "" || all[i].Tenant == tenant {
			out = append(out, all[i])
		}
	}
	return out
}
