package deadlock

import (
	"iter"
	"math"

	"github.com/fencepost/fencepost/lock"
)

// node is an entry in the wait-for graph.
type node struct {
	member *lock.Member // own, or nil if it is not in the table
	own    lock.Member
	entry  *lock.Entry
	behind []place // the position that it would have, if it is not in the table

	rejection *Rejection  // a clash or a cycle; see [Table.Detect]
	newer     *lock.Entry // which supersedes it, or nil; see [newest]
	checked   bool
	check     check   // pending if it is queued
	dependsOn []*node // entries on which the rejection depends

	holder     *holder // nil if the request did not name its holder
	group      *holder // entries with its holder's name, named by requests or not
	prev, next *node   // of the same group
}

// place is where a node stands in a queue.
type place struct {
	claim   lock.Claim
	queue   *lock.Queue // nil if it is empty
	before  *lock.Slot  // the one before it, or nil
	inFront bool
}

func nodeAt(s *lock.Slot) *node { return s.Member().Attached.(*node) }

func (t *Table) node(id lock.ID) *node {
	m := t.Member(id)
	if m == nil {
		return nil
	}
	return m.Attached.(*node)
}

// last returns e as if it joined now, without changing the table.
func (t *Table) last(e *lock.Entry, h *holder) *node {
	late := *e
	late.Number = math.MaxUint64
	n := &node{entry: &late, holder: h}
	for _, c := range e.Claims {
		q := t.Queue(lock.Ref{Tenant: e.Tenant, Name: c.Name})
		p := place{claim: c, queue: q, inFront: q.Admits(c)}
		if q != nil {
			p.before = q.Tail()
		}
		n.behind = append(n.behind, p)
	}
	return n
}

// places yields the node's position in each of its queues.
func (n *node) places() iter.Seq[place] {
	return func(yield func(place) bool) {
		for _, p := range n.behind {
			if !yield(p) {
				return
			}
		}
		if n.member == nil {
			return
		}
		for i := range n.member.Slots() {
			s := &n.member.Slots()[i]
			if !yield(place{s.Claim(), s.Queue(), s.Prev(), s.InFront()}) {
				return
			}
		}
	}
}

// holds reports whether the node is in the front of all its queues, or would be.
func (n *node) holds() bool {
	if n.member != nil {
		return n.member.Holds()
	}
	for _, p := range n.behind {
		if !p.inFront {
			return false
		}
	}
	return true
}

// waitsIn reports whether n waits in q, or would.
func (n *node) waitsIn(q *lock.Queue) bool {
	for p := range n.places() {
		if p.queue == q && !p.inFront {
			return true
		}
	}
	return false
}

// inTheWay reports whether an entry may wait for n or for another entry of its holder.
func (n *node) inTheWay() bool {
	for i := range n.member.Slots() {
		if n.member.Slots()[i].Next() != nil {
			return true
		}
	}
	return n.holder != nil && n.holder.awaited(n)
}

// leaving reports whether the analysis leaves the waiting entry out: a replica is about to remove
// it, or it is choosing and waits for any of several locks.
func (n *node) leaving() bool {
	return !n.holds() && (n.rejection != nil || n.entry.Tries() || n.entry.Choosing())
}
