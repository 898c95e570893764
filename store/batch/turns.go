package batch

// turnsOfBatch is how many tenants get a full turn in one batch.
const turnsOfBatch = 8

// share is what one tenant has pending.
type share[P, O any] struct {
	size        Size         // including reservations
	first, last *Write[P, O] // ready writes, in the order in which they became ready

	prev, next *share[P, O] // in the ring of tenants with ready writes
	credit     int          // operations that are left of its turn; a large write makes it negative
}

// turns lets the tenants with ready writes take turns. A turn is some operations, so a set counts
// as much as its locks would.
type turns[P, O any] struct {
	ops int          // of a turn
	now *share[P, O] // whose turn it is; nil if no write is ready
}

// next returns the next write, or nil.
func (t *turns[P, O]) next() *Write[P, O] {
	if t.now == nil {
		return nil
	}
	for t.now.credit <= 0 {
		t.begin(t.now.next)
	}
	return t.now.first
}

// begin begins the turn of a tenant.
func (t *turns[P, O]) begin(s *share[P, O]) {
	t.now = s
	s.credit += t.ops
}

// add puts a write behind the ready ones of its tenant.
func (t *turns[P, O]) add(w *Write[P, O]) {
	s := w.state.share
	w.state.prev = s.last
	if s.last = w; w.state.prev != nil {
		w.state.prev.state.next = w
		return
	}
	s.first = w
	t.enter(s)
}

// enter makes a tenant the last to get its turn.
func (t *turns[P, O]) enter(s *share[P, O]) {
	if t.now == nil {
		s.prev, s.next = s, s
		t.begin(s)
		return
	}
	s.prev, s.next = t.now.prev, t.now
	s.prev.next, s.next.prev = s, s
}

func (t *turns[P, O]) remove(w *Write[P, O]) {
	s, prev, next := w.state.share, w.state.prev, w.state.next
	if prev == nil {
		s.first = next
	} else {
		prev.state.next = next
	}
	if next == nil {
		s.last = prev
	} else {
		next.state.prev = prev
	}
	if s.first == nil {
		t.leave(s)
	}
}

// leave ends the turn of a tenant without ready writes. It saves no credit.
func (t *turns[P, O]) leave(s *share[P, O]) {
	s.credit = min(s.credit, 0)
	switch {
	case s.next == s:
		t.now = nil
	case t.now == s:
		t.begin(s.next)
	}
	s.prev.next, s.next.prev = s.next, s.prev
	s.prev, s.next = nil, nil
}
