package deadlock

import (
	"slices"
	"sort"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/lock/heap"
)

// detector keeps the rejections: the entries that closed a cycle, and those whose mode disagrees
// with an earlier one. A waiting entry is rejected in two cases. An earlier entry that is not
// rejected disagrees with it in a queue, or it closed a cycle with earlier entries when it
// joined. The detector checks earlier entries first, so a replica that lists the entries gets the
// same result as one that followed them.
//
// Each rejection records the entries that it depends on. An entry that leaves, or is rejected,
// can only lift rejections that depend on it. An entry can be rejected later than at its join
// only if another entry begins to block it. That is an entry whose rejection is lifted, or one
// that was about to leave and was granted.
type detector struct {
	newest     *lock.Entry       // the last one that ever joined, in order
	beside     []*node           // entries of its number that waited when they joined
	pending    heap.Heap[*check] // to be checked
	dependents sets[*node]       // rejections by the entries that they depend on
	loose      sets[string]      // by tenant: see [Rejection.loose]
	looks      int               // left for the present change
}

// check is a pending look at an entry.
type check struct {
	heap.Place
	node *node

	// nodes that became blocking: after the check, the detector looks for the next entry that they
	// block forever
	ahead []*node
}

// Before puts the earlier entry in front.
func (c *check) Before(other *check) bool { return inOrder(c.node.entry, other.node.entry) < 0 }

// sets groups nodes by a key. No set is empty.
type sets[K comparable] map[K]map[*node]struct{}

func (s sets[K]) add(key K, n *node) {
	if s[key] == nil {
		s[key] = map[*node]struct{}{}
	}
	s[key][n] = struct{}{}
}

func (s sets[K]) remove(key K, n *node) {
	if delete(s[key], n); len(s[key]) == 0 {
		delete(s, key)
	}
}

// maxLooksOfChange bounds the reads of one change. The detector takes entries beyond it for not
// deadlocked.
const maxLooksOfChange = 20 * MaxLooks

// schedule adds n to the pending checks.
func (c *detector) schedule(n *node, ahead ...*node) {
	if !n.check.Queued() {
		n.check.node = n
		c.pending.Push(&n.check)
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
		n.checked = true // it blocks no entry yet
		return
	}
	c.schedule(n)
}

// granted notes that n holds now. If it was about to leave, it blocked no entry so far.
func (c *detector) granted(n *node) {
	switch {
	case n.rejection != nil:
		c.schedule(n)
	case n.entry.Tries():
		c.schedule(n, n)
	}
}

func (c *detector) left(n *node) {
	if n.check.Queued() {
		c.pending.Remove(&n.check)
	}
	c.recheckDependents(n)
	c.record(n, nil)
	delete(c.dependents, n)
}

// recheckDependents schedules the dependents of n, which left or is rejected.
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

// record stores n's rejection, or nil, and the entries that it depends on.
func (c *detector) record(n *node, v *Rejection, others ...*node) {
	if n.rejection != nil {
		for _, other := range n.dependsOn {
			c.dependents.remove(other, n)
		}
		c.loose.remove(n.entry.Tenant, n)
	}
	n.rejection, n.dependsOn = v, others
	if v == nil {
		return
	}
	for _, other := range others {
		c.dependents.add(other, n)
	}
	if v.loose() {
		c.loose.add(n.entry.Tenant, n)
	}
}

// Detect updates the rejections after insertions and removals. It returns the entries that were
// rejected, or whose rejection was lifted, in order; last those for which a newer entry decided.
// An entry that joins costs as much as [Table.Cycle]. One call costs at most 20 times the maximum
// of that.
func (t *Table) Detect() []*lock.Entry {
	var changed []*lock.Entry
	t.detector.looks = maxLooksOfChange
	for t.detector.pending.Len() > 0 {
		b := t.detector.pending.Pop()
		ahead := b.ahead
		b.ahead = nil
		if t.recheck(b.node) {
			t.newest.changed(b.node)
			if b.node.newer == nil {
				changed = append(changed, b.node.entry)
			}
		}
		for _, n := range ahead {
			if t.node(n.entry.ID) == n && !n.leaving() {
				t.lookBehind(n, b.node.entry)
			}
		}
	}
	return append(changed, t.supersede()...)
}

// recheck checks n, and schedules the entries whose rejections may change with it.
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

// scheduleBeside schedules entries of n's write that joined before n, but come after it in order.
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
		return &Rejection{Clash: new(c), Against: against}
	}
	before := n.rejection
	n.rejection = nil // as if it stayed
	cycle := cycleAt(t.candidate(n.entry), &t.detector.looks)
	n.rejection = before
	if cycle == nil {
		return nil
	}
	return &Rejection{Cycle: cycle}
}

// scheduleThoseWhoDisagree schedules entries of another mode behind n, which did not count so
// far.
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

// lookBehind schedules the first entry after the given one that n makes wait forever.
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

// stuck returns the entries up to limit that wait forever, among those that the holder of n waits
// for, or n itself if its holder has no name. It returns none if the search takes too long.
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
