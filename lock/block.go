package lock

import "iter"

// blockSize is the largest number of slots that a block counts.
const blockSize = 128

// block is a run of neighbouring slots of a queue. Counts per block make it cheap to find a
// position far back in a long queue, and the holders or waiters among many others. Two small
// neighbours are merged.
type block struct {
	prev, next *block
	first      *Slot
	slots      int16
	waiting    int16 // slots behind the front
	holding    int16 // slots of entries that hold
}

// seat adds s, now the last slot of the queue, to a block.
func (q *Queue) seat(s *Slot) {
	switch last := q.lastBlock; {
	case last == nil:
		q.firstBlock = block{}
		q.lastBlock = &q.firstBlock
	case last.slots == blockSize:
		q.lastBlock = &block{prev: last}
		last.next = q.lastBlock
	}
	s.block = q.lastBlock
	if s.block.slots == 0 {
		s.block.first = s
	}
	s.block.slots++
	s.block.waiting++
}

// unseat removes s from its block. It stays linked.
func (q *Queue) unseat(s *Slot) {
	b := s.block
	b.slots--
	if !s.inFront {
		b.waiting--
	}
	if b.first == s {
		b.first = s.next
	}
	switch {
	case b.slots == 0:
		q.unlinkBlock(b)
	case b.slots > blockSize/4:
	case b.prev != nil && b.prev.slots+b.slots <= blockSize/2:
		q.merge(s, b.prev)
	case b.next != nil && b.next.slots+b.slots <= blockSize/2:
		q.merge(s, b.next)
	}
}

// merge moves the block of s, without s itself, into a neighbour.
func (q *Queue) merge(s *Slot, into *block) {
	b := s.block
	for at := s.prev; at != nil && at.block == b; at = at.prev {
		at.block = into
	}
	for at := s.next; at != nil && at.block == b; at = at.next {
		at.block = into
	}
	if b.next == into {
		into.first = b.first
	}
	into.slots += b.slots
	into.waiting += b.waiting
	into.holding += b.holding
	q.unlinkBlock(b)
}

func (q *Queue) unlinkBlock(b *block) {
	if b.prev != nil {
		b.prev.next = b.next
	}
	if b.next != nil {
		b.next.prev = b.prev
	} else {
		q.lastBlock = b.prev
	}
	b.prev, b.next = nil, nil
}

// Position returns the slot's position behind the front: 1 is next, 0 means that it is in the
// front.
func (s *Slot) Position() int {
	n := 0
	for at := s; at != nil && at.block == s.block && !at.inFront; at = at.prev {
		n++
	}
	for b := s.block.prev; n > 0 && b != nil && b.waiting > 0; b = b.prev {
		n += int(b.waiting)
	}
	return n
}

// Holding yields the entries that hold, in order. Others before them cost next to nothing.
func (q *Queue) Holding() iter.Seq[*Entry] {
	return q.those(true, func(b *block) int16 { return b.holding })
}

// Waiters yields the entries that do not hold, in order. These are the entries behind the front,
// and those of sets that wait for another lock. Others before them cost next to nothing.
func (q *Queue) Waiters() iter.Seq[*Entry] {
	return q.those(false, func(b *block) int16 { return b.slots - b.holding })
}

// those yields either the holding or the waiting entries. in returns their number in a block.
func (q *Queue) those(hold bool, in func(*block) int16) iter.Seq[*Entry] {
	return func(yield func(*Entry) bool) {
		for b := q.head.block; b != nil; b = b.next {
			s := b.first
			for left := in(b); left > 0; s = s.next {
				if s.member.Holds() != hold {
					continue
				}
				if left--; !yield(s.member.entry) {
					return
				}
			}
		}
	}
}

// NewestHolder returns the greatest number of an entry that holds, other than the
// one with the id, or 0 if no other entry holds.
func (q *Queue) NewestHolder(except ID) uint64 {
	for b, s := q.lastBlock, q.tail; b != nil; b = b.prev {
		for left := b.holding; left > 0; s = s.prev {
			if !s.member.Holds() {
				continue
			}
			if left--; s.member.entry.ID != except {
				return s.member.entry.Number
			}
		}
		s = b.first.prev
	}
	return 0
}
