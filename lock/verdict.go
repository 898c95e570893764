package lock

import (
	"cmp"
	"slices"
	"sort"
)

// Verdict says why an entry that waits cannot stay in its queues.
type Verdict struct {
	// Clash is the claim of Against, which stands before the entry in a queue, with
	// which its own does not agree.
	Clash   *Claim
	Against *Entry

	// Cycle is, if there is no clash, the deadlock that the entry closed when it
	// joined.
	Cycle []Wait
}

// others returns the entries that v is about, but not e itself.
func (v *Verdict) others(e *Entry) []*Entry {
	if v.Clash != nil {
		return []*Entry{v.Against}
	}
	var all []*Entry
	for _, w := range v.Cycle {
		for _, other := range []*Entry{w.Waiter, w.Blocker} {
			if other != e && !slices.Contains(all[max(0, len(all)-2):], other) {
				all = append(all, other)
			}
		}
	}
	return all
}

// loose reports whether v may come to be wrong although all of its others are
// there: somebody who waits for a semaphore waits for many at a time.
func (v *Verdict) loose() bool {
	return slices.ContainsFunc(v.Cycle, func(w Wait) bool {
		for _, c := range w.Waiter.Claims {
			if c.Name == w.Lock {
				return c.Mode == Semaphore
			}
		}
		return false
	})
}

// inOrder compares entries in the order in which they are judged: by number, and by
// id where independent ones were written together.
func inOrder(a, b *Entry) int {
	return cmp.Or(cmp.Compare(a.Number, b.Number), cmp.Compare(a.ID, b.ID))
}

// court keeps the verdicts. They are a function of the entries that are there: an
// entry that waits is condemned if, of the entries before it in order, one that is
// not condemned disagrees with it in a queue, or if it closed a cycle with them when
// it joined. Entries before it are judged before it, so the order makes this one
// answer, and whoever lists the entries comes to the same as whoever followed them.
//
// To find out at each change only what changes, it is noted on whom each verdict
// rests. Somebody who leaves, or is condemned, can only lift verdicts that rest on
// it. An entry comes to be condemned although it was not when it joined only if
// another one gets into its way that was not: one whose verdict is lifted, or one
// that was on its way out and came to hold.
type court struct {
	newest *Entry                           // the last that ever joined, in order
	docket []brief                          // to be judged, in order
	rests  map[*member]map[*member]struct{} // the verdicts that rest on an entry
	loose  map[string]map[*member]struct{}  // by tenant: see [Verdict.loose]
}

// brief is an entry to be judged.
type brief struct {
	member *member

	// ahead are entries that have got into the way. When this one has been judged,
	// the next that waits for ever because of them is looked for.
	ahead []*member
}

func newCourt() court {
	return court{rests: map[*member]map[*member]struct{}{}, loose: map[string]map[*member]struct{}{}}
}

// file adds m to those that are to be judged.
func (c *court) file(m *member, ahead ...*member) {
	i, found := slices.BinarySearchFunc(c.docket, m, func(b brief, m *member) int { return inOrder(b.member.entry, m.entry) })
	if !found {
		c.docket = slices.Insert(c.docket, i, brief{member: m})
	}
	c.docket[i].ahead = append(c.docket[i].ahead, ahead...)
}

func (c *court) joined(m *member) {
	if c.newest == nil || inOrder(c.newest, m.entry) < 0 {
		c.newest = m.entry
	}
	if m.holds() && c.newest == m.entry {
		m.judged = true // it is in nobody's way yet
		return
	}
	c.file(m)
}

// granted notes that m came to hold. If it was on its way out it was in nobody's way
// so far.
func (c *court) granted(m *member) {
	switch {
	case m.verdict != nil:
		c.file(m)
	case m.entry.Tries():
		c.file(m, m)
	}
}

func (c *court) left(m *member) {
	c.docket = slices.DeleteFunc(c.docket, func(b brief) bool { return b.member == m })
	c.appeal(m)
	c.enter(m, nil)
	delete(c.rests, m)
}

// appeal files the verdicts that rest on m, which left or is condemned.
func (c *court) appeal(m *member) {
	for other := range c.rests[m] {
		c.file(other)
	}
	for other := range c.loose[m.entry.Tenant] {
		if inOrder(m.entry, other.entry) < 0 {
			c.file(other)
		}
	}
}

// enter notes what the verdict about m is, and on whom it rests.
func (c *court) enter(m *member, v *Verdict, others ...*member) {
	if m.verdict != nil {
		for _, other := range m.restsOn {
			delete(c.rests[other], m)
			if len(c.rests[other]) == 0 {
				delete(c.rests, other)
			}
		}
		delete(c.loose[m.entry.Tenant], m)
		if len(c.loose[m.entry.Tenant]) == 0 {
			delete(c.loose, m.entry.Tenant)
		}
	}
	m.verdict, m.restsOn = v, others
	if v == nil {
		return
	}
	for _, other := range others {
		if c.rests[other] == nil {
			c.rests[other] = map[*member]struct{}{}
		}
		c.rests[other][m] = struct{}{}
	}
	if v.loose() {
		if c.loose[m.entry.Tenant] == nil {
			c.loose[m.entry.Tenant] = map[*member]struct{}{}
		}
		c.loose[m.entry.Tenant][m] = struct{}{}
	}
}

