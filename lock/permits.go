package lock

import "slices"

const (
	maxLimits  = 10   // listed limits of a semaphore
	limitsRead = 1000 // entries read at each end of a queue
)

// Taken returns how many permits of a semaphore the front has taken. They include those of sets
// that wait for another lock.
func (q *Queue) Taken() int { return int(q.taken) }

// Limits returns up to 10 limits of a semaphore's claims, ascending, and the first entry whose
// limit differs from that of the head, or nil. Of a long queue it reads the first and the last
// 1000 entries: a deployment that changes the limit differs at the two ends.
func (q *Queue) Limits() (limits []int, differs *Entry) {
	if q.head.claim.Mode != Semaphore {
		return nil, nil
	}
	see := func(s *Slot) {
		limit, e := s.claim.Limit, s.member.entry
		if s.claim.Mode != Semaphore {
			return // it will be rejected
		}
		if i, known := slices.BinarySearch(limits, limit); !known && len(limits) < maxLimits {
			limits = slices.Insert(limits, i, limit)
		}
		if limit != q.head.claim.Limit && (differs == nil || e.Number < differs.Number) {
			differs = e
		}
	}
	for s, n := q.head, 0; s != nil && n < limitsRead; s, n = s.next, n+1 {
		see(s)
	}
	for s, n := q.tail, limitsRead; s != nil && n < min(q.size, 2*limitsRead); s, n = s.prev, n+1 {
		see(s)
	}
	return limits, differs
}
