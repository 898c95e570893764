package lock

import (
	"fmt"
	"iter"
	"slices"
)

// Table is every queue of every tenant: the entries of a store at one number, and which of them
// hold. It is built from a list and then follows a feed. It reads nothing itself and is not safe
// for concurrent use.
//
// Insertion costs O(claims), removal O(claims + newly granted entries).
type Table struct {
	queues  map[Ref]*Queue
	members map[ID]*Member
	held    int
	counts  map[Mode]Counts

	// the entries that do not hold, in the order in which they joined
	firstWaiting, lastWaiting *Member

	ready []*Entry // see [Table.TakeReady]
	spare *Queue   // the latest queue that became empty, for reuse
}

// Counts are the numbers of holding and waiting entries.
type Counts struct{ Held, Waiting int }

// Ref names one lock of one tenant.
type Ref struct{ Tenant, Name string }

// Member is an entry in a table, with its slots in all its queues.
type Member struct {
	// Attached is data of a package that follows the table. The table ignores it.
	Attached any

	entry  *Entry
	slots  []Slot
	one    [1]Slot // slots of an entry with one claim
	fronts int     // the number of its queues where it is in the front
	needs  int     // it holds with so many; none suffice while it is choosing

	prevWaiting, nextWaiting *Member
}

// Entry returns the entry.
func (m *Member) Entry() *Entry { return m.entry }

// Holds reports whether the entry holds.
func (m *Member) Holds() bool { return m.fronts == m.needs }

// Choice returns the claims that a choosing entry may keep now: see [Entry.Choice]. ok is false
// for another entry.
func (m *Member) Choice() (kept []Claim, ok bool) {
	if !m.isReady() {
		return nil, false
	}
	return m.entry.Choice(func(c Claim) bool {
		return slices.ContainsFunc(m.slots, func(s Slot) bool {
			return s.inFront && s.claim.Name == c.Name
		})
	})
}

// isReady reports whether a choosing entry is in the front of enough queues.
func (m *Member) isReady() bool { return m.entry.Choosing() && m.fronts >= m.entry.Any }

// Slots returns the entry's slots, in the order of its claims. The caller must not change them.
// They are invalid after the entry's removal.
func (m *Member) Slots() []Slot { return m.slots }

// NewTable returns an empty table.
func NewTable() *Table {
	return &Table{queues: map[Ref]*Queue{}, members: map[ID]*Member{}, counts: map[Mode]Counts{}}
}

// Insert puts e at the end of each of its queues and reports whether it holds at once. An entry
// that is already there changes nothing. Insert rejects an entry whose number is not greater than
// all in a queue: the feed is out of order and must list again.
func (t *Table) Insert(e *Entry) (holds bool, err error) { return t.InsertAs(&Member{}, e) }

// InsertAs is Insert with a new m, which represents the entry unless the entry is already there.
func (t *Table) InsertAs(m *Member, e *Entry) (holds bool, err error) {
	if m, ok := t.members[e.ID]; ok {
		return m.Holds(), nil
	}
	for _, c := range e.Claims {
		if q := t.queues[Ref{e.Tenant, c.Name}]; q != nil && q.newest >= e.Number {
			return false, fmt.Errorf("entry %s has number %d, its queue is at %d", e.ID, e.Number, q.newest)
		}
	}
	m.entry, m.slots = e, m.one[:]
	if len(e.Claims) != 1 {
		m.slots = make([]Slot, len(e.Claims))
	}
	if m.needs = len(m.slots); e.Choosing() {
		m.needs++
	}
	t.members[e.ID] = m
	for i, c := range e.Claims {
		q := t.queue(Ref{e.Tenant, c.Name})
		m.slots[i] = Slot{member: m, claim: c, queue: q}
		if q.push(&m.slots[i]) {
			m.fronts++
		}
	}
	if m.Holds() {
		t.countHeld(m, 1)
		return true, nil
	}
	t.queueUp(m)
	if m.isReady() {
		t.ready = append(t.ready, e)
	}
	return false, nil
}

