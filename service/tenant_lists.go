package service

import (
	"container/list"

	"github.com/fencepost/fencepost/lock/heap"
)

// tenantLists are what several tenants have of something that has a bound for all of them together. Where
// there is no room, the tenant with most gives way. The zero value is not usable.
type tenantLists[V any] struct {
	lists map[string]*tenantList[V] // none is empty
	most  heap.Heap[*tenantList[V]] // those with most first
}

// tenantList is what one tenant has.
type tenantList[V any] struct {
	heap.Place
	tenant string
	all    *list.List // of V, the one that was added or touched last first
}

// listed is where something is in the list of its tenant.
type listed[V any] struct {
	of *tenantList[V]
	at *list.Element
}

func newTenantLists[V any]() tenantLists[V] {
	return tenantLists[V]{lists: map[string]*tenantList[V]{}}
}

// Before has the tenant with most first.
func (t *tenantList[V]) Before(other *tenantList[V]) bool {
	if n, m := t.all.Len(), other.all.Len(); n != m {
		return n > m
	}
	return t.tenant < other.tenant
}

// len is how many a tenant has.
func (x *tenantLists[V]) len(tenant string) int {
	if t := x.lists[tenant]; t != nil {
		return t.all.Len()
	}
	return 0
}

// add puts one in front of what a tenant has.
func (x *tenantLists[V]) add(tenant string, one V) listed[V] {
	t := x.lists[tenant]
	if t == nil {
		t = &tenantList[V]{tenant: tenant, all: list.New()}
		x.lists[tenant] = t
		x.most.Push(t)
	}
	at := t.all.PushFront(one)
	x.most.Fix(t)
	return listed[V]{t, at}
}

// touch puts one in front of what its tenant has.
func (x *tenantLists[V]) touch(one listed[V]) { one.of.all.MoveToFront(one.at) }

// last is what was added or touched longest ago of what the tenant with most has, and how many that has.
// There must be something.
func (x *tenantLists[V]) last() (one V, of int) {
	most := x.most.First().all
	return most.Back().Value.(V), most.Len()
}

func (x *tenantLists[V]) remove(one listed[V]) {
	t := one.of
	if t.all.Remove(one.at); t.all.Len() > 0 {
		x.most.Fix(t)
		return
	}
	x.most.Remove(t)
	delete(x.lists, t.tenant)
}
