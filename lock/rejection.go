package lock

import (
	"cmp"
	"container/heap"
	"slices"
	"sort"
)

// Rejection says why an entry that waits cannot stay in its queues.
type Rejection struct {
	// Clash is the claim of Against, which stands before the entry in a queue, with
	// which its own does not agree.
	Clash   *Claim
	Against *Entry

	// Cycle is, if there is no clash, the deadlock that the entry closed when it
	// joined.
	Cycle []Wait
}

// others returns the entries that v is about, but not e itself.
func (v *Rejection) others(e *Entry) []*Entry {
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
func (v *Rejection) loose() bool {
	return slices.ContainsFunc(v.Cycle, func(w Wait) bool {
		for _, c := range w.Waiter.Claims {
			if c.Name == w.Lock {
				return c.Mode == Semaphore
			}
		}
		return false
	})
}

// inOrder compares entries in the order in which they are checked: by number, and by
// id where independent ones were written together.
func inOrder(a, b *Entry) int {
	return cmp.Or(cmp.Compare(a.Number, b.Number), cmp.Compare(a.ID, b.ID))
}

// detector keeps the rejections: the victims of deadlock detection on the wait-for
// graph, and of modes that disagree. They are a function of the entries that are there: an
// entry that waits is rejected if, of the entries before it in order, one that is
// not rejected disagrees with it in a queue, or if it closed a cycle with them when
// it joined. Entries before it are checked before it, so the order makes this one
// answer, and whoever lists the entries comes to the same as whoever followed them.
//
// To find out at each change only what changes, it is noted on whom each rejection
// depends. Somebody who leaves, or is rejected, can only lift rejections that depend on
// it. An entry comes to be rejected although it was not when it joined only if
// another one gets into its way that was not: one whose rejection is lifted, or one
// that was on its way out and came to hold.
type detector struct {
	newest     *Entry                           // the last that ever joined, in order
	pending    checks                           // to be checked
	dependents map[*member]map[*member]struct{} // whose rejections depend on an entry
	loose      map[string]map[*member]struct{}  // by tenant: see [Rejection.loose]
	looks      int                              // that are left for the present change
}

// maxLooksOfChange is how many looks one change may take, however many entries are to be
// checked because of it. Those for which there are none left are not in a deadlock, as
// far as is known.
const maxLooksOfChange = 20 * MaxLooks

// check is a pending look at an entry.
type check struct {
	member *member
	place  int // among the pending

	// ahead are entries that have got into the way. When this one has been checked,
	// the next that waits for ever because of them is looked for.
	ahead []*member
}

// checks are those that are pending, as a heap: thousands can come to be at once, in any
// order.
type checks []*check

// Len implements [heap.Interface], like the methods below.
func (c checks) Len() int           { return len(c) }
func (c checks) Less(i, j int) bool { return inOrder(c[i].member.entry, c[j].member.entry) < 0 }
func (c checks) Swap(i, j int) {
	c[i], c[j] = c[j], c[i]
	c[i].place, c[j].place = i, j
}

// Push adds one at the end.
func (c *checks) Push(x any) {
	b := x.(*check)
	b.place = len(*c)
	*c = append(*c, b)
}

// Pop removes the last.
func (c *checks) Pop() any {
	last := len(*c) - 1
	b := (*c)[last]
	(*c)[last] = nil
	*c = (*c)[:last]
	return b
}

func newDetector() detector {
	return detector{dependents: map[*member]map[*member]struct{}{}, loose: map[string]map[*member]struct{}{}}
}

// schedule adds m to those that are to be checked.
func (c *detector) schedule(m *member, ahead ...*member) {
	if m.check == nil {
		m.check = &check{member: m}
		heap.Push(&c.pending, m.check)
	}
	m.check.ahead = append(m.check.ahead, ahead...)
}

func (c *detector) joined(m *member) {
	if c.newest == nil || inOrder(c.newest, m.entry) < 0 {
		c.newest = m.entry
	}
	if m.holds() && c.newest == m.entry {
		m.checked = true // it is in nobody's way yet
		return
	}
	c.schedule(m)
}

// granted notes that m came to hold. If it was on its way out it was in nobody's way
// so far.
func (c *detector) granted(m *member) {
	switch {
	case m.rejection != nil:
		c.schedule(m)
	case m.entry.Tries():
		c.schedule(m, m)
	}
}

func (c *detector) left(m *member) {
	if m.check != nil {
		heap.Remove(&c.pending, m.check.place)
		m.check = nil
	}
	c.recheckDependents(m)
	c.record(m, nil)
	delete(c.dependents, m)
}

// recheckDependents schedules those whose rejections depend on m, which left or is
// rejected.
func (c *detector) recheckDependents(m *member) {
	for other := range c.dependents[m] {
		c.schedule(other)
	}
	for other := range c.loose[m.entry.Tenant] {
		if inOrder(m.entry, other.entry) < 0 {
			c.schedule(other)
		}
	}
}

// record notes why m is rejected, nil if it is not, and on whom that depends.
func (c *detector) record(m *member, v *Rejection, others ...*member) {
	if m.rejection != nil {
		for _, other := range m.dependsOn {
			delete(c.dependents[other], m)
			if len(c.dependents[other]) == 0 {
				delete(c.dependents, other)
			}
		}
		delete(c.loose[m.entry.Tenant], m)
		if len(c.loose[m.entry.Tenant]) == 0 {
			delete(c.loose, m.entry.Tenant)
		}
	}
	m.rejection, m.dependsOn = v, others
	if v == nil {
		return
	}
	for _, other := range others {
		if c.dependents[other] == nil {
			c.dependents[other] = map[*member]struct{}{}
		}
		c.dependents[other][m] = struct{}{}
	}
	if v.loose() {
		if c.loose[m.entry.Tenant] == nil {
			c.loose[m.entry.Tenant] = map[*member]struct{}{}
		}
		c.loose[m.entry.Tenant][m] = struct{}{}
	}
}

// Detect brings the rejections up to date with what was inserted and removed. It
// returns the entries that were rejected or are not any more, in order.
//
// It costs next to nothing where nobody is rejected or on its way out; to check an
// entry that joins costs as much as [Table.Cycle], and all of it no more than 20 times
// the most that can cost.
func (t *Table) Detect() []*Entry {
	var changed []*Entry
	t.detector.looks = maxLooksOfChange
	for len(t.detector.pending) > 0 {
		b := heap.Pop(&t.detector.pending).(*check)
		b.member.check = nil
		if t.recheck(b.member) {
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

// Rejection returns why the entry with the id cannot stay, as of the last
// [Table.Detect], or nil.
func (t *Table) Rejection(id ID) *Rejection {
	if m := t.members[id]; m != nil {
		return m.rejection
	}
	return nil
}

// recheck checks m, and schedules those whose rejections may change by it.
func (t *Table) recheck(m *member) (changed bool) {
	before, fresh := m.rejection, !m.checked
	m.checked = true
	v := t.rejectionOf(m)
	t.detector.record(m, v, t.membersOf(v, m)...)
	switch {
	case v != nil && before == nil:
		t.detector.recheckDependents(m)
	case v == nil && before != nil, fresh && !m.leaving() && inOrder(m.entry, t.detector.newest) < 0:
		t.scheduleThoseWhoDisagree(m)
		t.lookBehind(m, m.entry)
	}
	return (v == nil) != (before == nil)
}

func (t *Table) membersOf(v *Rejection, m *member) []*member {
	if v == nil {
		return nil
	}
	var all []*member
	for _, e := range v.others(m.entry) {
		all = append(all, t.members[e.ID])
	}
	return all
}

func (t *Table) rejectionOf(m *member) *Rejection {
	if m.holds() {
		return nil
	}
	if c, against := t.clash(m.entry); against != nil {
		return &Rejection{Clash: &c, Against: against}
	}
	before := m.rejection
	m.rejection = nil // what it would do if it stayed
	cycle := cycleAt(t.candidate(m.entry), &t.detector.looks)
	m.rejection = before
	if cycle == nil {
		return nil
	}
	return &Rejection{Cycle: cycle}
}

// Clash returns the claim on a lock before e's, as what the lock is in use, with
// which a claim of e does not agree. An entry that is not in the table would come last everywhere. What
// is rejected and waits is on its way out and does not count.
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
		for s != nil && s.member.entry.ID != e.ID && s.member.rejection != nil && !s.member.holds() {
			s = s.next
		}
		if s != nil && s.member.entry.ID != e.ID && !s.claim.Agrees(c) {
			return s.claim, s.member.entry
		}
	}
	return Claim{}, nil
}

// scheduleThoseWhoDisagree schedules who stands behind m, which did not count so far, in
// another mode.
func (t *Table) scheduleThoseWhoDisagree(m *member) {
	for i := range m.slots {
		for s := m.slots[i].next; s != nil; s = s.next {
			if !s.claim.Agrees(m.slots[i].claim) {
				t.detector.schedule(s.member)
			}
		}
	}
}

// lookBehind schedules the first entry after the given one that waits for ever with m in
// the way.
func (t *Table) lookBehind(m *member, after *Entry) {
	if !m.inTheWay() {
		return
	}
	stuck := t.stuck(m, nil)
	stuck = slices.DeleteFunc(stuck, func(other *member) bool {
		return other.holder == nil || other.holder.waiting > MaxWaits || inOrder(other.entry, after) <= 0
	})
	slices.SortFunc(stuck, func(a, b *member) int { return inOrder(a.entry, b.entry) })
	first := sort.Search(len(stuck), func(i int) bool { return len(t.stuck(m, stuck[i].entry)) > 0 })
	if first < len(stuck) {
		t.detector.schedule(stuck[first], m)
	}
}

// stuck returns who waits for ever of all whom the holder of m waits for, or m itself
// if it has none, among the entries up to limit in order. It returns nobody if that
// takes too many looks.
func (t *Table) stuck(m *member, limit *Entry) []*member {
	in := newSearch(nil, limit, &t.detector.looks)
	defer in.clear()
	if m.holder == nil && !m.holds() {
		in.include(m)
	} else if m.holder != nil {
		for other := m.holder.first; other != nil && in.look(); other = other.next {
			if !other.holds() && !other.leaving() && in.sees(other) {
				in.include(other)
			}
		}
	}
	in.explore()
	if in.left < 0 {
		return nil
	}
	in.simulate()
	var stuck []*member
	for _, n := range in.entries {
		if !n.granted {
			stuck = append(stuck, n.member)
		}
	}
	return stuck
}
