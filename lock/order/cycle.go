package order

import (
	"maps"
	"slices"
)

// reached is a class on the way back, and whether more than one holder takes the steps to it.
type reached struct {
	class   string
	several bool
}

// arrival is how the search first reached a class, which is by the fewest steps.
type arrival struct {
	from reached
	edge *Edge // nil at the start
}

// cycle searches for the shortest way from the edge's end back to its start with steps of more
// than one holder. One holder takes its steps one after the other and cannot wait for itself. The
// search stops when the grant's budget is used up.
func (g *Graph) cycle(k *tenantEdges, edge *Edge, x Example) *Contradiction {
	if k.into[edge.From] == 0 {
		return nil
	}
	_, several := edge.by(x)
	start := reached{edge.To, several}
	goal := reached{edge.From, true}
	came := map[reached]arrival{start: {}}
	for todo := []reached{start}; len(todo) > 0; todo = todo[1:] {
		if todo[0] == goal {
			break
		}
		for _, to := range slices.Sorted(maps.Keys(k.from[todo[0].class])) {
			if g.left--; g.left < 0 {
				return nil
			}
			next := k.from[todo[0].class][to]
			_, another := next.by(x)
			r := reached{to, todo[0].several || another}
			if to == edge.From && !r.several {
				continue // a cycle, but of one holder
			}
			if _, been := came[r]; !been {
				came[r] = arrival{todo[0], next}
				todo = append(todo, r)
			}
		}
	}
	if _, ok := came[goal]; !ok {
		return nil
	}
	way := wayTo(came, goal)
	if !simple(way) {
		way = g.detour(k, edge, x, several, len(way))
	}
	if way == nil || len(way) >= maxCycle {
		return nil
	}
	return g.report(edge, x, way)
}

// simple reports whether the way passes every class once. A way that does not is two cycles; the
// one that begins with the new edge belongs to one holder.
func simple(way []*Edge) bool {
	passed := make(map[string]bool, len(way))
	for _, edge := range way {
		if passed[edge.From] {
			return false
		}
		passed[edge.From] = true
	}
	return true
}

// wayTo returns the edges to the goal, in order.
func wayTo(came map[reached]arrival, goal reached) []*Edge {
	var way []*Edge
	for at := goal; came[at].edge != nil; at = came[at].from {
		way = append(way, came[at].edge)
	}
	slices.Reverse(way)
	return way
}

// report makes a contradiction of a cycle, unless it was reported before.
func (g *Graph) report(edge *Edge, x Example, way []*Edge) *Contradiction {
	c := Contradiction{Tenant: edge.Tenant, Found: x.At, Steps: []Step{{edge.From, edge.To, x}}}
	alone := true
	for _, next := range way {
		example, another := next.by(x)
		alone = alone && !another
		c.Steps = append(c.Steps, Step{next.From, next.To, example})
	}
	if alone { // then another holder took the first step before
		c.Steps[0].Example, _ = edge.by(x)
	}
	if !g.isNew(&c) {
		return nil
	}
	g.found = append(g.found, c)
	return &c
}

// Bounds of the search for a way that is not the shortest: its longest way, and its steps in all.
// Finding such ways is hard in general.
const (
	longestDetour = 16
	maxTries      = 5_000
)

// detour searches for the shortest way back that passes every class once.
func (g *Graph) detour(k *tenantEdges, edge *Edge, x Example, several bool, atLeast int) []*Edge {
	tries := min(maxTries, g.left)
	d := detour{
		tenantEdges: k, goal: edge.From, not: x, passed: map[string]bool{edge.To: true}, left: tries,
	}
	defer func() { g.left -= tries - max(0, d.left) }()
	for steps := atLeast; steps <= longestDetour && d.left > 0; steps++ {
		if d.walk(edge.To, several, steps) {
			return d.way
		}
	}
	return nil
}

type detour struct {
	*tenantEdges
	goal   string
	not    Example // its holder must not take all steps
	passed map[string]bool
	way    []*Edge
	left   int
}

// walk continues from a class for at most that many steps.
func (d *detour) walk(at string, several bool, steps int) bool {
	for _, to := range slices.Sorted(maps.Keys(d.from[at])) {
		if d.left--; d.left < 0 {
			return false
		}
		next := d.from[at][to]
		_, another := next.by(d.not)
		switch {
		case to == d.goal && (several || another):
			d.way = append(d.way, next)
			return true
		case to == d.goal, steps == 1, d.passed[to]:
			continue
		}
		d.passed[to], d.way = true, append(d.way, next)
		if d.walk(to, several || another, steps-1) {
			return true
		}
		d.way = d.way[:len(d.way)-1]
		delete(d.passed, to)
	}
	return false
}
