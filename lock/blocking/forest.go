package blocking

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/fencepost/fencepost/lock"
)

// maxWaits is how many entries of one named holder may wait. A holder with more is a name that
// many clients use, as for deadlocks.
const maxWaits = 100

// Queue is a lock with waiters: the entry that is in the way, and those behind it.
type Queue struct {
	lock.Ref
	Head   *lock.Entry
	Holds  bool      // the head holds; otherwise it is a set that waits for another lock
	Since  time.Time // since when the head is in the way
	Front  int       // how many are in the way with it, itself included
	Behind []*lock.Entry

	// Further is how many stand behind those. They count, and nothing else is known of them.
	Further int

	// Or is, of a semaphore, who else is in the way: if any of them lets go there is room.
	Or []Holder
}

// Holder is an entry that holds.
type Holder struct {
	Entry *lock.Entry
	Since time.Time
}

// Limits bound what of a forest is listed. What is not listed counts all the same.
type Limits struct {
	Trees int // of the forest
	Waits int // of a tree
	Depth int // of a tree
}

// Forest is all entries that wait, below the entries that block them.
type Forest struct {
	Trees   []*Tree       // those blamed for most first
	Heads   int           // how many trees there are
	Waiting int           // in all trees
	Blamed  time.Duration // of the known waiters
}

// Tree is a holder that blocks others and does not wait, with all that it blocks.
type Tree struct {
	Tenant string
	Holder string
	Named  bool // the entries are of a holder that requests name; otherwise there is one entry
	Cycle  bool // the holder waits too: a deadlock that is about to be rejected
	Heads  []Head
	Waits  []Wait // those listed, each behind the one for which it waits

	Waiting int           // in the whole tree
	Depth   int           // of the whole tree, as far as it is known
	Blamed  time.Duration // of the known waiters
}

// Head is a lock at which the holder of a tree blocks others.
type Head struct {
	Lock    string
	Entry   *lock.Entry
	Holds   bool
	Since   time.Time
	Front   int
	Waiting int
}

// Wait is an entry that waits.
type Wait struct {
	Lock     string
	Entry    *lock.Entry
	Position int
	Depth    int         // 1 waits for the head of the tree itself
	Behind   *lock.Entry // the entry that blocks it
	Under    *lock.Entry // whose wait holds up Behind; nil at depth 1

	// Since is since when all of it has been so, up to the head of the tree: before, it was not
	// because of him that this entry waited.
	Since time.Time
}

// actor takes its steps one after another: a named holder with all its entries, or one
// entry.
type actor struct {
	lock.Worker
	id lock.ID
}

// graph has for each actor what it blocks, and what it waits for.
type graph struct {
	now    time.Time
	limits Limits
	crowds map[lock.Worker]bool  // by whose name many go
	blocks map[actor][]*Queue    // at which he is in the way
	waits  map[actor]*lock.Entry // the first of his waits
	done   map[actor]bool
}

// Of returns the forest at an instant. An entry that waits for several locks is listed once, for
// the first of the queues; a holder that waits, below its first entry that does.
func Of(queues []Queue, now time.Time, limits Limits) *Forest {
	slices.SortFunc(queues, func(a, b Queue) int {
		return cmp.Or(strings.Compare(a.Tenant, b.Tenant), strings.Compare(a.Name, b.Name))
	})
	g := &graph{
		now:    now,
		limits: limits,
		crowds: crowds(queues),
		blocks: map[actor][]*Queue{},
		waits:  map[actor]*lock.Entry{},
		done:   map[actor]bool{},
	}
	g.link(queues)
	f := &Forest{}
	for _, a := range g.heads() {
		f.add(g.tree(a, false))
	}
	for _, a := range g.inOrder() { // the actors that are left wait for themselves
		if !g.done[a] {
			f.add(g.tree(a, true))
		}
	}
	slices.SortStableFunc(f.Trees, func(a, b *Tree) int {
		return cmp.Or(cmp.Compare(b.Blamed, a.Blamed), cmp.Compare(b.Waiting, a.Waiting))
	})
	f.Trees = f.Trees[:min(len(f.Trees), limits.Trees)]
	return f
}

func (f *Forest) add(t *Tree) {
	f.Trees = append(f.Trees, t)
	f.Heads++
	f.Waiting += t.Waiting
	f.Blamed += t.Blamed
}

