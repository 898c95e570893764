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

// Deadlock is a cycle of waits that was found when it was closed, with the rejected entry.
type Deadlock struct {
	At      time.Time
	Tenant  string
	Refused *lock.Entry
	Cycle   []lock.Wait // the first of them
	Waits   int         // how many there are
}

// rejections are what was found of deadlocks, and of orders of locks that may lead to one. Which
// entries cannot stay in their queues is decided by the table, from the entries that are there: so
// all replicas agree without talking to each other, also one that has just listed. The replica that
// attends such an entry takes it back and answers with the error.
type rejections struct {
	*queues
	deadlocks    []Deadlock // the newest last
	orders       *order.Graph
	contradicted uint64
}

// report makes a refused cycle known. The entry may never have been written.
func (v *rejections) report(e *lock.Entry, cycle []lock.Wait, now time.Time) {
	if len(v.deadlocks) == maxDeadlocks {
		i := v.dispensable()
		v.deadlocks = slices.Delete(v.deadlocks, i, i+1)
	}
	kept := slices.Clone(cycle[:min(len(cycle), maxKeptWaits)])
	one := Deadlock{At: now, Tenant: e.Tenant, Refused: e, Cycle: kept, Waits: len(cycle)}
	v.deadlocks = append(v.deadlocks, one)
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

// Refuse is like RefusalOf, and makes a deadlock known.
func (v *rejections) Refuse(e *lock.Entry) error {
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
func (v *rejections) learn(e *lock.Entry, now time.Time) {
	for _, c := range v.orders.Granted(e, v.table.AlsoHeld(e), now) {
		v.contradicted++
		silenced, ok := v.accounts.of(e.Tenant).contradictions.pass(now, betweenContradictions)
		v.found(Finding{
			Kind: OrdersContradict, Entry: e, Contradiction: &c, Silenced: silenced, Quiet: !ok,
		}, now)
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
func (v *rejections) LockOrder(tenant string, limit int) OrderReport {
	v.mu.RLock()
	defer v.mu.RUnlock()
	r := OrderReport{Contradictions: v.orders.Contradictions(tenant, limit)}
	r.Orders, r.Total, r.Dropped = v.orders.Edges(tenant, limit)
	return r
}

// Deadlocks returns the cycles that were refused last, the newest first. tenant
// "" is all.
func (v *rejections) Deadlocks(tenant string, limit int) []Deadlock {
	v.mu.RLock()
	defer v.mu.RUnlock()
	var out []Deadlock
	all := v.deadlocks
	for i := len(all) - 1; i >= 0 && len(out) < limit; i-- {
		if tenant == "" || all[i].Tenant == tenant {
			out = append(out, all[i])
		}
	}
	return out
}
