package lock

import "math"

// MaxLooks is how many places in queues, and entries of their holders, one search for a
// deadlock looks at. Everything that is granted waits for it meanwhile, also other
// tenants' locks, so it must not grow with the queues that one tenant can make. Which
// ones it looks at depends on the entries alone, and so is the same for all replicas.
const MaxLooks = 5_000

// Wait is one step of a cycle: somebody waits for a lock, and somebody is in the
// way.
type Wait struct {
	Waiter *Entry
	Lock   string

	// Blocker holds the lock, or stands before Waiter in its queue if Holds is
	// false.
	Blocker *Entry
	Holds   bool
}

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
// no more than [MaxLooks] places: of a cycle that takes more nothing is said. It leaves
// the table as it was, but makes notes in it meanwhile.
func (t *Table) Cycle(e *Entry) []Wait {
	looks := MaxLooks
	return cycleAt(t.candidate(e), &looks)
}

// cycleAt looks at what there was when start joined: entries that stand after it in
// the order of all entries are not seen. It takes what it costs from looks.
func cycleAt(start *member, looks *int) []Wait {
	if start == nil {
		return nil
	}
	in := newSearch(start, start.entry, looks)
	defer in.clear()
	in.include(in.start)
	in.explore()
	if !in.returns || in.left < 0 {
		return nil
	}
	in.simulate()
	if start.sim.granted {
		return nil
	}
	return in.trace()
}

// candidate returns e as a member, in the table or behind everyone in it, or nil
// if it cannot close a cycle: it holds, nobody named its holder, it does not
// queue, or its holder has nothing that others wait for.
func (t *Table) candidate(e *Entry) *member {
	h := t.named[holderOf(e)]
	if !e.Named || e.Tries() || h == nil {
		return nil
	}
	m := t.members[e.ID]
	if m == nil {
		m = t.last(e, h)
	} else if h.first == h.last {
		return nil
	}
	if m.holds() || m.leaving() || !h.awaited(m) {
		return nil
	}
	return m
}

// last returns e as if it had joined now, without changing the table.
func (t *Table) last(e *Entry, h *namedHolder) *member {
	late := *e
	late.Number = math.MaxUint64
	m := &member{entry: &late, holder: h, slots: make([]slot, len(e.Claims))}
	for i, c := range e.Claims {
		s := slot{member: m, claim: c, queue: t.queues[Ref{e.Tenant, c.Name}]}
		if s.queue == nil || s.queue.next == nil && joins(s.queue.head.claim, s.queue.front, c) {
			s.inFront = true
			m.fronts++
		} else {
			s.prev = s.queue.tail
		}
		m.slots[i] = s
	}
	return m
}
