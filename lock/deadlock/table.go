package deadlock

import (
	"iter"
	"slices"

	"github.com/fencepost/fencepost/lock"
)

// Table is a [lock.Table] that knows which of its entries cannot stay in their queues, and why.
// It allows concurrent reads, but not during a change.
type Table struct {
	*lock.Table
	named    groups
	others   groups // entries whose requests did not name the holder: many clients may share the name
	detector detector
	newest   newest
}

// NewTable returns an empty table.
func NewTable() *Table {
	return &Table{
		Table: lock.NewTable(), named: newGroups(), others: newGroups(),
		detector: detector{dependents: sets[*node]{}, loose: sets[string]{}},
		newest:   newest{queues: map[lock.Ref][]*node{}},
	}
}

// Insert is [lock.Table.Insert].
func (t *Table) Insert(e *lock.Entry) (holds bool, err error) {
	n := &node{entry: e}
	n.own.Attached = n
	if holds, err = t.InsertAs(&n.own, e); err != nil || n.own.Entry() == nil { // it was there
		return holds, err
	}
	n.member = &n.own
	t.addToHolder(n)
	t.detector.joined(n)
	t.newest.joined(n)
	return holds, nil
}

// Remove is [lock.Table.Remove].
func (t *Table) Remove(id lock.ID) (removed *lock.Entry, held bool, granted []*lock.Entry) {
	n := t.node(id)
	if n == nil {
		return nil, false, nil
	}
	removed, held, granted = t.Table.Remove(id)
	for _, e := range granted {
		t.granted(t.node(e.ID))
	}
	t.removeFromHolder(n, held)
	t.detector.left(n)
	t.newest.left(n)
	t.becameReady()
	return removed, held, granted
}

// Narrow is [lock.Table.Narrow].
func (t *Table) Narrow(e *lock.Entry) (granted []*lock.Entry, ok bool) {
	if granted, ok = t.Table.Narrow(e); !ok {
		return nil, false
	}
	n := t.node(e.ID)
	t.newest.narrows(n, e)
	n.entry = e
	t.detector.recheckDependents(n)
	t.detector.schedule(n, n)
	if !n.holds() {
		n.group.waiting++
	}
	for _, g := range granted {
		if g != e {
			t.granted(t.node(g.ID))
		}
	}
	t.becameReady()
	return granted, true
}

// becameReady notes the choosing entries that can choose now, and so are not superseded.
func (t *Table) becameReady() {
	for _, e := range t.Ready() {
		if n := t.node(e.ID); n != nil {
			t.newest.granted(n)
		}
	}
}

func (t *Table) granted(n *node) {
	n.group.waiting--
	t.detector.granted(n)
	t.newest.granted(n)
}

// Rejection returns why the entry with the id cannot stay, as of the last
// [Table.Detect], or nil.
func (t *Table) Rejection(id lock.ID) *Rejection {
	switch n := t.node(id); {
	case n == nil:
		return nil
	case n.rejection == nil && n.newer != nil:
		return &Rejection{Newer: n.newer}
	default:
		return n.rejection
	}
}

// Clash returns an earlier claim on a lock that disagrees with a claim of e. An entry that is not
// in the table would come last. Rejected waiting entries do not count.
func (t *Table) Clash(e *lock.Entry) (lock.Claim, bool) {
	c, against := t.clash(e)
	return c, against != nil
}

func (t *Table) clash(e *lock.Entry) (lock.Claim, *lock.Entry) {
	for _, c := range e.Claims {
		q := t.Queue(lock.Ref{Tenant: e.Tenant, Name: c.Name})
		if q == nil {
			continue
		}
		for s := q.Head(); s != nil && s.Member().Entry().ID != e.ID; s = s.Next() {
			if nodeAt(s).rejection != nil && !s.Member().Holds() {
				continue
			}
			if !s.Claim().Agrees(c) {
				return s.Claim(), s.Member().Entry()
			}
			break
		}
	}
	return lock.Claim{}, nil
}

// Grounds returns the entries that must still exist when the entry with the id is removed for its
// [Rejection]: its blockers, and as many others of the rejection as may be compared. ok is false
// if there is no rejection.
func (t *Table) Grounds(id lock.ID) (grounds []*lock.Entry, ok bool) {
	n := t.node(id)
	if n == nil || n.rejection == nil && n.newer == nil {
		return nil, false
	}
	grounds, ok = t.Blockers(id, false)
	if n.rejection == nil { // the newer entry took the place, and may leave again
		return grounds, ok
	}
	for _, e := range n.rejection.others(n.entry) {
		if len(grounds) < lock.MaxBlockers && !slices.Contains(grounds, e) {
			grounds = append(grounds, e)
		}
	}
	return grounds, ok
}

// EntriesOf yields the entries of a holder, by its tenant and name, and whether they hold.
// Entries whose requests name the holder come first, subject by subject, in the order in which
// they joined.
func (t *Table) EntriesOf(who lock.Ref) iter.Seq2[*lock.Entry, bool] {
	return func(yield func(*lock.Entry, bool) bool) {
		for _, all := range []groups{t.named, t.others} {
			for _, h := range all.named(who) {
				for n := h.first; n != nil; n = n.next {
					if !yield(n.entry, n.holds()) {
						return
					}
				}
			}
		}
	}
}

// AlsoHeld yields what else the named holder of e holds, among its last 64 entries, the latest
// first.
func (t *Table) AlsoHeld(e *lock.Entry) iter.Seq[*lock.Entry] {
	const enough = 64
	return func(yield func(*lock.Entry) bool) {
		n := t.node(e.ID)
		if n == nil || n.holder == nil {
			return
		}
		other := n.holder.last
		for looked := 0; other != nil && looked < enough; looked, other = looked+1, other.prev {
			if other != n && other.holds() && !yield(other.entry) {
				return
			}
		}
	}
}
