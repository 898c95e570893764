package view

import (
	"maps"
	"sync"
	"time"

	"github.com/google/btree"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/lock/deadlock"
)

// queues is the table of all queues, and what the view knows of the entries in it.
type queues struct {
	*progress
	lists    sync.Mutex // lists take turns at mu, so that a grant waits for one of them at most
	table    *deadlock.Table
	since    map[lock.ID]time.Time     // since when the view has seen an entry hold
	waited   map[lock.ID]time.Duration // how long a holder waited, if it did
	doubtful map[lock.ID]struct{}      // the entries granted while the server refuses to grant
	accounts accounts
	tenants  *btree.BTreeG[string] // those with entries
}

// empty removes all entries.
func (v *queues) empty() {
	v.table, v.tenants = deadlock.NewTable(), btree.NewOrderedG[string](32)
	v.since, v.waited = map[lock.ID]time.Time{}, map[lock.ID]time.Duration{}
}

// WaitedFor returns how long ago the client requested the entry, by the replicas' clocks; never
// less than 0.
func (v *queues) WaitedFor(e *lock.Entry) time.Duration {
	return max(0, v.Wall().Sub(e.EnqueuedAt))
}

// inQueue returns how many entries hold a lock and wait for it.
func (v *queues) inQueue(r lock.Ref) (holding, waiting int) {
	if q := v.table.Queue(r); q != nil {
		return q.Holders(), q.Len() - q.Holders()
	}
	return 0, 0
}

// Count returns how many entries hold and wait, by the mode of their first claim, and how long
// the oldest waiter has waited. The map is nil before the first Reset.
func (v *queues) Count() (byMode map[lock.Mode]lock.Counts, oldest time.Duration) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	if !v.begun {
		return nil, 0
	}
	if first := v.table.Longest(); first != nil {
		oldest = v.WaitedFor(first)
	}
	return maps.Clone(v.table.Counts()), oldest
}

// HeldCallbacks returns the held entries with a callback. It reads all entries.
func (v *queues) HeldCallbacks() (held []*lock.Entry) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	for e, holds := range v.table.Entries() {
		if holds && e.Callback != nil {
			held = append(held, e)
		}
	}
	return held
}

// HeldCallback returns the tenant's entry with the id if it holds and has a callback, or nil.
func (v *queues) HeldCallback(tenant string, id lock.ID) *lock.Entry {
	v.mu.RLock()
	defer v.mu.RUnlock()
	e, holds := v.table.Entry(id)
	if !holds || e.Tenant != tenant || e.Callback == nil {
		return nil
	}
	return e
}

// HeldSince returns since when the entry holds, as this replica saw it, and whether it does.
func (v *queues) HeldSince(id lock.ID) (since time.Time, ok bool) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	since, ok = v.since[id]
	return since, ok
}

// Position returns the entry's position among the waiters.
func (v *queues) Position(id lock.ID) int {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.table.Position(id)
}

// Admits reports whether e would hold at once.
func (v *queues) Admits(e *lock.Entry) bool {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.table.Admits(e.Tenant, e.Claims)
}

// Blockers returns the entries that block an entry. ok is false if the view does not show that it
// waits.
func (v *queues) Blockers(e *lock.Entry) (while []*lock.Entry, ok bool) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	if known, _ := v.table.Entry(e.ID); known == nil || known.Number != e.Number {
		return nil, false
	}
	return v.table.Blockers(e.ID, false)
}

// Grounds returns the entries on which the rejection of an entry depends; they must still exist
// when it is removed. ok is false if the entry can stay.
func (v *queues) Grounds(id lock.ID) (while []*lock.Entry, ok bool) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.table.Grounds(id)
}

// RefusalOf returns why the unwritten entry e cannot join: the error that it would get in the
// end.
func (v *queues) RefusalOf(e *lock.Entry) error {
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

func (v *queues) cycle(e *lock.Entry) error {
	v.mu.RLock()
	defer v.mu.RUnlock()
	if cycle := v.table.Cycle(e); cycle != nil {
		return lock.ErrDeadlock(cycle)
	}
	return nil
}

// refused returns why the entry cannot stay in its queues, or nil.
func (v *queues) refused(id lock.ID) error {
	switch rejection := v.table.Rejection(id); {
	case rejection == nil:
		return nil
	case rejection.Clash != nil:
		return lock.ErrModeMismatch(*rejection.Clash)
	default:
		return lock.ErrDeadlock(rejection.Cycle)
	}
}

// rejectedFor returns the reason for which a replica will remove the entry, or "" if it can stay.
func (v *queues) rejectedFor(id lock.ID) lock.Reason {
	switch rejection := v.table.Rejection(id); {
	case rejection == nil:
		return ""
	case rejection.Clash != nil:
		return lock.Mismatched
	default:
		return lock.Deadlocked
	}
}
