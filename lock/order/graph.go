// Package order is the lock order graph: in which order named holders take locks, and
// where the orders of different holders contradict each other, so that a deadlock is
// possible although none has happened (as Linux's lockdep finds them). Like package lock
// it does no I/O and reads no clock.
package order

import (
	"container/list"
	"hash/fnv"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/fencepost/fencepost/lock"
)

// Bounds of what a [Graph] remembers.
const (
	maxEdges        = 10_000 // in all
	maxTenantEdges  = 1_000  // of one tenant
	maxFound        = 1_000  // contradictions that are kept to be shown
	maxTenantCycles = 1_000  // contradictions of one tenant that are reported at all
	maxCycles       = 50_000 // reported contradictions that are recognised, of all tenants
	maxCycle        = 32     // of a contradiction
	maxSteps        = 64     // that one grant can teach
	maxLooks        = 20_000 // edges that are looked at because of one grant
)

// Graph learns in which order named holders take locks, and finds orders of different holders
// that contradict each other: some take A and then B, others B and then A, or a longer cycle of
// such steps. Then a deadlock is possible although none may have happened yet.
//
// Locks are instances of classes; see [classOf]. Two locks of one class are compared by their
// names: some holders take the smaller first, others the greater.
//
// Of each tenant, and of all together, Graph keeps the steps that were seen last: 30 MiB at
// most. It reports a contradiction once, and at most 1,000 of a tenant. It is not safe for
// concurrent use.
type Graph struct {
	tenants map[string]*tenantEdges
	recent  *list.List                     // of *Edge, the one seen last first
	cycles  map[string]map[uint64]struct{} // those reported, by tenant, as hashes of their keys
	known   int                            // how many these are
	left    int                            // how many edges may still be looked at for this grant
	found   []Contradiction                // the newest last
	dropped uint64
}

// Edge says that holders of a lock of one class took one of another.
type Edge struct {
	Tenant   string
	From, To string // classes
	Seen     uint64
	Examples []Example // one each of up to two holders, the one seen first first

	inTenant, inAll *list.Element
}

// Example is one time that a holder took a lock while it held another.
type Example struct {
	Holder string
	Held   string // the lock it had
	Taken  string // the lock it took then
	At     time.Time

	Subject string // of the holder's token
}

func (x Example) sameWorker(
	y Example,
) bool {
	return x.Holder == y.Holder && x.Subject == y.Subject
}

// Contradiction is a cycle of orders: each leads from the class where the one
// before it ends, and the last back to the first. Seen alone, each is harmless.
type Contradiction struct {
	Tenant string
	Found  time.Time
	Steps  []Step
}

// Step is one edge of a contradiction, with an example.
type Step struct {
	From, To string
	Example
}

// tenantEdges are the edges of one tenant.
type tenantEdges struct {
	from   map[string]map[string]*Edge // by class held, then class taken
	into   map[string]int              // how many edges lead to a class
	recent *list.List                  // of *Edge
}

// NewGraph returns an empty structure.
func NewGraph() *Graph {
	return &Graph{
		tenants: map[string]*tenantEdges{},
		recent:  list.New(),
		cycles:  map[string]map[uint64]struct{}{},
	}
}

// Granted learns from an entry that was just granted, and from what its holder also holds, the
// latest first. It returns the contradictions that this shows, each once. Of a holder with very
// many locks, it learns from those that it took last.
func (g *Graph) Granted(
	e *lock.Entry,
	beside iter.Seq[*lock.Entry],
	now time.Time,
) []Contradiction {
	if !e.Named {
		return nil
	}
	var found []Contradiction
	steps := 0
	g.left = maxLooks
	for before := range beside {
		for _, held := range before.Claims {
			for _, taken := range e.Claims {
				if steps++; steps > maxSteps {
					return found
				}
				if c := g.learn(e.Tenant, Example{e.Holder, held.Name, taken.Name, now, e.Subject}); c != nil {
					found = append(found, *c)
				}
			}
		}
	}
	return found
}

// learn notes one step. Only one that is new, or new of this holder, can bring a
// contradiction to light.
func (g *Graph) learn(tenant string, x Example) *Contradiction {
	if x.Held == x.Taken {
		return nil // the same lock again, shared: no order
	}
	from, to := step(x.Held, x.Taken)
	k := g.tenant(tenant)
	edge := k.from[from][to]
	if edge == nil {
		edge = &Edge{Tenant: tenant, From: from, To: to}
		g.add(k, edge)
	} else {
		g.recent.MoveToFront(edge.inAll)
		k.recent.MoveToFront(edge.inTenant)
	}
	edge.Seen++
	if !edge.note(x) || len(g.cycles[tenant]) >= maxTenantCycles {
		return nil
	}
	return g.cycle(k, edge, x)
}

