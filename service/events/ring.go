package events

import (
	"sort"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/lock/heap"
)

// Record is a kept event.
type Record struct {
	lock.Event
	size int // in bytes, approximately
	text atomic.Pointer[[]byte]
}

// Text returns the text of the event for all followers. make writes it once.
func (r *Record) Text(make func(*lock.Event) []byte) []byte {
	if text := r.text.Load(); text != nil {
		return *text
	}
	text := make(&r.Event)
	r.text.CompareAndSwap(nil, &text)
	return text
}

func newRecord(e lock.Event) *Record {
	size := sizeOf(e.Entry)
	if e.Note != nil {
		size += int(unsafe.Sizeof(*e.Note)) + 3*(len(e.Note.By)+len(e.Note.Reason)) // as in sizeOf
	}
	return &Record{Event: e, size: size}
}

// sizeOf estimates the bytes of an event with its text, in which names appear twice and may be
// escaped. Each event is charged with all of its entry.
func sizeOf(e *lock.Entry) int {
	const perEvent = int(unsafe.Sizeof(Record{})+unsafe.Sizeof(lock.Entry{})) + 512
	size := len(e.ID) + len(e.Tenant) + len(e.Holder)
	for _, c := range e.Claims {
		size += int(unsafe.Sizeof(c)) + len(c.Name)
	}
	for k, v := range e.Metadata {
		size += 48 + len(k) + len(v)
	}
	return perEvent + 3*size
}

// ring holds the latest events of one tenant, or of all.
type ring struct {
	heap.Place // among the shares, if it has events

	records []*Record
	head    int // those before are dropped
	bytes   int
	floor   edge // everything after it is kept

	followers int
	grown     chan struct{} // closed and replaced to wake the followers
	changed   bool          // since the followers were last woken
}

func newRing(floor edge) *ring { return &ring{floor: floor, grown: make(chan struct{})} }

func (r *ring) len() int { return len(r.records) - r.head }

// first returns the oldest event. There must be one.
func (r *ring) first() *Record { return r.records[r.head] }

// before returns how many events are older than an instant.
func (r *ring) before(t time.Time) (n int) {
	for n < r.len() && r.records[r.head+n].At.Before(t) {
		n++
	}
	return n
}

func (r *ring) add(rec *Record) {
	r.records = append(r.records, rec)
	r.bytes += rec.size
}

// drop removes the first n events, and returns their bytes.
func (r *ring) drop(n int) (bytes int) {
	for range n {
		rec := r.first()
		r.records[r.head] = nil
		r.head++
		r.floor = edge{rec.ID, rec.At}
		bytes += rec.size
	}
	r.bytes -= bytes
	if r.head > len(r.records)/2 {
		kept := copy(r.records, r.records[r.head:])
		clear(r.records[kept:])
		r.records, r.head = r.records[:kept], 0
	}
	return bytes
}

// after returns the kept events after an event.
func (r *ring) after(id lock.EventID) []*Record {
	all := r.records[r.head:]
	return all[sort.Search(len(all), func(i int) bool { return all[i].ID.Compare(id) > 0 }):]
}

// wake wakes the followers if there are new events for them.
func (r *ring) wake() {
	if r.changed && r.followers > 0 {
		close(r.grown)
		r.grown = make(chan struct{})
	}
	r.changed = false
}

// Before puts the largest ring in front, and of similar ones the one with the oldest event.
func (r *ring) Before(other *ring) bool {
	const alike = 4 << 10
	if r.bytes/alike != other.bytes/alike {
		return r.bytes > other.bytes
	}
	return r.first().ID.Compare(other.first().ID) < 0
}

// shares are the tenants' rings.
type shares struct {
	events, bytes int
	heap          heap.Heap[*ring]
	grown         []*ring // since the followers were last woken
}

func (s *shares) add(r *ring, rec *Record) {
	s.note(r)
	r.add(rec)
	s.events++
	s.bytes += rec.size
	if r.len() == 1 {
		s.heap.Push(r)
	} else {
		s.heap.Fix(r)
	}
}

// note marks that a ring has new events for its followers.
func (s *shares) note(r *ring) {
	if r.followers > 0 && !r.changed {
		r.changed = true
		s.grown = append(s.grown, r)
	}
}

func (s *shares) drop(r *ring, n int) {
	if n == 0 {
		return
	}
	if n == r.len() {
		s.heap.Remove(r)
	}
	s.events -= n
	s.bytes -= r.drop(n)
	if r.len() > 0 {
		s.heap.Fix(r)
	}
}
