package lock

import (
	"container/list"
	"hash/fnv"
	"slices"
	"strings"
	"time"
)

// Bounds of what an [Orders] remembers.
const (
	maxOrders       = 10_000 // in all
	maxTenantOrders = 1_000  // of one tenant
	maxFound        = 1_000  // contradictions that are kept to be shown
	maxTenantRings  = 1_000  // contradictions of one tenant that are reported at all
	maxRings        = 50_000 // reported contradictions that are recognised, of all tenants
	maxSides        = 32     // of a contradiction
	maxSteps        = 64     // that one grant can teach
	maxLooks        = 20_000 // orders that are looked at because of one grant
)

// Orders learns in which order named holders take locks, and finds out when the
// orders of different holders contradict each other: some take A and then B,
// others B and then A, or a longer ring of such steps. Then a deadlock is possible
// although none may have happened yet.
//
// Locks are taken for instances of classes; see [Classes]. Two locks of one class
// are compared by their names: some take the smaller first, others the greater.
//
// Memory is bounded: of each tenant the steps that were seen last are kept, and of
// all tenants together as well. At worst, with the longest names, that is some 30
// MiB. A contradiction is reported once, also when it is no longer kept. Of a tenant
// for which 1,000 were reported nothing more is looked for: whoever takes locks in so
// many orders is not helped by the next line. It is not safe for concurrent use.
type Orders struct {
	classes Classes
	tenants map[string]*known
	recent  *list.List                     // of *Order, the one seen last first
	rings   map[string]map[uint64]struct{} // those reported, by tenant, as hashes of their keys
	known   int                            // how many these are
	left    int                            // how many orders may still be looked at for this grant
	found   []Contradiction                // the newest last
	dropped uint64
}

// Order says that holders of a lock of one class took one of another.
type Order struct {
	Tenant   string
	From, To string // classes
	Seen     uint64
	Examples []Example // one each of up to two holders, the one seen first first

	inTenant, inAll *list.Element
}

// Example is one time that somebody took a lock while holding another.
type Example struct {
	Holder string
	Held   string // the lock it had
	Taken  string // the lock it took then
	At     time.Time
}

// Contradiction is a ring of orders: each leads from the class where the one
// before it ends, and the last back to the first. Seen alone, each is harmless.
type Contradiction struct {
	Tenant string
	Found  time.Time
	Sides  []Side
}

// Side is one order of a contradiction, with an example.
type Side struct {
	From, To string
	Example
}

// known are the orders of one tenant.
type known struct {
	from   map[string]map[string]*Order // by class held, then class taken
	into   map[string]int               // how many orders lead to a class
	recent *list.List                   // of *Order
}

// NewOrders returns an empty structure that groups locks by classes.
func NewOrders(classes Classes) *Orders {
	return &Orders{classes: classes, tenants: map[string]*known{}, recent: list.New(), rings: map[string]map[uint64]struct{}{}}
}

// Granted learns from an entry of t that has just come to hold. It returns the
// contradictions that this brought to light, each once. Of a holder with very
// many locks it learns from those that it took last.
func (o *Orders) Granted(t *Table, e *Entry, now time.Time) []Contradiction {
	if !e.Named {
		return nil
	}
	var found []Contradiction
	steps := 0
	o.left = maxLooks
	for before := range t.alsoHeld(e) {
		for _, held := range before.Claims {
			for _, taken := range e.Claims {
				if steps++; steps > maxSteps {
					return found
				}
				if c := o.learn(e.Tenant, Example{e.Holder, held.Name, taken.Name, now}); c != nil {
					found = append(found, *c)
				}
			}
		}
	}
	return found
}

// learn notes one step. Only one that is new, or new of this holder, can bring a
// contradiction to light.
func (o *Orders) learn(tenant string, x Example) *Contradiction {
	if x.Held == x.Taken {
		return nil // the same lock again, shared: no order
	}
	from, to := o.classes.step(x.Held, x.Taken)
	k := o.tenant(tenant)
	order := k.from[from][to]
	if order == nil {
		order = &Order{Tenant: tenant, From: from, To: to}
		o.add(k, order)
	} else {
		o.recent.MoveToFront(order.inAll)
		k.recent.MoveToFront(order.inTenant)
	}
	order.Seen++
	if !order.note(x) || len(o.rings[tenant]) >= maxTenantRings {
		return nil
	}
	return o.ring(k, order, x)
}

// note keeps x if it is the first of its holder, and there is room for it.
func (o *Order) note(x Example) bool {
	if len(o.Examples) == 2 || len(o.Examples) == 1 && o.Examples[0].Holder == x.Holder {
		return false
	}
	o.Examples = append(o.Examples, x)
	return true
}

// by returns an example of another holder if there is one.
func (o *Order) by(not string) (x Example, another bool) {
	for _, x := range o.Examples {
		if x.Holder != not {
			return x, true
		}
	}
	return o.Examples[0], false
}

