package lock

import (
	"cmp"
	"slices"
)

// Close has a closure in force: nobody that it bars comes to hold. Who holds already is not asked:
// the caller tells of a closure before any entry with its number or a higher one, and its roll is
// from then.
func (t *Table) Close(c *Closure) {
	tenant := c.Tenant()
	t.closures[tenant] = append(t.closures[tenant], c)
	slices.SortFunc(t.closures[tenant], func(a, b *Closure) int { return cmp.Compare(a.Entry.Number, b.Entry.Number) })
}

// Settle adds to a closure who held when it began, if that is not known, and returns who holds
// because of that.
func (t *Table) Settle(c *Closure, roll *Roll) (granted []*Entry) {
	if c.Settled() {
		return nil
	}
	c.roll = roll
	return t.reconsider(c)
}

// Open ends a closure and returns who holds because of that.
func (t *Table) Open(c *Closure) (granted []*Entry) {
	tenant := c.Tenant()
	left := slices.DeleteFunc(t.closures[tenant], func(other *Closure) bool { return other == c })
	if t.closures[tenant] = left; len(left) == 0 {
		delete(t.closures, tenant)
	}
	return t.reconsider(c)
}

// reconsider lets those hold whom a closure barred and none does any more, in the order of their
// numbers. Whoever is barred by another one is not looked at: patterns take time.
func (t *Table) reconsider(c *Closure) (granted []*Entry) {
	for _, m := range t.shut[c.Tenant()] {
		if m.shut != c {
			continue
		}
		if other := t.bars(m.entry); other != nil {
			m.shut = other
			continue
		}
		t.letIn(m)
		granted = append(granted, t.grant(m))
	}
	slices.SortFunc(granted, func(a, b *Entry) int {
		return cmp.Or(cmp.Compare(a.Number, b.Number), cmp.Compare(a.ID, b.ID))
	})
	return granted
}

// bars returns a closure that keeps the entry from holding, nil if none does.
func (t *Table) bars(e *Entry) *Closure {
	for _, c := range t.closures[e.Tenant] {
		if bars, _ := c.Bars(e); bars {
			return c
		}
	}
	return nil
}

// shutOut notes whether only a closure keeps m from holding.
func (t *Table) shutOut(m *Member) {
	if !m.Holds() {
		return
	}
	if m.shut = t.bars(m.entry); m.shut == nil {
		return
	}
	if t.shut[m.entry.Tenant] == nil {
		t.shut[m.entry.Tenant] = map[ID]*Member{}
	}
	t.shut[m.entry.Tenant][m.entry.ID] = m
}

// letIn notes that no closure keeps m from holding.
func (t *Table) letIn(m *Member) {
	if m.shut == nil {
		return
	}
	m.shut = nil
	if delete(t.shut[m.entry.Tenant], m.entry.ID); len(t.shut[m.entry.Tenant]) == 0 {
		delete(t.shut, m.entry.Tenant)
	}
}

// barrier returns the entry of a closure that bars e for certain. ok is false if it is not
// known whether one does.
func (t *Table) barrier(e *Entry) (blockers []*Entry, ok bool) {
	return BarrierIn(t.closures[e.Tenant], e)
}

// BarrierIn returns the entry of one of the closures that bars e for certain: for as long as it is
// there, e does not hold. ok is false if one may bar it, and none does for certain.
func BarrierIn(closures []*Closure, e *Entry) (barrier []*Entry, ok bool) {
	ok = true
	for _, c := range closures {
		switch bars, certain := c.Bars(e); {
		case bars && certain:
			return []*Entry{c.Entry}, true
		case bars:
			ok = false
		}
	}
	return nil, ok
}

// InDoubt reports whether it is not known if the entry holds: nobody is before it in any of its
// queues, and a closure may have begun after that or before.
func (t *Table) InDoubt(id ID) bool {
	m := t.members[id]
	if m == nil || m.shut == nil {
		return false
	}
	_, certain := t.barrier(m.entry)
	return !certain
}

// Doubtful reports whether it is not known of somebody in the lock's queue if he holds.
func (t *Table) Doubtful(r Ref) bool {
	q := t.queues[r]
	if q == nil || t.settled(r.Tenant) {
		return false
	}
	for s := q.head; s != nil && s.inFront; s = s.next {
		if t.InDoubt(s.member.entry.ID) {
			return true
		}
	}
	return false
}

// settled reports whether of all closures of a tenant it is known who held.
func (t *Table) settled(tenant string) bool {
	return !slices.ContainsFunc(t.closures[tenant], func(c *Closure) bool { return !c.Settled() })
}

// Closings returns what the closures of a tenant's locks say, in the order of their numbers.
func (t *Table) Closings(tenant string) []*Closing {
	all := make([]*Closing, 0, len(t.closures[tenant]))
	for _, c := range t.closures[tenant] {
		all = append(all, c.Entry.Closing)
	}
	return all
}

// ClosedFor returns the closure that would keep an entry with these claims from holding, if it came
// now: the one that lasts longest. It is nil if there is none.
func (t *Table) ClosedFor(tenant string, claims []Claim) (longest *Closure) {
	for _, c := range t.closures[tenant] {
		closes := slices.ContainsFunc(claims, func(claim Claim) bool { return c.Entry.Closing.Locks.Match(claim.Name) })
		if closes && (longest == nil || c.Entry.Closing.Until.After(longest.Entry.Closing.Until)) {
			longest = c
		}
	}
	return longest
}
