package view

import (
	"maps"
	"time"

	"github.com/google/btree"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/lock/deadlock"
)

// Queues is the table of all queues, and what the view knows of the entries in it.
type Queues struct {
	base
	progress *Progress
	table    *deadlock.Table
	since    map[lock.ID]time.Time     // since when the view has seen an entry hold
	waited   map[lock.ID]time.Duration // how long a holder waited, if it did
	doubtful map[lock.ID]struct{}      // the entries granted while the server refuses to grant
	accounts accounts
	tenants  *btree.BTreeG[string] // those with entries
}

// empty removes all entries.
func (v *Queues) empty() {
	v.table, v.tenants = deadlock.NewTable(), btree.NewOrderedG[string](32)
	v.since, v.waited = map[lock.ID]time.Time{}, map[lock.ID]time.Duration{}
}

// WaitedFor returns how long ago the client requested the entry, by the replicas' clocks; never
// less than 0.
func (v *Queues) WaitedFor(e *lock.Entry) time.Duration {
	return max(0, v.Wall().Sub(e.EnqueuedAt))
}

// inQueue returns how many entries hold a lock and wait for it.
func (v *Queues) inQueue(r lock.Ref) (holding, waiting int) {
	if q := v.table.Queue(r); q != nil {
		return q.Holders(), q.Len() - q.Holders()
	}
	return 0, 0
}

// Count returns how many entries hold and wait, by the mode of their first claim, and how long
// the oldest waiter has waited. The map is nil before the first Reset.
func (v *Queues) Count() (byMode map[lock.Mode]lock.Counts, oldest time.Duration) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	if !v.progress.begun {
		return nil, 0
	}
	if first := v.table.Longest(); first != nil {
		oldest = v.WaitedFor(first)
	}
	return maps.Clone(v.table.Counts()), oldest
}

// HeldCallbacks returns the held entries with a callback. It reads all entries.
func (v *Queues) HeldCallbacks() (held []*lock.Entry) {
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
func (v *Queues) HeldCallback(tenant string, id lock.ID) *lock.Entry {
	v.mu.RLock()
	defer v.mu.RUnlock()
	e, holds := v.table.Entry(id)
	if !holds || e.Tenant != tenant || e.Callback == nil {
		return nil
	}
	return e
}

// HeldSince returns since when the entry holds, as this replica saw it, and whether it does.
func (v *Queues) HeldSince(id lock.ID) (since time.Time, ok bool) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	since, ok = v.since[id]
	return since, ok
}

// Position returns the entry's position among the waiters.
func (v *Queues) Position(id lock.ID) int {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.table.Position(id)
}

// Admits reports whether e would hold at once, or could choose at once.
func (v *Queues) Admits(e *lock.Entry) bool {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.table.Admits(e)
}

// Blockers returns the entries that block an entry. ok is false if the view does not show that it
// waits.
func (v *Queues) Blockers(e *lock.Entry) (while []*lock.Entry, ok bool) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	if known, _ := v.table.Entry(e.ID); known == nil || known.Number != e.Number {
		return nil, false
	}
	return v.table.Blockers(e.ID, false)
}

// isFree reports whether no entry holds a lock.
func (v *Queues) isFree(r lock.Ref) bool {
	holding, _ := v.inQueue(r)
	return holding == 0
}
