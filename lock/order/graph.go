// Package order is the lock order graph: the orders in which named holders take locks. Orders of
// different holders that contradict each other make a deadlock possible, even if none has
// happened (as in Linux's lockdep). Like package lock it does no I/O and reads no clock.
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

// Bounds of a [Graph].
const (
	maxEdges        = 10_000 // in all
	maxTenantEdges  = 1_000  // of one tenant
	maxFound        = 1_000  // contradictions kept for display
	maxTenantCycles = 1_000  // reported contradictions of one tenant
	maxCycles       = 50_000 // reported contradictions of all tenants
	maxCycle        = 32     // edges of a contradiction
	maxSteps        = 64     // steps learnt from one grant
	maxLooks        = 20_000 // edges read for one grant
)

// Graph learns in which order named holders take locks, and finds orders of different holders
// that contradict each other: some take A and then B, others B and then A, or a longer cycle of
// such steps. Then a deadlock is possible even if none has happened yet.
//
// Locks are instances of classes; see [classOf]. Two locks of one class are compared by their
// names: some holders take the smaller first, others the greater.
//
// Graph keeps the most recent steps of each tenant, and of all together: 30 MiB at most. It
// reports a contradiction once, and at most 1,000 of a tenant. It is not safe for concurrent use.
type Graph struct {
	tenants map[string]*tenantEdges
	recent  *list.List // of *Edge, the most recently seen first
	// reported contradictions by tenant, as hashes of their keys
	cycles  map[string]map[uint64]struct{}
	known   int             // the number of cycles
	left    int             // edges that may still be read for this grant
	found   []Contradiction // the newest last
	dropped uint64
}

// Edge records that holders of a lock of one class took one of another.
type Edge struct {
	Tenant   string
	From, To string // classes
	Seen     uint64
	Examples []Example // one each of up to two holders, the first seen first

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

func (x Example) sameWorker(y Example) bool {
	return x.Holder == y.Holder && x.Subject == y.Subject
}

// Contradiction is a cycle of orders: each starts at the class where the one before it ends, and
// the last ends at the first. Each order alone is harmless.
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
	from   map[string]map[string]*Edge // by held class, then taken class
	into   map[string]int              // the number of edges to a class
	recent *list.List                  // of *Edge
}

// NewGraph returns an empty graph.
func NewGraph() *Graph {
	return &Graph{
		tenants: map[string]*tenantEdges{}, recent: list.New(), cycles: map[string]map[uint64]struct{}{},
	}
}

// Granted learns from an entry that was just granted, and from what its holder also holds, the
// latest first. It returns the new contradictions. For a holder with very many locks, it learns
// from the latest ones.
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

// learn records one step. Only a step that is new, or new for this holder, can show a
// contradiction.
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

// note keeps x if it is the first of its holder and fewer than two are kept.
func (e *Edge) note(x Example) bool {
	if len(e.Examples) == 2 || len(e.Examples) == 1 && e.Examples[0].sameWorker(x) {
		return false
	}
	e.Examples = append(e.Examples, x)
	return true
}

// by returns an example of another holder than not's, if there is one.
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

// isNew reports whether the contradiction was not reported before, and records it.
func (g *Graph) isNew(c *Contradiction) bool {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(c.key())) // a hash never fails
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

// dispensable returns the oldest contradiction of the tenant with most.
func (g *Graph) dispensable() int {
	of, most := map[string]int{}, 0
	for _, c := range g.found {
		of[c.Tenant]++
		most = max(most, of[c.Tenant])
	}
	return slices.IndexFunc(g.found, func(c Contradiction) bool { return of[c.Tenant] == most })
}

// String describes the cycle for a log: which holder held which lock and took which.
func (c *Contradiction) String() string {
	parts := make([]string, 0, len(c.Steps))
	for _, s := range c.Steps {
		parts = append(parts, s.Holder+" took "+s.Taken+" while it held "+s.Held)
	}
	return strings.Join(parts, "; ")
}

// key is the same for a cycle wherever it starts. Names contain no slash.
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

// Edges returns up to limit edges of the tenant, or of all tenants if it is "", the most recently
// seen first. It also returns the number of edges, and how many were dropped.
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
