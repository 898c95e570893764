package service

import (
	"container/list"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/lock/heap"
)

// tenantRows are the rows of one tenant.
type tenantRows struct {
	heap.Place
	tenant string
	rows   *list.List // of *rowExpiry, the one that was shown last first
}

// Before has the tenant with most rows first.
func (t *tenantRows) Before(other *tenantRows) bool {
	if n, m := t.rows.Len(), other.rows.Len(); n != m {
		return n > m
	}
	return t.tenant < other.tenant
}

// add takes up an entry that is not known.
func (x *rowExpiries) add(e *lock.Entry) *rowExpiry {
	t := x.tenants[e.Tenant]
	if t == nil {
		t = &tenantRows{tenant: e.Tenant, rows: list.New()}
		x.tenants[e.Tenant] = t
		x.most.Push(t)
	}
	one := &rowExpiry{entry: e, of: t}
	one.shown = t.rows.PushFront(one)
	x.most.Fix(t)
	x.known[expiryKey{e.ID, e.Number}] = one
	return one
}

// drop forgets the row of the tenant with most that was shown longest ago, if these are more than
// the tenant for whom there is to be room would have with one more.
func (x *rowExpiries) drop(tenant string) bool {
	own, most := 0, x.most.First()
	if t := x.tenants[tenant]; t != nil {
		own = t.rows.Len()
	}
	if most.rows.Len() <= own+1 {
		return false
	}
	x.remove(most.rows.Back().Value.(*rowExpiry))
	return true
}

func (x *rowExpiries) remove(one *rowExpiry) {
	delete(x.known, expiryKey{one.entry.ID, one.entry.Number})
	t := one.of
	if t.rows.Remove(one.shown); t.rows.Len() > 0 {
		x.most.Fix(t)
		return
	}
	x.most.Remove(t)
	delete(x.tenants, t.tenant)
}
