package view

import (
	"errors"
	"slices"
	"time"

	"github.com/fencepost/fencepost/lock"
)

// maxDeadlocks bounds the kept deadlocks, and maxKeptWaits the kept waits of each.
const (
	maxDeadlocks = 100
	maxKeptWaits = 32
)

// Deadlock is a rejected cycle of waits, with the rejected entry.
type Deadlock struct {
	At      time.Time
	Tenant  string
	Refused *lock.Entry
	Cycle   []lock.Wait // the first waits of it
	Waits   int         // the length of the cycle
}

// rejections holds the deadlocks that the view found. The table decides which entries cannot stay,
// from the present entries alone. So all replicas agree without talking, including one that has
// just listed. The replica that serves such an entry removes it and answers with the error.
type rejections struct {
	*queues
	deadlocks []Deadlock // the newest last
}

// report publishes a rejected cycle. The entry may never have been written.
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

// dispensable returns the oldest deadlock of the tenant with most, so that no tenant can evict
// the deadlocks of a smaller one.
func (v *rejections) dispensable() int {
	of, most := map[string]int{}, 0
	for _, d := range v.deadlocks {
		of[d.Tenant]++
		most = max(most, of[d.Tenant])
	}
	return slices.IndexFunc(v.deadlocks, func(d Deadlock) bool { return of[d.Tenant] == most })
}

// Refuse is like RefusalOf, and also reports a deadlock.
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

// Deadlocks returns the latest rejected cycles, the newest first. tenant "" is all.
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