func (o *Orders) tenant(name string) *known {
	k := o.tenants[name]
	if k == nil {
		k = &known{from: map[string]map[string]*Order{}, into: map[string]int{}, recent: list.New()}
		o.tenants[name] = k
	}
	return k
}

func (o *Orders) add(k *known, order *Order) {
	if k.recent.Len() >= maxTenantOrders {
		o.drop(k.recent.Back().Value.(*Order))
	} else if o.recent.Len() >= maxOrders {
		o.drop(o.recent.Back().Value.(*Order))
	}
	if k.from[order.From] == nil {
		k.from[order.From] = map[string]*Order{}
	}
	k.from[order.From][order.To] = order
	k.into[order.To]++
	order.inTenant, order.inAll = k.recent.PushFront(order), o.recent.PushFront(order)
	o.tenants[order.Tenant] = k // a drop may have emptied it
}

func (o *Orders) drop(order *Order) {
	k := o.tenants[order.Tenant]
	o.dropped++
	o.recent.Remove(order.inAll)
	k.recent.Remove(order.inTenant)
	delete(k.from[order.From], order.To)
	if k.into[order.To]--; k.into[order.To] == 0 {
		delete(k.into, order.To)
	}
	if len(k.from[order.From]) == 0 {
		delete(k.from, order.From)
	}
	if k.recent.Len() == 0 {
		delete(o.tenants, order.Tenant)
	}
}

// isNew reports whether the contradiction was not reported before, and notes it.
func (o *Orders) isNew(c *Contradiction) bool {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(c.key())) // a hash takes everything
	key, reported := hash.Sum64(), o.rings[c.Tenant]
	if _, known := reported[key]; known {
		return false
	}
	if reported == nil {
		reported = map[uint64]struct{}{}
		o.rings[c.Tenant] = reported
	}
	reported[key] = struct{}{}
	if o.known++; o.known > maxRings {
		o.forgetRings()
	}
	if len(o.found) >= maxFound {
		i := o.dispensable()
		o.found = slices.Delete(o.found, i, i+1)
	}
	return true
}

// forgetRings makes room by those of the tenant that has most. They can be reported
// again.
func (o *Orders) forgetRings() {
	var most string
	for tenant, reported := range o.rings {
		if n := len(o.rings[most]); len(reported) > n || len(reported) == n && tenant < most {
			most = tenant
		}
	}
	o.known -= len(o.rings[most])
	delete(o.rings, most)
}

// dispensable returns the oldest contradiction of the tenant that has most, so
// that one tenant cannot make others' be forgotten.
func (o *Orders) dispensable() int {
	of, most := map[string]int{}, 0
	for _, c := range o.found {
		of[c.Tenant]++
		most = max(most, of[c.Tenant])
	}
	return slices.IndexFunc(o.found, func(c Contradiction) bool { return of[c.Tenant] == most })
}

// String tells the ring for a log: who held what and took what.
func (c *Contradiction) String() string {
	parts := make([]string, 0, len(c.Sides))
	for _, s := range c.Sides {
		parts = append(parts, s.Holder+" took "+s.Taken+" while it held "+s.Held)
	}
	return strings.Join(parts, "; ")
}

// key is the same for a ring wherever it begins. Names contain no slash.
func (c *Contradiction) key() string {
	first := 0
	for i, s := range c.Sides {
		if s.From < c.Sides[first].From {
			first = i
		}
	}
	parts := []string{c.Tenant}
	for i := range c.Sides {
		parts = append(parts, c.Sides[(first+i)%len(c.Sides)].From)
	}
	return strings.Join(parts, "/")
}

// Contradictions returns up to limit contradictions of the tenant, or of all
// tenants if it is "", the newest first.
func (o *Orders) Contradictions(tenant string, limit int) []Contradiction {
	var out []Contradiction
	for i := len(o.found) - 1; i >= 0 && len(out) < limit; i-- {
		if tenant == "" || o.found[i].Tenant == tenant {
			out = append(out, o.found[i])
		}
	}
	return out
}

// Known returns up to limit orders of the tenant, or of all tenants if it is "",
// those seen last first, how many there are, and how many were forgotten to make
// room.
func (o *Orders) Known(tenant string, limit int) (orders []Order, total int, dropped uint64) {
	recent := o.recent
	if tenant != "" {
		k := o.tenants[tenant]
		if k == nil {
			return nil, 0, o.dropped
		}
		recent = k.recent
	}
	for el := recent.Front(); el != nil && len(orders) < limit; el = el.Next() {
		order := *el.Value.(*Order)
		order.Examples = slices.Clone(order.Examples)
		order.inTenant, order.inAll = nil, nil
		orders = append(orders, order)
	}
	return orders, recent.Len(), o.dropped
}
