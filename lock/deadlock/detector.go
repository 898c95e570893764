package deadlock

import (
	"slices"
	"sort"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/lock/heap"
)

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
	newest     *lock.Entry                   // the last that ever joined, in order
	beside     []*node                       // those of its number that waited when they joined
	pending    heap.Heap[*check]             // to be checked
	dependents map[*node]map[*node]struct{}  // whose rejections depend on an entry
	loose      map[string]map[*node]struct{} // by tenant: see [Rejection.loose]
	looks      int                           // that are left for the present change
}

// maxLooksOfChange is how many looks one change may take, however many entries are to be
// checked because of it. Those for which there are none left are not in a deadlock, as
// far as is known.
const maxLooksOfChange = 20 * MaxLooks

func newDetector() detector {
	return detector{dependents: map[*node]map[*node]struct{}{}, loose: map[string]map[*node]struct{}{}}
}

// schedule adds n to those that are to be checked.
func (c *detector) schedule(n *node, ahead ...*node) {
	if n.check == nil {
		n.check = &check{node: n}
		c.pending.Push(n.check)
	}
	n.check.ahead = append(n.check.ahead, ahead...)
}

func (c *detector) joined(n *node) {
	if c.newest == nil || c.newest.Number < n.entry.Number {
		clear(c.beside)
		c.beside = c.beside[:0]
	}
	if c.newest == nil || inOrder(c.newest, n.entry) < 0 {
		c.newest = n.entry
	}
	if !n.holds() && n.entry.Number == c.newest.Number {
		c.beside = append(c.beside, n)
	}
	if n.holds() && c.newest == n.entry {
		n.checked = true // it is in nobody's way yet
		return
	}
	c.schedule(n)
}

// granted notes that n came to hold. If it was on its way out it was in nobody's way
// so far.
func (c *detector) granted(n *node) {
	switch {
	case n.rejection != nil:
		c.schedule(n)
	case n.entry.Tries():
		c.schedule(n, n)
	}
}

func (c *detector) left(n *node) {
	if n.check != nil {
		c.pending.Remove(n.check)
		n.check = nil
	}
	c.recheckDependents(n)
	c.record(n, nil)
	delete(c.dependents, n)
}

// recheckDependents schedules those whose rejections depend on n, which left or is
// rejected.
func (c *detector) recheckDependents(n *node) {
	for other := range c.dependents[n] {
		c.schedule(other)
	}
	for other := range c.loose[n.entry.Tenant] {
		if inOrder(n.entry, other.entry) < 0 {
			c.schedule(other)
		}
	}
}

// record notes why n is rejected, nil if it is not, and on whom that depends.
func (c *detector) record(n *node, v *Rejection, others ...*node) {
	if n.rejection != nil {
		for _, other := range n.dependsOn {
			delete(c.dependents[other], n)
			if len(c.dependents[other]) == 0 {
				delete(c.dependents, other)
			}
		}
		delete(c.loose[n.entry.Tenant], n)
		if len(c.loose[n.entry.Tenant]) == 0 {
			delete(c.loose, n.entry.Tenant)
		}
	}
	n.rejection, n.dependsOn = v, others
	if v == nil {
		return
	}
	for _, other := range others {
		if c.dependents[other] == nil {
			c.dependents[other] = map[*node]struct{}{}
		}
		c.dependents[other][n] = struct{}{}
	}
	if v.loose() {
		if c.loose[n.entry.Tenant] == nil {
			c.loose[n.entry.Tenant] = map[*node]struct{}{}
		}
		c.loose[n.entry.Tenant][n] = struct{}{}
	}
}

