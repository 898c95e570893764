package deadlock

import (
	"cmp"
	"slices"

	"github.com/fencepost/fencepost/lock"
)

// arrange sorts the relevant entries of each queue.
func (in *search) arrange() {
	for _, one := range in.entries {
		for p := range one.node.places() {
			if q := in.queueOf[p.queue]; q != nil {
				q.order = append(q.order, simClaim{one, p.claim})
			}
		}
	}
	for _, q := range in.queues {
		slices.SortFunc(
			q.order, func(a, b simClaim) int { return cmp.Compare(a.entry.Number, b.entry.Number) },
		)
		for i, c := range q.order {
			c.places = append(c.places, simPlace{q, i})
			c.pending++
		}
	}
}

// simulate releases every entry that can proceed, until none can.
func (in *search) simulate() {
	in.arrange()
	for _, n := range in.entries {
		if n.pending == 0 {
			in.grant(n)
		}
	}
	for _, q := range in.queues {
		in.advance(q)
	}
	for len(in.free) > 0 {
		n := in.free[len(in.free)-1]
		in.free = in.free[:len(in.free)-1]
		n.gone = true
		for _, p := range n.places {
			p.queue.taken -= p.queue.order[p.at].claim.Takes()
			in.advance(p.queue)
		}
	}
}

// advance moves the front of a queue. Claims in one front have one mode, so the latest represents
// all.
func (in *search) advance(q *simQueue) {
	joins := func(at int) bool {
		return lock.Joins(q.order[max(at-1, 0)].claim, q.taken, q.order[at].claim)
	}
	for q.next < len(q.order) && joins(q.next) {
		n := q.order[q.next]
		q.next++
		q.taken += n.claim.Takes()
		if n.pending--; n.pending == 0 {
			in.grant(n.simEntry)
		}
	}
}

// grant notes that n holds, and frees the holders that wait for nothing else.
func (in *search) grant(n *simEntry) {
	n.granted = true
	if n.with == nil {
		in.free = append(in.free, n)
		return
	}
	h := n.with
	if !n.holds() {
		h.waiting--
	}
	if h.waiting > 0 {
		return
	}
	if n.holds() {
		in.free = append(in.free, n)
		return
	}
	// The holder waits for nothing else: it can release everything.
	for _, other := range h.entries {
		if other.granted {
			in.free = append(in.free, other)
		}
	}
}
