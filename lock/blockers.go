package lock

import "iter"

// MaxBlockers bounds the entries on which a removal is conditional, and those that are read to find
// them. Where it takes more of a semaphore's holders, removals are unconditional.
const MaxBlockers = 100

// Blockers returns entries that block the one with the id: while all of them are in the table, it
// does not hold. One blocker suffices, unless all entries before it share its semaphore. Then it
// takes as many as leave too few permits. Blockers reads [MaxBlockers] entries of a queue and the
// first that waits; if these are too few, it returns none. ok is false if the entry holds or is not
// in the table. A choosing entry is its own blocker: it does not hold until it left queues.
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
		blockers = fewer(blockers, s.waits(nearest).blockers(s.queue.next.waits(nearest)))
	}
	return blockers, true
}

// BlockersIn is like [Table.Blockers], for an entry in one queue as read from a store. ok is
// false if it is in the front there.
func BlockersIn(queue []*Entry, e *Entry, name string, nearest bool) (blockers []*Entry, ok bool) {
	claims := ClaimsOn(queue, name)
	place, front := Place(queue, e.ID), Front(claims)
	if place < front {
		return nil, false
	}
	at := func(place int) waiting {
		return waiting{queue[place], claims[place], func(yield func(*Entry, Claim) bool) {
			for i := range place {
				if nearest {
					i = place - 1 - i
				}
				if !yield(queue[i], claims[i]) {
					return
				}
			}
		}}
	}
	return at(place).blockers(at(front)), true
}

// waiting is an entry behind the front of a queue, and the entries before it.
type waiting struct {
	entry  *Entry
	claim  Claim
	before iter.Seq2[*Entry, Claim]
}

// blockers returns what blocks w. If the entries before it leave enough permits, or are too many to
// know, it waits behind first, the first entry that waits there: while what blocks that one exists,
// or by itself.
func (w waiting) blockers(first waiting) []*Entry {
	all, blocked := w.obstacles()
	switch {
	case first.entry == w.entry || blocked && all != nil:
		return all
	case !Joins(first.claim, first.claim.Takes(), w.claim):
		return []*Entry{first.entry}
	}
	if all, _ = first.obstacles(); len(all) == 0 || len(all) == MaxBlockers {
		return nil
	}
	return append(all, first.entry)
}

// obstacles returns the fewest entries, from the first on, that block the claim, or none if they
// are too many. It reads few entries, because a queue may be long. blocked is false if all entries
// before it leave enough permits.
func (w waiting) obstacles() (all []*Entry, blocked bool) {
	taken, seen := 0, 0
	for e, other := range w.before {
		seen++
		switch {
		case !Joins(other, other.Takes(), w.claim):
			return []*Entry{e}, true
		case seen > MaxBlockers && taken+w.claim.Takes() <= w.claim.Limit:
			return nil, true // there may be more
		case seen > MaxBlockers:
			return all, true
		case w.claim.Mode == Semaphore && Joins(other, taken, w.claim):
			taken += other.Takes()
			all = append(all, e)
		}
	}
	return all, taken+w.claim.Takes() > w.claim.Limit
}

func fewer(a, b []*Entry) []*Entry {
	if b == nil || a != nil && len(a) <= len(b) {
		return a
	}
	return b
}

// waits returns the slot as one that waits.
func (s *Slot) waits(nearest bool) waiting {
	before := s.before
	if nearest {
		before = s.backwards
	}
	return waiting{s.member.entry, s.claim, before}
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
