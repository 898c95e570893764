package figures

import (
	"container/list"

	"github.com/fencepost/fencepost/lock/heap"
)

// tenantLists are lists of tenants under one common bound. Above the bound the tenant with most
// loses its oldest value. Of several such tenants, the one with the oldest value loses it.
type tenantLists[V any] struct {
	lists map[string]*tenantList[V] // none is empty
	most  heap.Heap[*tenantList[V]] // the longest list first
	count uint64                    // counts adds and touches
}

// tenantList is one tenant's list.
type tenantList[V any] struct {
	heap.Place
	tenant string
	all    *list.List // of *listed[V], the most recently added or touched first
}

// listed is a value in the list of its tenant.
type listed[V any] struct {
	one   V
	of    *tenantList[V]
	at    *list.Element
	since uint64 // by the count
}

func newTenantLists[V any]() tenantLists[V] {
	return tenantLists[V]{lists: map[string]*tenantList[V]{}}
}

// Before has the tenant with most first.
func (t *tenantList[V]) Before(other *tenantList[V]) bool {
	if n, m := t.all.Len(), other.all.Len(); n != m {
		return n > m
	}
	return t.last().since < other.last().since
}

// last returns the least recently added or touched value.
func (t *tenantList[V]) last() *listed[V] { return t.all.Back().Value.(*listed[V]) }

// add puts a value at the front of a tenant's list.
func (x *tenantLists[V]) add(tenant string, one V) *listed[V] {
	x.count++
	t := x.lists[tenant]
	if t == nil {
		t = &tenantList[V]{tenant: tenant, all: list.New()}
		x.lists[tenant] = t
	}
	in := &listed[V]{one: one, of: t, since: x.count}
	if in.at = t.all.PushFront(in); t.Queued() {
		x.most.Fix(t)
	} else {
		x.most.Push(t)
	}
	return in
}

// touch moves a value to the front of its list.
func (x *tenantLists[V]) touch(in *listed[V]) {
	x.count++
	in.since = x.count
	oldest := in.of.all.Back() == in.at
	if in.of.all.MoveToFront(in.at); oldest {
		x.most.Fix(in.of)
	}
}

// last returns the oldest value of the tenant with most. There must be one.
func (x *tenantLists[V]) last() V { return x.most.First().last().one }

func (x *tenantLists[V]) remove(in *listed[V]) {
	t := in.of
	if t.all.Remove(in.at); t.all.Len() > 0 {
		x.most.Fix(t)
		return
	}
	x.most.Remove(t)
	delete(x.lists, t.tenant)
}
