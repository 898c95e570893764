package lock_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/lock/locktest"
)

// pool is a table with what the brute force compares it with.
type pool struct {
	t     *testing.T
	table *lock.Table
	model *locktest.Model
	ready map[lock.ID]bool // as TakeReady reported
	seen  map[lock.ID]bool // entries that have held, or could choose, and are there
	did   []string
}

func newPool(t *testing.T) *pool {
	return &pool{
		t: t, table: lock.NewTable(), model: locktest.NewModel(),
		ready: map[lock.ID]bool{}, seen: map[lock.ID]bool{},
	}
}

// joins are the entries of the brute force: pools, and those that meet them in their queues.
func joins() []func(id lock.ID, number uint64) *lock.Entry {
	of := func(mode lock.Mode, limit, some int, names ...string) func(lock.ID, uint64) *lock.Entry {
		return func(id lock.ID, number uint64) *lock.Entry {
			e := locktest.Pool(id, number, some, names...)
			for i := range e.Claims {
				e.Claims[i].Mode, e.Claims[i].Limit = mode, limit
			}
			slices.Reverse(e.Order)
			return e
		}
	}
	return []func(lock.ID, uint64) *lock.Entry{
		of(lock.Exclusive, 0, 1, "a", "b"), of(lock.Exclusive, 0, 2, "a", "b", "c"),
		of(lock.Shared, 0, 1, "a", "b"), of(lock.Semaphore, 2, 1, "a", "b"),
		of(lock.Exclusive, 0, 0, "a"), of(lock.Exclusive, 0, 0, "a", "b"),
	}
}

// moves returns what can happen next.
func (p *pool) moves() (all []func(*pool)) {
	n := uint64(len(p.did) + 1)
	for i, join := range joins() {
		all = append(all, func(p *pool) { p.join(join(lock.ID(fmt.Sprintf("%d:%d", n, i)), n)) })
	}
	for _, e := range p.model.Entries {
		all = append(all, func(p *pool) { p.remove(e.ID) })
		if p.model.Choice(e) != nil {
			all = append(all, func(p *pool) { p.narrow(e.ID) })
		}
	}
	return all
}

func (p *pool) join(e *lock.Entry) {
	p.did = append(p.did, fmt.Sprintf("join %s", e.ID))
	if _, err := p.table.Insert(e); err != nil {
		p.t.Fatal(err)
	}
	p.model.Insert(e)
}

func (p *pool) remove(id lock.ID) {
	p.did = append(p.did, fmt.Sprintf("remove %s", id))
	p.table.Remove(id)
	p.model.Remove(id)
	delete(p.ready, id)
	delete(p.seen, id)
}

func (p *pool) narrow(id lock.ID) {
	p.did = append(p.did, fmt.Sprintf("narrow %s", id))
	e := p.model.Find(id)
	kept, _ := p.table.Member(id).Choice()
	if diff := cmp.Diff(p.model.Choice(e), kept); diff != "" {
		p.t.Fatalf("%v: %s keeps (-want +got):\n%s", p.did, id, diff)
	}
	now := e.Narrowed(kept)
	if granted, ok := p.table.Narrow(now); !ok || !slices.Contains(granted, now) {
		p.t.Fatalf("%v: Narrow = %v, %t", p.did, granted, ok)
	}
	p.model.Narrow(now)
	delete(p.ready, id)
}

// check compares the table with what the entries alone say.
func (p *pool) check() {
	for _, e := range p.table.TakeReady() {
		p.ready[e.ID] = true
	}
	ready, held := map[lock.ID]bool{}, []lock.ID{}
	for _, e := range p.model.Entries {
		_, holds := p.table.Entry(e.ID)
		can := p.model.Choice(e) != nil
		switch {
		case holds:
			held = append(held, e.ID)
		case can:
			ready[e.ID] = true
		case p.seen[e.ID]:
			p.t.Fatalf("%v: %s was at the front and waits", p.did, e.ID)
		}
		p.seen[e.ID] = holds || can
	}
	slices.Sort(held)
	if diff := cmp.Diff(p.model.Holders(), held, cmpopts.EquateEmpty()); diff != "" {
		p.t.Fatalf("%v: holders (-want +got):\n%s", p.did, diff)
	}
	if diff := cmp.Diff(ready, p.ready); diff != "" {
		p.t.Fatalf("%v: can choose (-want +reported):\n%s", p.did, diff)
	}
	p.checkConflicts()
}

// checkConflicts looks for two holders that exclude each other, and for an entry that overtook
// one before it that asked for the same.
func (p *pool) checkConflicts() {
	for r, q := range p.table.Queues() {
		var holding []lock.Claim
		for e := range q.Holding() {
			holding = append(holding, locktest.ClaimOn(e, r.Name))
		}
		if front(holding) != len(holding) {
			p.t.Fatalf("%v: %v is held by claims in conflict: %v", p.did, r, holding)
		}
	}
	kind := func(e *lock.Entry) lock.ID { return e.ID[len(e.ID)-1:] }
	for i, e := range p.model.Entries {
		for _, later := range p.model.Entries[i+1:] {
			if kind(e) == kind(later) && p.seen[later.ID] && !p.seen[e.ID] {
				p.t.Fatalf("%v: %s overtook %s", p.did, later.ID, e.ID)
			}
		}
	}
}

// drain lets every holder leave, and every entry choose that can, until nothing moves.
func (p *pool) drain() {
	for moved := true; moved; {
		moved = false
		for _, e := range slices.Clone(p.model.Entries) {
			if p.model.Choice(e) != nil {
				p.narrow(e.ID)
				moved = true
			} else if p.model.Holds(e) {
				p.remove(e.ID)
				moved = true
			}
		}
	}
	if n, held := p.table.Len(); n != 0 || held != 0 || len(maps.Collect(p.table.Queues())) != 0 {
		p.t.Fatalf("%v: %d wait forever:\n%s", p.did, n, locktest.Describe(p.table))
	}
	for mode, c := range p.table.Counts() {
		if c != (lock.Counts{}) || p.table.Longest() != nil {
			p.t.Fatalf("%v: an empty table counts %v for %s", p.did, c, mode)
		}
	}
}

// Whatever joins, chooses and leaves in whatever order: no two holders exclude each other, no
// entry that asked first is overtaken, no position at the front is lost, and no entries wait for
// each other.
func TestChoosingEntriesWaitForNoCircle(t *testing.T) {
	t.Parallel()
	const depth = 5
	var explore func(path []int)
	explore = func(path []int) {
		p := newPool(t)
		for _, i := range path {
			p.moves()[i](p)
			p.check()
		}
		if next := len(p.moves()); len(path) < depth {
			for i := range next {
				explore(append(path, i))
			}
		}
		p.drain()
	}
	explore(nil)
}
