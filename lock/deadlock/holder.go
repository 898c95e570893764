package deadlock

import "github.com/fencepost/fencepost/lock"

// holder is one that its requests name, with all its entries in the order in
// which they joined. It is taken for one sequence of steps: while it waits for
// anything, it lets go of nothing. One whose requests do not name it is for those who look.
type holder struct {
	first, last *node
	waiting     int // how many of its entries do not hold
}

func holderOf(e *lock.Entry) lock.Ref { return lock.Ref{Tenant: e.Tenant, Name: e.Holder} }

// groupsOf are the groups of whom e would be one.
func (t *Table) groupsOf(e *lock.Entry) map[lock.Ref]*holder {
	if e.Named {
		return t.named
	}
	return t.others
}

// addToHolder adds n to the entries of its holder. That is one for the search for deadlocks
// only if the request named it.
func (t *Table) addToHolder(n *node) {
	groups := t.groupsOf(n.entry)
	h := groups[holderOf(n.entry)]
	if h == nil {
		h = &holder{}
		groups[holderOf(n.entry)] = h
	}
	if n.entry.Named {
		n.holder = h
	}
	if n.group, n.prev = h, h.last; h.last == nil {
		h.first = n
	} else {
		h.last.next = n
	}
	h.last = n
	if !n.holds() {
		h.waiting++
	}
}

// granted notes that one of its entries came to hold.
func (h *holder) granted() {
	h.waiting--
}

// removeFromHolder takes n, which held or waited, out of the entries of its holder.
func (t *Table) removeFromHolder(n *node, held bool) {
	h := n.group
	if !held {
		h.waiting--
	}
	if n.prev == nil {
		h.first = n.next
	} else {
		n.prev.next = n.next
	}
	if n.next == nil {
		h.last = n.prev
	} else {
		n.next.prev = n.prev
	}
	n.prev, n.next = nil, nil
	if h.first == nil {
		delete(t.groupsOf(n.entry), holderOf(n.entry))
	}
}

// MaxWaits is how many entries of one named holder may wait, those that are on their way out
// included, for a deadlock of it to be looked for. One that waits for more at a time does
// not do one thing after another: many go by its name.
const MaxWaits = 100

// manyEntries of a holder are not gone through to find out that nobody waits for it.
const manyEntries = 64

// awaited reports whether anybody may wait for another entry of h than n, or n itself
// would: otherwise no wait of n can lead back to h. It is false for too many who go by
// one name.
func (h *holder) awaited(n *node) bool {
	if h.waiting > MaxWaits {
		return false
	}
	looked := 0
	for other := h.first; other != nil; other = other.next {
		if other == n {
			continue
		}
		if looked++; looked > manyEntries {
			return true
		}
		for i := range other.member.Slots() {
			if q := other.member.Slots()[i].Queue(); q.Waiting() > 0 || n.waitsIn(q) {
				return true
			}
		}
	}
	return false
}
