package view

import (
	"slices"
	"time"

	"github.com/fencepost/fencepost/lock"
)

// namesChunk bounds the names read before the view's lock is released for a moment.
const namesChunk = 2000

// EachName yields the locks in use, by tenant and name: of one tenant, or with "" of all; held,
// contended, or with "" all. It returns the number that the view has reached. EachName does not
// hold the view's lock while it calls give.
func (v *Lists) EachName(state, tenant string, give func(lock.Ref)) (number uint64) {
	way := ListRequest{State: state}.way()
	last, more := lock.Ref{Tenant: tenant}, true
	var some []lock.Ref
	for more {
		some = some[:0]
		last, number, more = v.namesAfter(way, tenant, last, namesChunk, func(r lock.Ref) {
			some = append(some, r)
		})
		for _, r := range some {
			give(r)
		}
	}
	return number
}

// EachRow yields the rows of the locks that [Lists.EachName] yields, each as read at that moment.
// A row is valid until give returns, so that many rows take little memory.
func (v *Lists) EachRow(state, tenant string, give func(*Row)) (number uint64) {
	rows := make([]Row, rowChunk) // reused for every chunk
	way := ListRequest{State: state}.way()
	last, more := lock.Ref{Tenant: tenant}, true
	for more {
		n := 0
		last, number, more = v.namesAfter(way, tenant, last, rowChunk, func(r lock.Ref) {
			if v.fill(&rows[n], r) {
				n++
			}
		})
		for i := range rows[:n] {
			give(&rows[i])
		}
	}
	return number
}

// TenantNames returns the tenants that have entries, by name, without the replicas' own.
func (v *Lists) TenantNames() (all []string) {
	const chunk = 1000 // names read under one hold of the view's lock
	for more := true; more; {
		v.mu.RLock()
		last := ""
		if len(all) > 0 {
			last = all[len(all)-1]
		}
		end := len(all) + chunk
		v.queues.tenants.AscendGreaterOrEqual(last, func(tenant string) bool {
			if tenant != last && tenant != lock.OwnTenant {
				all = append(all, tenant)
			}
			return len(all) < end
		})
		more = len(all) == end
		v.mu.RUnlock()
	}
	return all
}

func (v *Lists) namesAfter(
	way int, only string, last lock.Ref, chunk int, give func(lock.Ref),
) (_ lock.Ref, number uint64, more bool) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	seen := 0
	v.queues.tenants.AscendGreaterOrEqual(last.Tenant, func(tenant string) bool {
		if only != "" && tenant != only {
			return false
		}
		after := ""
		if tenant == last.Tenant {
			after = last.Name
		}
		v.queues.accounts.after(tenant, way, "", after, func(name string) bool {
			if more = seen == chunk; more {
				return false
			}
			seen++
			last = lock.Ref{Tenant: tenant, Name: name}
			give(last)
			return true
		})
		return !more
	})
	return last, v.queues.progress.number, more
}

// Sums counts the locks of a tenant, or of all without the replicas' own.
type Sums struct {
	Locks   int // in use
	Held    int // of these locks
	Holding int // holding entries; an entry of several locks counts at each
}

// Sums counts the locks of a tenant, or with "" of all without the replicas' own.
func (v *Lists) Sums(tenant string) (sums Sums) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	if tenant != "" {
		sums.add(v.queues.accounts[tenant])
		return sums
	}
	for name, a := range v.queues.accounts {
		if name != lock.OwnTenant {
			sums.add(a)
		}
	}
	return sums
}

func (s *Sums) add(a *account) {
	if a == nil {
		return
	}
	s.Locks += len(a.uses)
	s.Holding += a.holding
	if held := a.names[isHeld]; held != nil {
		s.Held += held.Len()
	}
}

const (
	// MaxRowHolders bounds the holders in a row.
	MaxRowHolders = 10

	// rowChunk bounds the rows read before the view's lock is released for a moment.
	rowChunk = 500
)

// Row is a lock in use, as operators see it.
type Row struct {
	lock.Ref
	Holders []Holder // the longest hold first, without ExpiresAt; at most 10
	Holding int      // the number of holders
	Waiting int
	Oldest  *lock.Entry // the first waiter, or nil
	Newest  uint64      // the newest fence of these holders
}

// Since returns the start of the first holder's hold, zero if the lock is free.
func (r *Row) Since() time.Time {
	if len(r.Holders) == 0 {
		return time.Time{}
	}
	return r.Holders[0].Since
}

// Rows reads the rows of locks in chunks; nil for a lock that is not in use.
func (v *Lists) Rows(refs []lock.Ref, give func(lock.Ref, *Row)) {
	for some := range slices.Chunk(refs, rowChunk) {
		v.rows(some, give)
	}
}

func (v *Lists) rows(refs []lock.Ref, give func(lock.Ref, *Row)) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	for _, r := range refs {
		row := &Row{}
		if !v.fill(row, r) {
			row = nil
		}
		give(r, row)
	}
}

// fill describes a lock in a reused row, and reports whether the lock is in use.
func (v *Lists) fill(row *Row, r lock.Ref) bool {
	q := v.queues.table.Queue(r)
	if q == nil {
		return false
	}
	*row = Row{Ref: r, Holders: row.Holders[:0], Holding: q.Holders(), Waiting: q.Len() - q.Holders()}
	for e := range without("", q.Holding(), MaxRowHolders) {
		row.Holders = append(row.Holders, Holder{Entry: e, Since: v.queues.since[e.ID]})
		row.Newest = max(row.Newest, e.Number)
	}
	for e := range without("", q.Waiters(), 1) {
		row.Oldest = e
	}
	return true
}

// Deepest returns the number of waiters of the lock with most waiters, of all tenants but the
// replicas' own.
func (v *Lists) Deepest() (most int) {
	v.EachRow("contended", "", func(r *Row) {
		if r.Tenant != lock.OwnTenant {
			most = max(most, r.Waiting)
		}
	})
	return most
}