// note keeps x if it is the first of its holder, and there is room for it.
func (e *Edge) note(x Example) bool {
	if len(e.Examples) == 2 || len(e.Examples) == 1 && e.Examples[0].sameWorker(x) {
		return false
	}
	e.Examples = append(e.Examples, x)
	return true
}

// by returns an example of another holder than of not, if there is one.
func (e *Edge) by(not Example) (x Example, another bool) {
	for _, x := range e.Examples {
		if !x.sameWorker(not) {
			return x, true
		}
	}
	return e.Examples[0], false
}

func (g *Graph) tenant(name string) *tenantEdges {
	k := g.tenants[name]
	if k == nil {
		k = &tenantEdges{from: map[string]map[string]*Edge{}, into: map[string]int{}, recent: list.New()}
		g.tenants[name] = k
	}
	return k
}

func (g *Graph) add(k *tenantEdges, edge *Edge) {
	if k.recent.Len() >= maxTenantEdges {
		g.drop(k.recent.Back().Value.(*Edge))
	} else if g.recent.Len() >= maxEdges {
		g.drop(g.recent.Back().Value.(*Edge))
	}
	if k.from[edge.From] == nil {
		k.from[edge.From] = map[string]*Edge{}
	}
	k.from[edge.From][edge.To] = edge
	k.into[edge.To]++
	edge.inTenant, edge.inAll = k.recent.PushFront(edge), g.recent.PushFront(edge)
	g.tenants[edge.Tenant] = k // a drop may have emptied it
}

func (g *Graph) drop(edge *Edge) {
	k := g.tenants[edge.Tenant]
	g.dropped++
	g.recent.Remove(edge.inAll)
	k.recent.Remove(edge.inTenant)
	delete(k.from[edge.From], edge.To)
	if k.into[edge.To]--; k.into[edge.To] == 0 {
		delete(k.into, edge.To)
	}
	if len(k.from[edge.From]) == 0 {
		delete(k.from, edge.From)
	}
	if k.recent.Len() == 0 {
		delete(g.tenants, edge.Tenant)
	}
}

// isNew reports whether the contradiction was not reported before, and notes it.
func (g *Graph) isNew(c *Contradiction) bool {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(c.key())) // a hash takes everything
	key, reported := hash.Sum64(), g.cycles[c.Tenant]
	if _, known := reported[key]; known {
		return false
	}
	if reported == nil {
		reported = map[uint64]struct{}{}
		g.cycles[c.Tenant] = reported
	}
	reported[key] = struct{}{}
	if g.known++; g.known > maxCycles {
		clear(g.cycles) // they can be reported again
		g.known = 0
	}
	if len(g.found) >= maxFound {
		i := g.dispensable()
		g.found = slices.Delete(g.found, i, i+1)
	}
	return true
}

// dispensable returns the oldest contradiction of the tenant that has most.
func (g *Graph) dispensable() int {
	of, most := map[string]int{}, 0
	for _, c := range g.found {
		of[c.Tenant]++
		most = max(most, of[c.Tenant])
	}
	return slices.IndexFunc(g.found, func(c Contradiction) bool { return of[c.Tenant] == most })
}

// String tells the cycle for a log: who held what and took what.
func (c *Contradiction) String() string {
	parts := make([]string, 0, len(c.Steps))
	for _, s := range c.Steps {
		parts = append(parts, s.Holder+" took "+s.Taken+" while it held "+s.Held)
	}
	return strings.Join(parts, "; ")
}

// key is the same for a cycle wherever it begins. Names contain no slash.
func (c *Contradiction) key() string {
	first := 0
	for i, s := range c.Steps {
		if s.From < c.Steps[first].From {
			first = i
		}
	}
	parts := []string{c.Tenant}
	for i := range c.Steps {
		parts = append(parts, c.Steps[(first+i)%len(c.Steps)].From)
	}
	return strings.Join(parts, "/")
}

// Contradictions returns up to limit contradictions of the tenant, or of all
// tenants if it is "", the newest first.
func (g *Graph) Contradictions(tenant string, limit int) []Contradiction {
	var out []Contradiction
	for i := len(g.found) - 1; i >= 0 && len(out) < limit; i-- {
		if tenant == "" || g.found[i].Tenant == tenant {
			out = append(out, g.found[i])
		}
	}
	return out
}

// Edges returns up to limit edges of the tenant, or of all tenants if it is "", those seen last
// first, how many there are, and how many were dropped.
func (g *Graph) Edges(tenant string, limit int) (edges []Edge, total int, dropped uint64) {
	recent := g.recent
	if tenant != "" {
		k := g.tenants[tenant]
		if k == nil {
			return nil, 0, g.dropped
		}
		recent = k.recent
	}
	for el := recent.Front(); el != nil && len(edges) < limit; el = el.Next() {
		edge := *el.Value.(*Edge)
		edge.Examples = slices.Clone(edge.Examples)
		edge.inTenant, edge.inAll = nil, nil
		edges = append(edges, edge)
	}
	return edges, recent.Len(), g.dropped
}
