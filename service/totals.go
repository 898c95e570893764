package service

import (
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service/view"
)

// Count returns how many entries hold and wait, in all tenants, by the mode of
// their first claim, and for how long the oldest of those that wait has waited.
// The map is nil until this replica has a first view of the store.
func (x *looks) Count() (byMode map[lock.Mode]lock.Counts, oldest time.Duration) {
	return x.view.Count()
}

// Deepest returns how many entries wait for the lock for which most do, of all tenants but the
// replicas' own.
func (x *looks) Deepest() int { return x.view.Deepest() }

// Totals count what this replica saw happen since it started.
type Totals struct {
	view.Totals
	EventsDropped uint64 // that came faster than the log took them
}

// Totals returns what this replica has counted so far.
func (x *looks) Totals() Totals { return Totals{x.view.Totals(), x.events.dropped.Load()} }

// Revision returns the store's number up to which this replica has seen everything,
// 0 until it has a first view.
func (x *looks) Revision() uint64 { return x.view.Number() }

// Started is since when this replica follows what happens.
func (x *looks) Started() time.Time { return x.started }

// LockOrder tells in which orders named holders take locks, and where these
// contradict each other, as this replica has learnt it. tenant "" is all.
func (x *looks) LockOrder(tenant string, limit int) view.OrderReport {
	return x.view.LockOrder(tenant, limit)
}

// Deadlocks returns the cycles that were refused last, the newest first. tenant
// "" is all.
func (x *looks) Deadlocks(tenant string, limit int) []view.Deadlock {
	return x.view.Deadlocks(tenant, limit)
}
