package deadlock

import "github.com/fencepost/fencepost/lock"

// holder is one that its requests name, with all its entries in the order in
// which they joined. It is taken for one sequence of steps: while it waits for
// anything, it lets go of nothing.
type holder struct {
	first, last *node
	waiting     int // how many of its entries do not hold
}

func holderOf(e *lock.Entry) lock.Ref { return lock.Ref{Tenant: e.Tenant, Name: e.Holder} }

// addToHolder adds n to the entries of its holder, if the request named one.
func (t *Table) addToHolder(n *node) {
	if !n.entry.Named {
		return
	}
	h := t.named[holderOf(n.entry)]
	if h == nil {
		h = &holder{}
		t.named[holderOf(n.entry)] = h
	}
	if n.holder, n.prev = h, h.last; h.last == nil {
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
	if h != nil {
		h.waiting--
	}
}

// removeFromHolder takes n, which held or waited, out of the entries of its holder.
func (t *Table) removeFromHolder(n *node, held bool) {
	h := n.holder
	if h == nil {
		return
	}
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
		delete(t.named, holderOf(n.entry))
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
