package lock

import "iter"

// blockSize is how many slots of a queue are counted together at most.
const blockSize = 128

// block is a run of neighbouring slots of a queue, so that a place far back in a long
// queue is found by adding up blocks instead of walking over all before it, and those
// who hold or wait without walking over all others. Two neighbours that have become
// small are made one.
type block struct {
	prev, next *block
	first      *Slot
	slots      int16
	waiting    int16 // those of them behind the front
	holding    int16 // those of entries that hold
}

// seat counts s, which is the last slot of the queue now.
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

// unseat takes s out of its block. It is still linked.
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

// merge makes the block of s, without s itself, part of a neighbour.
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

// Position returns the place of s among those behind the front: 1 is next, 0 that it
// is in the front.
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

// Waiters yields the entries that do not hold, in order: those behind the front, and those of
// sets that wait for another lock. Others before them cost next to nothing.
func (q *Queue) Waiters() iter.Seq[*Entry] {
	return q.those(false, func(b *block) int16 { return b.slots - b.holding })
}

// those yields the entries that hold, or the ones that wait. in counts them in a block.
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