// Judge brings the verdicts up to date with what was inserted and removed. It
// returns the entries that were condemned or are not any more, in order.
//
// It costs next to nothing where nobody is condemned or on its way out; to judge an
// entry that joins costs as much as [Table.Cycle].
func (t *Table) Judge() []*Entry {
	var changed []*Entry
	for len(t.court.docket) > 0 {
		b := t.court.docket[0]
		t.court.docket = slices.Delete(t.court.docket, 0, 1)
		if t.reconsider(b.member) {
			changed = append(changed, b.member.entry)
		}
		for _, m := range b.ahead {
			if t.members[m.entry.ID] == m && !m.leaving() {
				t.lookBehind(m, b.member.entry)
			}
		}
	}
	return changed
}

// Verdict returns why the entry with the id cannot stay, as of the last
// [Table.Judge], or nil.
func (t *Table) Verdict(id ID) *Verdict {
	if m := t.members[id]; m != nil {
		return m.verdict
	}
	return nil
}

// reconsider judges m, and files whose verdicts may change by it.
func (t *Table) reconsider(m *member) (changed bool) {
	before, fresh := m.verdict, !m.judged
	m.judged = true
	v := t.verdictOn(m)
	t.court.enter(m, v, t.membersOf(v, m)...)
	switch {
	case v != nil && before == nil:
		t.court.appeal(m)
	case v == nil && before != nil, fresh && !m.leaving() && inOrder(m.entry, t.court.newest) < 0:
		t.fileThoseWhoDisagree(m)
		t.lookBehind(m, m.entry)
	}
	return (v == nil) != (before == nil)
}

func (t *Table) membersOf(v *Verdict, m *member) []*member {
	if v == nil {
		return nil
	}
	var all []*member
	for _, e := range v.others(m.entry) {
		all = append(all, t.members[e.ID])
	}
	return all
}

func (t *Table) verdictOn(m *member) *Verdict {
	if m.holds() {
		return nil
	}
	if c, against := t.clash(m.entry); against != nil {
		return &Verdict{Clash: &c, Against: against}
	}
	before := m.verdict
	m.verdict = nil // what it would do if it stayed
	cycle := cycleAt(t.candidate(m.entry))
	m.verdict = before
	if cycle == nil {
		return nil
	}
	return &Verdict{Cycle: cycle}
}

// Clash returns the claim on a lock before e's, as what the lock is in use, with
// which a claim of e does not agree. An entry that is not in the table would come last everywhere. What
// is condemned and waits is on its way out and does not count.
func (t *Table) Clash(e *Entry) (Claim, bool) {
	c, against := t.clash(e)
	return c, against != nil
}

func (t *Table) clash(e *Entry) (Claim, *Entry) {
	for _, c := range e.Claims {
		q := t.queues[Ref{e.Tenant, c.Name}]
		if q == nil {
			continue
		}
		s := q.head
		for s != nil && s.member.entry.ID != e.ID && s.member.verdict != nil && !s.member.holds() {
			s = s.next
		}
		if s != nil && s.member.entry.ID != e.ID && !s.claim.Agrees(c) {
			return s.claim, s.member.entry
		}
	}
	return Claim{}, nil
}

// fileThoseWhoDisagree files who stands behind m, which did not count so far, in
// another mode.
func (t *Table) fileThoseWhoDisagree(m *member) {
	for i := range m.slots {
		for s := m.slots[i].next; s != nil; s = s.next {
			if !s.claim.Agrees(m.slots[i].claim) {
				t.court.file(s.member)
			}
		}
	}
}

// lookBehind files the first entry after the given one that waits for ever with m in
// the way.
func (t *Table) lookBehind(m *member, after *Entry) {
	stuck := t.stuck(m, nil)
	stuck = slices.DeleteFunc(stuck, func(other *member) bool {
		return other.worker == nil || inOrder(other.entry, after) <= 0
	})
	slices.SortFunc(stuck, func(a, b *member) int { return inOrder(a.entry, b.entry) })
	first := sort.Search(len(stuck), func(i int) bool { return len(t.stuck(m, stuck[i].entry)) > 0 })
	if first < len(stuck) {
		t.court.file(stuck[first], m)
	}
}

// stuck returns who waits for ever of all whom the worker of m waits for, or m itself
// if it has none, among the entries up to limit in order.
func (t *Table) stuck(m *member, limit *Entry) []*member {
	in := inquiry{limit: limit}
	defer in.clear()
	if m.worker == nil && !m.holds() {
		in.meet(m)
	} else if m.worker != nil {
		for other := m.worker.first; other != nil; other = other.next {
			if !other.holds() && !other.leaving() && in.sees(other) {
				in.meet(other)
			}
		}
	}
	in.explore()
	in.play()
	var stuck []*member
	for _, n := range in.nodes {
		if !n.granted {
			stuck = append(stuck, n.member)
		}
	}
	return stuck
}
