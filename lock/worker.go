package lock

import "iter"

// worker is a holder that its requests name, with all its entries in the order in
// which they joined. It is taken for one sequence of steps: while it waits for
// anything, it lets go of nothing.
type worker struct {
	first, last *member
	waiting     int   // how many of its entries do not hold
	crew        *crew // while a search runs
}

func workerOf(e *Entry) Ref { return Ref{e.Tenant, e.Holder} }

// employ adds m to those of its worker, if the request named one.
func (t *Table) employ(m *member) {
	if !m.entry.Named {
		return
	}
	w := t.workers[workerOf(m.entry)]
	if w == nil {
		w = &worker{}
		t.workers[workerOf(m.entry)] = w
	}
	if m.worker, m.prev = w, w.last; w.last == nil {
		w.first = m
	} else {
		w.last.next = m
	}
	w.last = m
	if !m.holds() {
		w.waiting++
	}
}

// granted notes that one of the worker's entries came to hold.
func (w *worker) granted() {
	if w != nil {
		w.waiting--
	}
}

func (t *Table) dismiss(m *member, held bool) {
	w := m.worker
	if w == nil {
		return
	}
	if !held {
		w.waiting--
	}
	if m.prev == nil {
		w.first = m.next
	} else {
		m.prev.next = m.next
	}
	if m.next == nil {
		w.last = m.prev
	} else {
		m.next.prev = m.prev
	}
	m.prev, m.next = nil, nil
	if w.first == nil {
		delete(t.workers, workerOf(m.entry))
	}
}

// MaxWaits is how many entries of one worker may wait, those that are on their way out
// included, for a deadlock of it to be looked for. One that waits for more at a time does
// not do one thing after another: many go by its name.
const MaxWaits = 100

// manyEntries of a worker are not gone through to find out that nobody waits for it.
const manyEntries = 64

// awaited reports whether anybody may wait for another entry of w than m, or m itself
// would: otherwise no wait of m can lead back to w. It is false for too many who go by
// one name.
func (w *worker) awaited(m *member) bool {
	if w.waiting > MaxWaits {
		return false
	}
	n := 0
	for other := w.first; other != nil; other = other.next {
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

// inTheWay reports whether anybody may wait for m or for another entry of its worker.
func (m *member) inTheWay() bool {
	for i := range m.slots {
		if m.slots[i].next != nil {
			return true
		}
	}
	return m.worker != nil && m.worker.awaited(m)
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
		if m == nil || m.worker == nil {
			return
		}
		n := 0
		for other := m.worker.last; other != nil && n < enough; other = other.prev {
			n++
			if other != m && other.holds() && !yield(other.entry) {
				return
			}
		}
	}
}
