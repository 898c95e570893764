package lock

import (
	"fmt"
	"iter"
)

// Table is every queue of every tenant: the entries that a store holds at one
// number, and who of them holds. It is rebuilt from a list and then follows a
// feed; it reads nothing itself and is not safe for concurrent use.
//
// Insertion costs O(claims), removal O(claims + entries that come to hold).
type Table struct {
	queues   map[Ref]*Queue
	members  map[ID]*member
	named    map[Ref]*namedHolder // by tenant and the name of the holder
	held     int
	counts   map[Mode]Counts
	detector detector

	firstWaiting, lastWaiting *member // those that do not hold, in the order in which they came
}

// Counts says how many entries hold and how many wait.
type Counts struct{ Held, Waiting int }

// Ref names one lock of one tenant.
type Ref struct{ Tenant, Name string }

// member is an entry with its places in all its queues.
type member struct {
	entry  *Entry
	slots  []slot
	fronts int // in how many of its queues it is in the front

	rejection *Rejection // why it cannot stay; see [Table.Detect]
	checked   bool
	check     *check    // that is pending
	dependsOn []*member // that the rejection does

	holder     *namedHolder // nil if the request did not name its holder
	prev, next *member      // of the same holder
	sim        *simEntry    // while a search runs

	prevWaiting, nextWaiting *member
}

func (m *member) holds() bool { return m.fronts == len(m.slots) }

// NewTable returns an empty table.
func NewTable() *Table {
	return &Table{
		queues: map[Ref]*Queue{}, members: map[ID]*member{}, named: map[Ref]*namedHolder{}, counts: map[Mode]Counts{}, detector: newDetector(),
	}
}

// Insert puts e at the end of each of its queues and reports whether it holds at
// once. An entry that is already there changes nothing. An entry whose number is
// not greater than all of a queue's is refused: the feed that brought it is out
// of order and must list again.
func (t *Table) Insert(e *Entry) (holds bool, err error) {
	if m, ok := t.members[e.ID]; ok {
		return m.holds(), nil
	}
	for _, c := range e.Claims {
		if q := t.queues[Ref{e.Tenant, c.Name}]; q != nil && q.newest >= e.Number {
			return false, fmt.Errorf("entry %s has number %d, its queue is at %d", e.ID, e.Number, q.newest)
		}
	}
	m := &member{entry: e, slots: make([]slot, len(e.Claims))}
	t.members[e.ID] = m
	for i, c := range e.Claims {
		q := t.queue(Ref{e.Tenant, c.Name})
		m.slots[i] = slot{member: m, claim: c, queue: q}
		if len(q.push(&m.slots[i])) > 0 {
			m.fronts++
		}
	}
	t.addToHolder(m)
	if m.holds() {
		t.countHeld(m, 1)
	} else {
		t.queueUp(m)
	}
	t.detector.joined(m)
	return m.holds(), nil
}

// Remove takes the entry out of all its queues and returns it, whether it held,
// and the entries that hold because it is gone. It returns nil for an id that is
// not there.
func (t *Table) Remove(id ID) (removed *Entry, held bool, granted []*Entry) {
	m := t.members[id]
	if m == nil {
		return nil, false, nil
	}
	delete(t.members, id)
	if held = m.holds(); held {
		t.countHeld(m, -1)
	} else {
		t.stopWaiting(m)
	}
	for i := range m.slots {
		s := &m.slots[i]
		for _, entered := range s.queue.remove(s) {
			entered.member.fronts++
			if entered.member.holds() {
				t.stopWaiting(entered.member)
				t.countHeld(entered.member, 1)
				entered.member.holder.granted()
				granted = append(granted, entered.member.entry)
				t.detector.granted(entered.member)
			}
		}
		if s.queue.size == 0 {
			delete(t.queues, Ref{m.entry.Tenant, s.claim.Name})
		}
	}
	t.removeFromHolder(m, held)
	t.detector.left(m)
	return m.entry, held, granted
}

// Admits reports whether an entry with these claims would hold at once if it
// were inserted now.
func (t *Table) Admits(tenant string, claims []Claim) bool {
	for _, c := range claims {
		q := t.queues[Ref{tenant, c.Name}]
		if q != nil && (q.next != nil || !joins(q.head.claim, q.front, c)) {
			return false
		}
	}
	return true
}

// Entry returns the entry with the id, and whether it holds.
func (t *Table) Entry(id ID) (e *Entry, holds bool) {
	m := t.members[id]
	if m == nil {
		return nil, false
	}
	return m.entry, m.holds()
}

// Position returns the entry's place among those that wait in the queue where it
// is furthest back: 1 means next, 0 that it holds or is not there. It is not the
// number of removals to wait for: several waiters can be let in by one, and one
// can wait for several holders. It costs O(waiters before it / 100).
func (t *Table) Position(id ID) int {
	m := t.members[id]
	if m == nil || m.holds() {
		return 0
	}
	position := 1
	for i := range m.slots {
		position = max(position, m.slots[i].position())
	}
	return position
}

// Queue returns the lock's queue, or nil if nobody is in it.
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
			if !yield(m.entry, m.holds()) {
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

// Longest returns the entry that has waited longest, the first that came of those
// that do not hold, or nil if nobody waits.
func (t *Table) Longest() *Entry {
	if t.firstWaiting == nil {
		return nil
	}
	return t.firstWaiting.entry
}

// countHeld notes that n more entries like m hold.
func (t *Table) countHeld(m *member, n int) {
	t.held += n
	for i := range m.slots {
		m.slots[i].queue.holders += n
	}
	c := t.counts[m.entry.Claims[0].Mode]
	c.Held += n
	t.counts[m.entry.Claims[0].Mode] = c
}

func (t *Table) countWaiting(m *member, n int) {
	c := t.counts[m.entry.Claims[0].Mode]
	c.Waiting += n
	t.counts[m.entry.Claims[0].Mode] = c
}

// queueUp adds m to those that wait.
func (t *Table) queueUp(m *member) {
	t.countWaiting(m, 1)
	if m.prevWaiting = t.lastWaiting; m.prevWaiting == nil {
		t.firstWaiting = m
	} else {
		m.prevWaiting.nextWaiting = m
	}
	t.lastWaiting = m
}

func (t *Table) stopWaiting(m *member) {
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
			if !yield(s.member.entry, s.member.holds()) {
				return
			}
		}
	}
}

func (t *Table) queue(r Ref) *Queue {
	q := t.queues[r]
	if q == nil {
		q = &Queue{}
		t.queues[r] = q
	}
	return q
}