// Remove removes the entry from all its queues. It returns the entry, whether it held, and the
// entries that hold because of the removal. It returns nil for an unknown id.
func (t *Table) Remove(id ID) (removed *Entry, held bool, granted []*Entry) {
	m := t.members[id]
	if m == nil {
		return nil, false, nil
	}
	delete(t.members, id)
	if held = m.Holds(); held {
		t.countHeld(m, -1)
	} else {
		t.stopWaiting(m)
	}
	for i := range m.slots {
		granted = t.vacate(&m.slots[i], granted)
	}
	return m.entry, held, granted
}

// Narrow replaces a choosing entry by e, which is the same after it left queues; see
// [Entry.Narrowed]. It returns the entries that hold now: those behind it, and e itself unless it
// is not in the front of its queues. It returns nil and false for an entry that is not there or
// not choosing.
func (t *Table) Narrow(e *Entry) (granted []*Entry, ok bool) {
	m := t.members[e.ID]
	if m == nil || m.entry.Number != e.Number || !m.entry.Choosing() {
		return nil, false
	}
	t.countWaiting(m, -1)
	left := m.keep(e)
	if t.countWaiting(m, 1); m.Holds() {
		granted = append(granted, t.grant(m))
	}
	for _, s := range left {
		granted = t.vacate(s, granted)
	}
	return granted, true
}

// keep replaces the member's entry by e, and returns the slots that e does not keep.
func (m *Member) keep(e *Entry) (left []*Slot) {
	kept := make([]Slot, 0, len(e.Claims)) // the queues link to slots by address
	m.fronts = 0
	for i := range m.slots {
		s := &m.slots[i]
		if !slices.Contains(e.Claims, s.claim) {
			left = append(left, s)
			continue
		}
		kept = append(kept, *s)
		if s.queue.replace(s, &kept[len(kept)-1]); s.inFront {
			m.fronts++
		}
	}
	m.entry, m.slots, m.needs = e, kept, len(kept)
	return left
}

// vacate removes a slot from its queue, and adds to granted the entries that hold because of it.
func (t *Table) vacate(s *Slot, granted []*Entry) []*Entry {
	entered, n := s.queue.remove(s)
	for ; n > 0; n-- {
		m := entered.member
		m.fronts++
		switch {
		case m.Holds():
			granted = append(granted, t.grant(m))
		case m.fronts == m.entry.Any && m.isReady():
			t.ready = append(t.ready, m.entry)
		}
		entered = entered.next
	}
	if s.queue.size == 0 {
		delete(t.queues, Ref{s.member.entry.Tenant, s.claim.Name})
		t.spare = s.queue
	}
	return granted
}

// TakeReady returns the choosing entries that have entered the front of enough queues since the
// last call: [Member.Choice] says which claims each may keep. Some may be gone.
func (t *Table) TakeReady() []*Entry {
	ready := t.ready
	t.ready = nil
	return ready
}

// Ready returns what [Table.TakeReady] would. The caller must not change it.
func (t *Table) Ready() []*Entry { return t.ready }

// grant notes that m, which waited, now holds.
func (t *Table) grant(m *Member) *Entry {
	t.stopWaiting(m)
	t.countHeld(m, 1)
	return m.entry
}

// Admits reports whether e would hold at once if it were inserted now, or, if it would be
// choosing, whether it could choose at once.
func (t *Table) Admits(e *Entry) bool {
	needs := len(e.Claims)
	if e.Choosing() {
		needs = e.Any
	}
	for i, c := range e.Claims {
		if t.queues[Ref{e.Tenant, c.Name}].Admits(c) {
			needs--
		} else if len(e.Claims)-i-1 < needs {
			return false
		}
	}
	return needs <= 0
}

// Entry returns the entry with the id, and whether it holds.
func (t *Table) Entry(id ID) (e *Entry, holds bool) {
	m := t.members[id]
	if m == nil {
		return nil, false
	}
	return m.entry, m.Holds()
}

// Member returns the entry with the id and its slots, or nil.
func (t *Table) Member(id ID) *Member { return t.members[id] }

