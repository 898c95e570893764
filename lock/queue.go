package lock

// Queue is the queue of one lock: claims in the order of their entries' numbers.
//
// Its front is the longest run from the head in which every claim tolerates all before it. An
// entry in the front of each of its queues holds. The front loses entries only by their removal,
// never by an insertion, because a new number is greater than all others: once head, always head.
type Queue struct {
	head, tail *Slot
	next       *Slot // the first slot behind the front; nil when all are in it
	size       int
	front      int
	holders    int32  // entries of the front that hold in all their queues
	taken      int32  // permits that the front has taken; see [Claim.Takes]
	newest     uint64 // the greatest number ever inserted

	lastBlock  *block
	firstBlock block // the first one, so that a short queue needs no other
}

// Slot is one entry's position in one queue.
type Slot struct {
	member     *Member
	claim      Claim
	queue      *Queue
	prev, next *Slot
	block      *block
	inFront    bool
}

// Member returns the slot's entry in the table.
func (s *Slot) Member() *Member { return s.member }

// Claim returns what the entry asks of the queue's lock.
func (s *Slot) Claim() Claim { return s.claim }

// Queue returns the queue.
func (s *Slot) Queue() *Queue { return s.queue }

// InFront reports whether the entry is in the queue's front.
func (s *Slot) InFront() bool { return s.inFront }

// Prev returns the slot before, nil at the head.
func (s *Slot) Prev() *Slot { return s.prev }

// Next returns the slot behind, nil at the tail.
func (s *Slot) Next() *Slot { return s.next }

// Joins reports whether next may hold together with a front that began with first and has taken so
// many permits. Claims in one front have one mode, so the first represents all. next is judged by
// its own limit.
func Joins(first Claim, taken int, next Claim) bool {
	switch {
	case taken == 0:
		return true
	case first.Mode == Shared && next.Mode == Shared:
		return true
	case first.Mode == Semaphore && next.Mode == Semaphore:
		return taken+next.Takes() <= next.Limit
	default:
		return false
	}
}

// Front returns how many of claims, given in queue order, hold: the pure function on which
// everything else rests.
func Front(claims []Claim) int {
	n, taken := 0, 0
	for n < len(claims) && Joins(claims[0], taken, claims[n]) {
		taken += claims[n].Takes()
		n++
	}
	return n
}

// Head returns the first slot, or nil if the queue is empty.
func (q *Queue) Head() *Slot { return q.head }

// Behind returns the first slot behind the front, nil if all are in it.
func (q *Queue) Behind() *Slot { return q.next }

// Tail returns the last slot, or nil if the queue is empty.
func (q *Queue) Tail() *Slot { return q.tail }

// Admits reports whether a claim that joins now would be in the front at once. A nil queue is
// empty.
func (q *Queue) Admits(c Claim) bool {
	return q == nil || q.next == nil && Joins(q.head.claim, int(q.taken), c)
}

// Len returns how many entries are in the queue, holders included.
func (q *Queue) Len() int { return q.size }

// Waiting returns how many entries are behind the front. An entry of a set can be in the front
// here and still wait elsewhere.
func (q *Queue) Waiting() int { return q.size - q.front }

// Holders returns how many entries hold, here and in all their other queues.
func (q *Queue) Holders() int { return int(q.holders) }

// Newest returns the greatest number that the queue has seen.
func (q *Queue) Newest() uint64 { return q.newest }

// Waiter returns the entry at a position behind the front, 1 for the next, or nil if
// fewer are there. It costs O(position).
func (q *Queue) Waiter(position int) *Entry {
	s := q.next
	for ; s != nil && position > 1; position-- {
		s = s.next
	}
	if s == nil {
		return nil
	}
	return s.member.entry
}

// push links s at the tail and reports whether it entered the front. The caller has checked
// that s carries the greatest number.
func (q *Queue) push(s *Slot) bool {
	s.prev = q.tail
	if q.tail == nil {
		q.head = s
	} else {
		q.tail.next = s
	}
	q.tail = s
	q.size++
	q.seat(s)
	q.newest = s.member.entry.Number
	if q.next == nil {
		q.next = s
	}
	_, n := q.advance()
	return n > 0
}

// remove unlinks s and returns the first of the slots that entered the front because of it, and
// their number.
func (q *Queue) remove(s *Slot) (first *Slot, n int) {
	if q.next == s {
		q.next = s.next
	}
	q.unseat(s)
	if s.inFront {
		q.front--
		q.taken -= int32(s.claim.Takes())
		s.inFront = false
	}
	q.unlink(s)
	return q.advance()
}

// advance moves slots into the front as long as it tolerates them. It returns the first of them,
// and their number.
func (q *Queue) advance() (first *Slot, n int) {
	for first = q.next; q.next != nil && Joins(q.head.claim, int(q.taken), q.next.claim); n++ {
		q.next.inFront = true
		q.next.block.waiting--
		q.front++
		q.taken += int32(q.next.claim.Takes())
		q.next = q.next.next
	}
	return first, n
}

// replace links s, a copy of old, in place of it.
func (q *Queue) replace(old, s *Slot) {
	if s.prev == nil {
		q.head = s
	} else {
		s.prev.next = s
	}
	if s.next == nil {
		q.tail = s
	} else {
		s.next.prev = s
	}
	if q.next == old {
		q.next = s
	}
	if s.block.first == old {
		s.block.first = s
	}
}

func (q *Queue) unlink(s *Slot) {
	if s.prev == nil {
		q.head = s.next
	} else {
		s.prev.next = s.next
	}
	if s.next == nil {
		q.tail = s.prev
	} else {
		s.next.prev = s.prev
	}
	s.prev, s.next = nil, nil
	q.size--
}

// Place returns the index of the entry with the id among entries, or -1.
func Place(entries []*Entry, id ID) int {
	for i, e := range entries {
		if e.ID == id {
			return i
		}
	}
	return -1
}

// ClaimsOn returns what each of entries, all in the queue of the lock with the
// name, asks of it.
func ClaimsOn(entries []*Entry, name string) []Claim {
	claims := make([]Claim, 0, len(entries))
	for _, e := range entries {
		for _, c := range e.Claims {
			if c.Name == name {
				claims = append(claims, c)
			}
		}
	}
	return claims
}
