package lock

// blockSize is how many slots of a queue are counted together at most.
const blockSize = 128

// block is a run of neighbouring slots of a queue, so that a place far back in a long
// queue is found by adding up blocks instead of walking over all before it. Two
// neighbours that have become small are made one.
type block struct {
	prev, next *block
	slots      int
	waiting    int // those of them behind the front
}

// seat counts s, which is the last slot of the queue now.
func (q *Queue) seat(s *Slot) {
	switch last := q.lastBlock; {
	case last == nil:
		q.ownBlock = block{}
		q.lastBlock = &q.ownBlock
	case last.slots == blockSize:
		q.lastBlock = &block{prev: last}
		last.next = q.lastBlock
	}
	s.block = q.lastBlock
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
	into.slots += b.slots
	into.waiting += b.waiting
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
		n += b.waiting
	}
	return n
}
