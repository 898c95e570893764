package deadlock

import (
	"cmp"
	"slices"

	"github.com/fencepost/fencepost/lock"
)

// newest finds the waiting entries with [lock.Entry.OnlyNewest] that a later one supersedes. An
// entry supersedes earlier ones in its queues unless it has a clash or a cycle itself: then it
// leaves, and an earlier one may still be the newest. An entry that can choose stays, because no
// entry blocks it. Clashes and cycles do not depend on supersession, so the result is a function of
// the entries alone.
//
// Entries without the flag cost nothing here.
type newest struct {
	queues map[lock.Ref][]*node // those with the flag, in order
	stale  []*node              // whose [node.newer] may have changed
}

// onlyNewest reports whether the table follows n here. A try neither stays nor displaces others.
func (n *node) onlyNewest() bool { return n.entry.OnlyNewest && !n.entry.Tries() }

func (c *newest) joined(n *node) {
	if !n.onlyNewest() {
		return
	}
	for _, r := range n.refs() {
		c.queues[r] = append(c.queues[r], n)
	}
	c.changed(n)
}

func (c *newest) left(n *node) {
	if !n.onlyNewest() {
		return
	}
	c.changed(n)
	for _, r := range n.refs() {
		c.drop(r, n)
	}
}

// narrows notes that n leaves all queues but those of e.
func (c *newest) narrows(n *node, e *lock.Entry) {
	if !n.onlyNewest() {
		return
	}
	c.changed(n)
	c.stale = append(c.stale, n)
	for i, r := range n.refs() {
		if !slices.Contains(e.Claims, n.entry.Claims[i]) {
			c.drop(r, n)
		}
	}
}

func (c *newest) drop(r lock.Ref, n *node) {
	q, i := c.queues[r], c.index(r, n)
	if c.queues[r] = slices.Delete(q, i, i+1); len(q) == 1 {
		delete(c.queues, r)
	}
}

// changed notes that n begins or ceases to supersede. Entries before another that supersedes are
// superseded by that one, too.
func (c *newest) changed(n *node) {
	if !n.onlyNewest() {
		return
	}
	for _, r := range n.refs() {
		q := c.queues[r]
		for i := c.index(r, n) - 1; i >= 0; i-- {
			if c.stale = append(c.stale, q[i]); q[i].rejection == nil {
				break
			}
		}
	}
}

// granted notes that n holds or can choose now, and so is not superseded.
func (c *newest) granted(n *node) {
	if n.newer != nil {
		c.stale = append(c.stale, n)
	}
}

// after returns the first entry that supersedes n, or nil.
func (c *newest) after(n *node) *lock.Entry {
	for _, r := range n.refs() {
		for _, later := range c.queues[r][c.index(r, n)+1:] {
			if later.rejection == nil {
				return later.entry
			}
		}
	}
	return nil
}

func (c *newest) index(r lock.Ref, n *node) int {
	i, _ := slices.BinarySearchFunc(c.queues[r], n.entry.Number, func(other *node, number uint64) int {
		return cmp.Compare(other.entry.Number, number)
	})
	return i
}

func (n *node) refs() []lock.Ref {
	refs := make([]lock.Ref, len(n.entry.Claims))
	for i, c := range n.entry.Claims {
		refs[i] = lock.Ref{Tenant: n.entry.Tenant, Name: c.Name}
	}
	return refs
}

// supersede updates which entries a later one supersedes, and returns those that were rejected or
// no longer are because of it.
func (t *Table) supersede() (changed []*lock.Entry) {
	for _, n := range t.newest.stale {
		if t.node(n.entry.ID) != n {
			continue
		}
		before := n.newer
		_, chooses := n.member.Choice()
		if n.newer = nil; !n.holds() && !chooses {
			n.newer = t.newest.after(n)
		}
		if (n.newer == nil) != (before == nil) && n.rejection == nil {
			changed = append(changed, n.entry)
		}
	}
	clear(t.newest.stale)
	t.newest.stale = t.newest.stale[:0]
	return changed
}
