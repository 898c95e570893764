package lock

import "iter"

// namedHolder is a holder that its requests name, with all its entries in the order in
// which they joined. It is taken for one sequence of steps: while it waits for
// anything, it lets go of nothing.
type namedHolder struct {
	first, last *member
	waiting     int        // how many of its entries do not hold
	sim         *simHolder // while a search runs
}

func holderOf(e *Entry) Ref { return Ref{e.Tenant, e.Holder} }

// addToHolder adds m to the entries of its holder, if the request named one.
func (t *Table) addToHolder(m *member) {
	if !m.entry.Named {
		return
	}
	h := t.named[holderOf(m.entry)]
	if h == nil {
		h = &namedHolder{}
		t.named[holderOf(m.entry)] = h
	}
	if m.holder, m.prev = h, h.last; h.last == nil {
		h.first = m
	} else {
		h.last.next = m
	}
	h.last = m
	if !m.holds() {
		h.waiting++
	}
}

// granted notes that one of its entries came to hold.
func (h *namedHolder) granted() {
	if h != nil {
		h.waiting--
	}
}

// removeFromHolder takes m, which held or waited, out of the entries of its holder.
func (t *Table) removeFromHolder(m *member, held bool) {
	h := m.holder
	if h == nil {
		return
	}
	if !held {
		h.waiting--
	}
	if m.prev == nil {
		h.first = m.next
	} else {
		m.prev.next = m.next
	}
	if m.next == nil {
		h.last = m.prev
	} else {
		m.next.prev = m.prev
	}
	m.prev, m.next = nil, nil
	if h.first == nil {
		delete(t.named, holderOf(m.entry))
	}
}

// MaxWaits is how many entries of one named holder may wait, those that are on their way out
// included, for a deadlock of it to be looked for. One that waits for more at a time does
// not do one thing after another: many go by its name.
const MaxWaits = 100

// manyEntries of a worker are not gone through to find out that nobody waits for it.
const manyEntries = 64

// awaited reports whether anybody may wait for another entry of h than m, or m itself
// would: otherwise no wait of m can lead back to h. It is false for too many who go by
// one name.
func (h *namedHolder) awaited(m *member) bool {
	if h.waiting > MaxWaits {
		return false
	}
	n := 0
	for other := h.first; other != nil; other = other.next {
		if other == m {
			continue
		}
		if n++; n > manyEntries {
			return true
		}
		for i := range other.slots {
			if q := other.slots[i].queue; q.next != nil || m.waitsIn(q) {
				return true
			}
		}
	}
	return false
}

// waitsIn reports whether m waits in q, or would.
func (m *member) waitsIn(q *Queue) bool {
	for i := range m.slots {
		if s := &m.slots[i]; s.queue == q && !s.inFront {
			return true
		}
	}
	return false
}

// inTheWay reports whether anybody may wait for m or for another entry of its holder.
func (m *member) inTheWay() bool {
	for i := range m.slots {
		if m.slots[i].next != nil {
			return true
		}
	}
	return m.holder != nil && m.holder.awaited(m)
}

// leaving reports whether the member is going to be taken back by its own
// replica, so that nobody has to wait for it.
func (m *member) leaving() bool {
	return !m.holds() && (m.rejection != nil || m.entry.Tries())
}

// AlsoHeld yields the entries that the named holder of e holds beside e, the
// latest first. Only the last 64 of its entries are looked at.
func (t *Table) AlsoHeld(e *Entry) iter.Seq[*Entry] {
	const enough = 64
	return func(yield func(*Entry) bool) {
		m := t.members[e.ID]
		if m == nil || m.holder == nil {
			return
		}
		n := 0
		for other := m.holder.last; other != nil && n < enough; other = other.prev {
			n++
			if other != m && other.holds() && !yield(other.entry) {
				return
			}
		}
	}
}
