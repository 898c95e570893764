package blocking

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/fencepost/fencepost/lock"
)

// maxWaits bounds the waiting entries of one named holder. Above it, the name is taken for one
// that many clients use, as for deadlocks.
const maxWaits = 100

// Queue is a lock with waiters: the blocking entry, and those behind it.
type Queue struct {
	lock.Ref
	Head   *lock.Entry
	Holds  bool      // the head holds; otherwise it is a set that waits for another lock
	Since  time.Time // since when the head blocks
	Oldest time.Time // since when the first behind it waits
	Front  int       // blocking entries, including the head
	Behind []*lock.Entry

	// Further is the number of entries behind Behind. Only their number is known.
	Further int

	// Or lists, for a semaphore, the other blocking holders: any release frees a slot.
	Or []Holder
}

// Holder is an entry that holds.
type Holder struct {
	Entry *lock.Entry
	Since time.Time
}

// Limits bound what a forest lists. What it does not list still counts.
type Limits struct {
	Trees int // of the forest
	Waits int // of a tree
	Depth int // of a tree
}

// Forest is all entries that wait, below the entries that block them.
type Forest struct {
	Trees   []*Tree       // most blamed first
	Heads   int           // the number of trees
	Waiting int           // in all trees
	Blamed  time.Duration // of the known waiters
}

// Tree is a holder that blocks others and does not wait, with everything that it blocks.
type Tree struct {
	Tenant string
	Holder string
	Named  bool // requests name the holder; otherwise the tree is for one entry
	Cycle  bool // the holder waits too: a deadlock that will be rejected soon
	Heads  []Head
	Waits  []Wait // the listed ones, each after the one that it waits for

	Waiting int           // in the whole tree
	Depth   int           // of the whole tree, as far as known
	Blamed  time.Duration // of the known waiters
}

// Head is a lock at which a tree's holder blocks others.
type Head struct {
	Lock    string
	Entry   *lock.Entry
	Holds   bool
	Since   time.Time
	Oldest  time.Time // since when the first behind it waits
	Front   int
	Waiting int

	// A forest does not know holds of the past, so the caller sets these.
	Hangs bool          // it keeps the lock for longer than is usual
	Usual time.Duration // how long others held the lock, 0 if unknown
}

// Wait is a waiting entry in a tree.
type Wait struct {
	Lock     string
	Entry    *lock.Entry
	Position int
	Depth    int         // 1 waits for the head of the tree
	Behind   *lock.Entry // the entry that blocks it
	Under    *lock.Entry // whose wait delays Behind; nil at depth 1

	// Since is the time from which every wait up to the head of the tree has existed. Before it, the
	// entry did not wait because of the tree's holder.
	Since time.Time
}

// actor works sequentially: a named holder with all its entries, or one entry.
type actor struct {
	lock.Worker
	id lock.ID
}

// graph records what each actor blocks and what it waits for.
type graph struct {
	now    time.Time
	limits Limits
	crowds map[lock.Worker]bool  // names that many clients use
	blocks map[actor][]*Queue    // queues that the actor blocks
	waits  map[actor]*lock.Entry // the actor's first wait
	done   map[actor]bool
}

// Of returns the forest at an instant. It lists an entry that waits for several locks once, in
// the first of their queues. It lists a waiting holder below its first waiting entry.
func Of(queues []Queue, now time.Time, limits Limits) *Forest {
	slices.SortFunc(queues, func(a, b Queue) int {
		return cmp.Or(strings.Compare(a.Tenant, b.Tenant), strings.Compare(a.Name, b.Name))
	})
	g := &graph{
		now: now, limits: limits, crowds: crowds(queues), blocks: map[actor][]*Queue{},
		waits: map[actor]*lock.Entry{}, done: map[actor]bool{},
	}
	g.link(queues)
	f := &Forest{}
	for _, a := range g.heads() {
		f.add(g.tree(a, false))
	}
	for _, a := range g.inOrder() { // the remaining actors wait for themselves
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

// crowds returns the workers whose name has more waiting entries than one worker would.
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
				q.Behind[at] = nil // listed elsewhere, but its place counts
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
			strings.Compare(a.Tenant, b.Tenant), strings.Compare(a.Holder, b.Holder),
			strings.Compare(a.Subject, b.Subject), strings.Compare(string(a.id), string(b.id)),
		)
	})
	return all
}

// heads returns the actors that wait for nothing.
func (g *graph) heads() []actor {
	return slices.DeleteFunc(g.inOrder(), func(a actor) bool { return g.waits[a] != nil })
}

func (g *graph) tree(a actor, cycle bool) *Tree {
	first := g.blocks[a][0].Head
	t := &Tree{Tenant: a.Tenant, Holder: first.Holder, Named: a.id == "", Cycle: cycle}
	for _, q := range g.blocks[a] {
		t.Heads = append(t.Heads, Head{
			Lock: q.Name, Entry: q.Head, Holds: q.Holds, Since: q.Since, Oldest: q.Oldest,
			Front: q.Front, Waiting: len(q.Behind) + q.Further,
		})
	}
	g.grow(t, a, Wait{})
	return t
}

// grow adds all entries that wait for an actor, which itself waits as in under.
func (g *graph) grow(t *Tree, a actor, under Wait) {
	g.done[a] = true
	for _, q := range g.blocks[a] {
		t.Waiting += q.Further
		for at, e := range q.Behind {
			if e == nil {
				continue
			}
			w := Wait{
				Lock: q.Name, Entry: e, Position: at + 1, Depth: under.Depth + 1, Behind: q.Head,
				Under: under.Entry,
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
