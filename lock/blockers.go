package lock

import "iter"

// MaxBlockers bounds the entries on which a removal is conditional. For a semaphore with a
// greater limit, removals are unconditional.
const MaxBlockers = 100

// Blockers returns entries that block the one with the id: while all of them are in the table, it
// does not hold. One blocker suffices, unless all entries before it share its semaphore. Then it
// takes as many as the limit, and above [MaxBlockers] Blockers returns none. ok is false if the
// entry holds or is not in the table. A choosing entry is its own blocker: it does not hold until
// it left queues.
//
// Without nearest, the blockers are at the head of a queue; with nearest, they are right before
// the entry. The head changes rarely while the lock is held for long, the entries right before
// change rarely while the lock changes hands.
func (t *Table) Blockers(id ID, nearest bool) (blockers []*Entry, ok bool) {
	m := t.members[id]
	if m == nil || m.Holds() {
		return nil, false
	}
	if m.entry.Choosing() {
		return []*Entry{m.entry}, true
	}
	for i := range m.slots {
		s := &m.slots[i]
		if s.inFront {
			continue
		}
		before := s.before
		if nearest {
			before = s.backwards
		}
		blockers = fewer(blockers, obstacles(before, s.claim))
	}
	return blockers, true
}

// BlockersIn is like [Table.Blockers], for an entry in one queue as read from a store. ok is
// false if it is in the front there.
func BlockersIn(queue []*Entry, e *Entry, name string, nearest bool) (blockers []*Entry, ok bool) {
	claims := ClaimsOn(queue, name)
	place := Place(queue, e.ID)
	if place < Front(claims) {
		return nil, false
	}
	before := func(yield func(*Entry, Claim) bool) {
		for i := range place {
			if nearest {
				i = place - 1 - i
			}
			if !yield(queue[i], claims[i]) {
				return
			}
		}
	}
	return obstacles(before, claims[place]), true
}

// obstacles returns the fewest entries, from the first on, that block a claim.
func obstacles(before iter.Seq2[*Entry, Claim], c Claim) []*Entry {
	var alike []*Entry
	for e, other := range before {
		if !Joins(other, 1, c) {
			return []*Entry{e}
		}
		if c.Mode == Semaphore && c.Limit <= MaxBlockers && len(alike) < c.Limit {
			alike = append(alike, e)
		}
	}
	if c.Mode != Semaphore || len(alike) < c.Limit {
		return nil
	}
	return alike
}

func fewer(a, b []*Entry) []*Entry {
	if b == nil || a != nil && len(a) <= len(b) {
		return a
	}
	return b
}

// before yields the entries before s, from the head.
func (s *Slot) before(yield func(*Entry, Claim) bool) {
	for other := s.queue.head; other != s; other = other.next {
		if !yield(other.member.entry, other.claim) {
			return
		}
	}
}

func (s *Slot) backwards(yield func(*Entry, Claim) bool) {
	for other := s.prev; other != nil; other = other.prev {
		if !yield(other.member.entry, other.claim) {
			return
		}
	}
}
