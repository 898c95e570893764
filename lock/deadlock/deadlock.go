// Package deadlock finds entries that wait for ever: a wait-for graph of holders that name
// themselves, over the queues of a [lock.Table]. What it finds is a function of the
// entries that are there, so replicas that see the same entries agree without talking to
// each other. Like package lock it does no I/O and reads no clock.
package deadlock

import "github.com/fencepost/fencepost/lock"

// MaxLooks bounds the places in queues, and entries of their holders, at which one search for a
// deadlock looks: every grant waits for it, also of other tenants. At which ones it looks depends
// on the entries alone, and so is the same for all replicas.
const MaxLooks = 5_000

// Cycle returns the waits that lead from e back to the holder of e, or nil if there are none:
// then e is granted once all others have done what they can. Each waiter of the cycle belongs to
// the holder of the blocker before it, or is that blocker itself; the last blocker belongs to the
// holder of e.
//
// e is an entry that waits, or one that would be put at the end of its queues. A holder that
// names itself waits as a whole: it releases nothing while one of its entries waits. A holder
// without a name can release at any time after its grant. Entries that do not queue, and rejected
// ones, block no entry.
//
// It costs O(entries before e, and before those that they wait for), and next to nothing if no
// entry can wait for e's holder. It finds no cycle that takes more than [MaxLooks] looks.
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

// candidate returns e as a node, in the table or behind all entries in it, or nil if it cannot
// close a cycle: it holds, does not queue, or no entry can wait for its holder.
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