// Detect brings the rejections up to date with what was inserted and removed. It
// returns the entries that were rejected or are not any more, in order.
//
// It costs next to nothing where nobody is rejected or on its way out; to check an
// entry that joins costs as much as [Table.Search], and all of it no more than 20 times
// the most that can cost.
func (t *Table) Detect() []*lock.Entry {
	var changed []*lock.Entry
	t.detector.looks = maxLooksOfChange
	for t.detector.pending.Len() > 0 {
		b := t.detector.pending.Pop()
		b.node.check = nil
		if t.recheck(b.node) {
			changed = append(changed, b.node.entry)
		}
		for _, n := range b.ahead {
			if t.node(n.entry.ID) == n && !n.leaving() {
				t.lookBehind(n, b.node.entry)
			}
		}
	}
	return changed
}

// recheck checks n, and schedules those whose rejections may change by it.
func (t *Table) recheck(n *node) (changed bool) {
	before, fresh := n.rejection, !n.checked
	n.checked = true
	v := t.rejectionOf(n)
	t.detector.record(n, v, t.nodesOf(v, n)...)
	switch {
	case v != nil && before == nil:
		t.detector.recheckDependents(n)
	case v == nil && before != nil:
		t.scheduleThoseWhoDisagree(n)
		t.lookBehind(n, n.entry)
	case fresh && !n.leaving():
		t.scheduleBeside(n)
	}
	return (v == nil) != (before == nil)
}

// scheduleBeside schedules who waits and comes after n in order, though it joined before: it is of
// the same write, as numbers only grow.
func (t *Table) scheduleBeside(n *node) {
	for _, other := range t.detector.beside {
		if inOrder(n.entry, other.entry) < 0 && t.node(other.entry.ID) == other {
			t.detector.schedule(other)
		}
	}
}

func (t *Table) nodesOf(v *Rejection, n *node) []*node {
	if v == nil {
		return nil
	}
	var all []*node
	for _, e := range v.others(n.entry) {
		all = append(all, t.node(e.ID))
	}
	return all
}

func (t *Table) rejectionOf(n *node) *Rejection {
	if n.holds() {
		return nil
	}
	if c, against := t.clash(n.entry); against != nil {
		return &Rejection{Clash: &c, Against: against}
	}
	before := n.rejection
	n.rejection = nil // what it would do if it stayed
	cycle := cycleAt(t.candidate(n.entry), &t.detector.looks)
	n.rejection = before
	if cycle == nil {
		return nil
	}
	return &Rejection{Cycle: cycle}
}

// scheduleThoseWhoDisagree schedules who stands behind n, which did not count so far, in
// another mode.
func (t *Table) scheduleThoseWhoDisagree(n *node) {
	for i := range n.member.Slots() {
		mine := &n.member.Slots()[i]
		for s := mine.Next(); s != nil; s = s.Next() {
			if !s.Claim().Agrees(mine.Claim()) {
				t.detector.schedule(nodeAt(s))
			}
		}
	}
}

// lookBehind schedules the first entry after the given one that waits for ever with n in
// the way.
func (t *Table) lookBehind(n *node, after *lock.Entry) {
	if !n.inTheWay() {
		return
	}
	stuck := t.stuck(n, nil)
	stuck = slices.DeleteFunc(stuck, func(other *node) bool {
		return other.holder == nil || other.holder.waiting > MaxWaits || inOrder(other.entry, after) <= 0
	})
	slices.SortFunc(stuck, func(a, b *node) int { return inOrder(a.entry, b.entry) })
	first := sort.Search(len(stuck), func(i int) bool { return len(t.stuck(n, stuck[i].entry)) > 0 })
	if first < len(stuck) {
		t.detector.schedule(stuck[first], n)
	}
}

// stuck returns who waits for ever of all whom the holder of n waits for, or n itself
// if it has none, among the entries up to limit in order. It returns nobody if that
// takes too many looks.
func (t *Table) stuck(n *node, limit *lock.Entry) []*node {
	in := newSearch(nil, limit, &t.detector.looks)
	if n.holder == nil && !n.holds() {
		in.include(n)
	} else if n.holder != nil {
		for other := n.holder.first; other != nil && in.look(); other = other.next {
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
	var stuck []*node
	for _, one := range in.entries {
		if !one.granted {
			stuck = append(stuck, one.node)
		}
	}
	return stuck
}