// crowds returns the workers by whose name more wait than one would.
func crowds(queues []Queue) map[lock.Worker]bool {
	waiting, many := map[lock.Worker]map[lock.ID]bool{}, map[lock.Worker]bool{}
	for i := range queues {
		for _, e := range queues[i].Behind {
			r := e.Worker()
			if !e.Named || many[r] {
				continue
			}
			if waiting[r] == nil {
				waiting[r] = map[lock.ID]bool{}
			}
			waiting[r][e.ID] = true
			many[r] = len(waiting[r]) > maxWaits
		}
	}
	return many
}

func (g *graph) actorOf(e *lock.Entry) actor {
	if e.Named && !g.crowds[e.Worker()] {
		return actor{Worker: e.Worker()}
	}
	return actor{Worker: lock.Worker{Tenant: e.Tenant}, id: e.ID}
}

func (g *graph) link(queues []Queue) {
	seen := map[lock.ID]bool{}
	for i := range queues {
		q := &queues[i]
		for at, e := range q.Behind {
			if seen[e.ID] {
				q.Behind[at] = nil // it is listed elsewhere, but its place counts
				continue
			}
			seen[e.ID] = true
			a := g.actorOf(e)
			if w := g.waits[a]; w == nil || e.Number < w.Number {
				g.waits[a] = e
			}
		}
	}
	for i := range queues {
		q := &queues[i]
		g.choose(q)
		head := g.actorOf(q.Head)
		g.blocks[head] = append(g.blocks[head], q)
	}
}

// choose blames a holder of a semaphore that does not wait, if there is one.
func (g *graph) choose(q *Queue) {
	if g.waits[g.actorOf(q.Head)] == nil {
		return
	}
	for _, other := range q.Or {
		if g.waits[g.actorOf(other.Entry)] == nil {
			q.Head, q.Since, q.Holds = other.Entry, other.Since, true
			return
		}
	}
}

// inOrder returns all actors that block others, by tenant and holder.
func (g *graph) inOrder() []actor {
	all := make([]actor, 0, len(g.blocks))
	for a := range g.blocks {
		all = append(all, a)
	}
	slices.SortFunc(all, func(a, b actor) int {
		return cmp.Or(
			strings.Compare(a.Tenant, b.Tenant),
			strings.Compare(a.Holder, b.Holder),
			strings.Compare(a.Subject, b.Subject),
			strings.Compare(string(a.id), string(b.id)),
		)
	})
	return all
}

// heads are those of them who wait for nothing.
func (g *graph) heads() []actor {
	return slices.DeleteFunc(g.inOrder(), func(a actor) bool { return g.waits[a] != nil })
}

func (g *graph) tree(a actor, cycle bool) *Tree {
	first := g.blocks[a][0].Head
	t := &Tree{Tenant: a.Tenant, Holder: first.Holder, Named: a.id == "", Cycle: cycle}
	for _, q := range g.blocks[a] {
		t.Heads = append(
			t.Heads,
			Head{q.Name, q.Head, q.Holds, q.Since, q.Front, len(q.Behind) + q.Further},
		)
	}
	g.grow(t, a, Wait{})
	return t
}

// grow adds all entries that wait for an actor, which itself waits as under says.
func (g *graph) grow(t *Tree, a actor, under Wait) {
	g.done[a] = true
	for _, q := range g.blocks[a] {
		t.Waiting += q.Further
		for at, e := range q.Behind {
			if e == nil {
				continue
			}
			w := Wait{
				Lock:     q.Name,
				Entry:    e,
				Position: at + 1,
				Depth:    under.Depth + 1,
				Behind:   q.Head,
				Under:    under.Entry,
			}
			w.Since = latest(e.EnqueuedAt, q.Since, under.Since)
			g.count(t, w)
			if next := g.actorOf(e); g.waits[next] == e && !g.done[next] {
				g.grow(t, next, w)
			}
		}
	}
}

func (g *graph) count(t *Tree, w Wait) {
	t.Waiting++
	t.Depth = max(t.Depth, w.Depth)
	t.Blamed += max(0, g.now.Sub(w.Since))
	if w.Depth <= g.limits.Depth && len(t.Waits) < g.limits.Waits {
		t.Waits = append(t.Waits, w)
	}
}

func latest(a, b, c time.Time) time.Time {
	if b.After(a) {
		a = b
	}
	if c.After(a) {
		a = c
	}
	return a
}
