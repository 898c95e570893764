package deadlock

import "github.com/fencepost/fencepost/lock"

// MaxLooks is how many places in queues, and entries of their holders, one search for a
// deadlock looks at. Everything that is granted waits for it meanwhile, also other
// tenants' locks, so it must not grow with the queues that one tenant can make. Which
// ones it looks at depends on the entries alone, and so is the same for all replicas.
const MaxLooks = 5_000

// Cycle returns the waits that lead from e back to the holder of e, or nil if
// there are none: then e comes to hold once all others have done what they can.
// Each waiter of the cycle belongs to the holder of the blocker before it, or is
// that blocker itself; the last blocker belongs to the holder of e.
//
// e is an entry that waits, or one that would be put at the end of its queues. A
// holder that names itself waits as a whole: it lets go of nothing while one of
// its entries waits. A holder without a name can let go at any time, but its
// entry has to be granted before it can. Entries that do not want to queue, and
// rejected ones, are in nobody's way.
//
// It costs O(entries before e, and before those that they wait for), and next to
// nothing if e's holder has no other entry, or none for which anybody waits. It looks at
// no more than [MaxLooks] places: of a cycle that takes more nothing is said.
func (t *Table) Cycle(e *lock.Entry) []lock.Wait {
	left := MaxLooks
	return cycleAt(t.candidate(e), &left)
}

// cycleAt looks at what there was when start joined: entries that stand after it in
// the order of all entries are not seen. It takes what it costs from looks.
func cycleAt(start *node, looks *int) []lock.Wait {
	if start == nil {
		return nil
	}
	in := newSearch(start, start.entry, looks)
	in.include(in.start)
	in.explore()
	if !in.returns || in.left < 0 {
		return nil
	}
	in.simulate()
	if in.known[start].granted {
		return nil
	}
	return in.trace()
}

// candidate returns e as a node, in the table or behind everyone in it, or nil
// if it cannot close a cycle: it holds, nobody named its holder, it does not
// queue, or its holder has nothing that others wait for.
func (t *Table) candidate(e *lock.Entry) *node {
	h := t.named.of(e)
	if !e.Named || e.Tries() || h == nil {
		return nil
	}
	n := t.node(e.ID)
	if n == nil {
		n = t.last(e, h)
	} else if h.first == h.last {
		return nil
	}
	if n.holds() || n.leaving() || !h.awaited(n) {
		return nil
	}
	return n
}
