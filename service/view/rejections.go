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

// Rejections holds the deadlocks that the view found. The table decides which entries cannot stay,
// from the present entries alone. So all replicas agree without talking, including one that has
// just listed. The replica that serves such an entry removes it and answers with the error.
type Rejections struct {
	base
	queues    *Queues
	deadlocks []Deadlock // the newest last
}

// report publishes a rejected cycle. The entry may never have been written.
func (v *Rejections) report(e *lock.Entry, cycle []lock.Wait, now time.Time) {
	if len(v.deadlocks) == maxDeadlocks {
		i := v.dispensable()
		v.deadlocks = slices.Delete(v.deadlocks, i, i+1)
	}
	kept := slices.Clone(cycle[:min(len(cycle), maxKeptWaits)])
	one := Deadlock{At: now, Tenant: e.Tenant, Refused: e, Cycle: kept, Waits: len(cycle)}
	v.deadlocks = append(v.deadlocks, one)
	v.queues.progress.found(Finding{Kind: DeadlockFound, Entry: e, Waits: len(cycle)}, now)
}

// dispensable returns the oldest deadlock of the tenant with most, so that no tenant can evict
// the deadlocks of a smaller one.
func (v *Rejections) dispensable() int {
	of, most := map[string]int{}, 0
	for _, d := range v.deadlocks {
		of[d.Tenant]++
		most = max(most, of[d.Tenant])
	}
	return slices.IndexFunc(v.deadlocks, func(d Deadlock) bool { return of[d.Tenant] == most })
}

// Refuse is like RefusalOf, and also reports a deadlock.
func (v *Rejections) Refuse(e *lock.Entry) error {
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
func (v *Rejections) Deadlocks(tenant string, limit int) []Deadlock {
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

// Grounds returns the entries on which the rejection of an entry depends; they must still exist
// when it is removed. ok is false if the entry can stay.
func (v *Rejections) Grounds(id lock.ID) (while []*lock.Entry, ok bool) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.queues.table.Grounds(id)
}

// RefusalOf returns why the unwritten entry e cannot join: the error that it would get in the
// end.
func (v *Rejections) RefusalOf(e *lock.Entry) error {
	v.mu.RLock()
	c, clash := v.queues.table.Clash(e)
	admitted := v.queues.table.Admits(e)
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

func (v *Rejections) cycle(e *lock.Entry) error {
	v.mu.RLock()
	defer v.mu.RUnlock()
	if cycle := v.queues.table.Cycle(e); cycle != nil {
		return lock.ErrDeadlock(cycle)
	}
	return nil
}

// refused returns why the entry cannot stay in its queues, or nil.
func (v *Rejections) refused(id lock.ID) error {
	switch rejection := v.queues.table.Rejection(id); {
	case rejection == nil:
		return nil
	case rejection.Clash != nil:
		return lock.ErrModeMismatch(*rejection.Clash)
	case rejection.Newer != nil:
		return lock.ErrNotNewest()
	default:
		return lock.ErrDeadlock(rejection.Cycle)
	}
}

// rejectedFor returns the reason for which a replica will remove the entry, or "" if it can stay.
func (v *Rejections) rejectedFor(id lock.ID) lock.Reason {
	switch rejection := v.queues.table.Rejection(id); {
	case rejection == nil:
		return ""
	case rejection.Clash != nil:
		return lock.Mismatched
	case rejection.Newer != nil:
		return lock.Superseded
	default:
		return lock.Deadlocked
	}
}
