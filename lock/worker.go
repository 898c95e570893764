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

// leaving reports whether the member is going to be taken back by its own
// replica, so that nobody has to wait for it.
func (m *member) leaving() bool {
	return !m.holds() && (m.rejection != nil || m.entry.Tries())
}

// alsoHeld yields the entries that the named holder of e holds beside e, the
// latest first. Only the last 64 of its entries are looked at.
func (t *Table) alsoHeld(e *Entry) iter.Seq[*Entry] {
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
