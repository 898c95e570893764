// Package deadlock finds entries that wait forever. It builds a wait-for graph of named holders
// over the queues of a [lock.Table]. The result is a function of the present entries, so replicas
// with the same entries agree without talking. Like package lock it does no I/O and reads no
// clock.
package deadlock

import "github.com/fencepost/fencepost/lock"

// MaxLooks bounds the queue entries that one search reads, because every grant waits for the
// search. Which ones it reads depends on the entries alone, so all replicas read the same.
const MaxLooks = 5_000

// Cycle returns the waits that lead from e back to the holder of e. Without a cycle it returns
// nil: then e is granted once all others have done what they can. Each waiter of the cycle
// belongs to the holder of the blocker before it, or is that blocker itself. The last blocker
// belongs to the holder of e.
//
// e is a waiting entry, or one that would join its queues now. A named holder waits as a whole:
// it releases nothing while one of its entries waits. A holder without a name can release at any
// time after its grant. Tries, choosing and rejected entries block no entry.
//
// It costs O(entries before e, and before those that they wait for), and next to nothing if no
// entry can wait for e's holder. It finds no cycle that takes more than [MaxLooks] reads.
func (t *Table) Cycle(e *lock.Entry) []lock.Wait {
	left := MaxLooks
	return cycleAt(t.candidate(e), &left)
}

// cycleAt searches in the state when start joined: it ignores entries after start in the order of
// all entries. It subtracts its cost from looks.
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
	if !e.Named || e.Tries() || e.Choosing() || h == nil {
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