// Position returns the entry's position among the waiters of the queue where it is furthest back:
// 1 is next, 0 means that it holds or is not there. For a choosing entry only its best Any queues
// count. It is not the number of removals to wait for: one removal can grant several waiters, and
// one waiter can wait for several holders. It costs O(waiters before it / 100).
func (t *Table) Position(id ID) int {
	m := t.members[id]
	if m == nil || m.Holds() {
		return 0
	}
	if m.entry.Choosing() {
		return m.choosingPosition()
	}
	position := 1
	for i := range m.slots {
		position = max(position, m.slots[i].Position())
	}
	return position
}

func (m *Member) choosingPosition() int {
	all := make([]int, len(m.slots))
	for i := range m.slots {
		all[i] = m.slots[i].Position()
	}
	slices.Sort(all)
	return max(1, all[m.entry.Any-1])
}

// Queue returns the lock's queue, or nil if it is empty.
func (t *Table) Queue(r Ref) *Queue { return t.queues[r] }

// Queues yields every lock with its queue, in no order.
func (t *Table) Queues() iter.Seq2[Ref, *Queue] {
	return func(yield func(Ref, *Queue) bool) {
		for r, q := range t.queues {
			if !yield(r, q) {
				return
			}
		}
	}
}

// Entries yields every entry and whether it holds, in no order.
func (t *Table) Entries() iter.Seq2[*Entry, bool] {
	return func(yield func(*Entry, bool) bool) {
		for _, m := range t.members {
			if !yield(m.entry, m.Holds()) {
				return
			}
		}
	}
}

// Len returns how many entries there are, and how many of them hold.
func (t *Table) Len() (entries, held int) { return len(t.members), t.held }

// Counts returns how many entries hold and wait, by the mode of their first claim.
// The caller must not change it.
func (t *Table) Counts() map[Mode]Counts { return t.counts }

// Longest returns the entry that has waited longest, or nil if no
// entry waits.
func (t *Table) Longest() *Entry {
	if t.firstWaiting == nil {
		return nil
	}
	return t.firstWaiting.entry
}

// countHeld adds n holding entries like m.
func (t *Table) countHeld(m *Member, n int) {
	t.held += n
	for i := range m.slots {
		m.slots[i].queue.holders += int32(n)
		m.slots[i].block.holding += int16(n)
	}
	c := t.counts[m.entry.Claims[0].Mode]
	c.Held += n
	t.counts[m.entry.Claims[0].Mode] = c
}

func (t *Table) countWaiting(m *Member, n int) {
	c := t.counts[m.entry.Claims[0].Mode]
	c.Waiting += n
	t.counts[m.entry.Claims[0].Mode] = c
}

// queueUp adds m to the waiting entries.
func (t *Table) queueUp(m *Member) {
	t.countWaiting(m, 1)
	if m.prevWaiting = t.lastWaiting; m.prevWaiting == nil {
		t.firstWaiting = m
	} else {
		m.prevWaiting.nextWaiting = m
	}
	t.lastWaiting = m
}

func (t *Table) stopWaiting(m *Member) {
	t.countWaiting(m, -1)
	if m.prevWaiting == nil {
		t.firstWaiting = m.nextWaiting
	} else {
		m.prevWaiting.nextWaiting = m.nextWaiting
	}
	if m.nextWaiting == nil {
		t.lastWaiting = m.prevWaiting
	} else {
		m.nextWaiting.prevWaiting = m.prevWaiting
	}
	m.prevWaiting, m.nextWaiting = nil, nil
}

// Entries yields the queue in order, with whether each entry holds in all its
// queues.
func (q *Queue) Entries() iter.Seq2[*Entry, bool] {
	return func(yield func(*Entry, bool) bool) {
		for s := q.head; s != nil; s = s.next {
			if !yield(s.member.entry, s.member.Holds()) {
				return
			}
		}
	}
}

func (t *Table) queue(r Ref) *Queue {
	q := t.queues[r]
	if q == nil {
		if q, t.spare = t.spare, nil; q == nil {
			q = &Queue{}
		}
		*q = Queue{}
		t.queues[r] = q
	}
	return q
}
