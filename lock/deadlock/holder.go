package deadlock

import (
	"cmp"
	"slices"

	"github.com/fencepost/fencepost/lock"
)

// holder is a name with its entries in the order in which they joined. A holder that requests
// name works sequentially: while it waits, it releases nothing.
type holder struct {
	worker      lock.Worker
	first, last *node
	waiting     int // its waiting entries that are not choosing

	prevNamesake, nextNamesake *holder // of another subject
}

// groups are a named holder, and the last holder of each tenant and name.
type groups struct {
	all   map[lock.Worker]*holder
	names map[lock.Ref]*holder
}

func newGroups() groups {
	return groups{all: map[lock.Worker]*holder{}, names: map[lock.Ref]*holder{}}
}

func (h *holder) ref() lock.Ref { return lock.Ref{Tenant: h.worker.Tenant, Name: h.worker.Holder} }

func (g groups) of(e *lock.Entry) *holder { return g.all[e.Worker()] }

func (g groups) add(e *lock.Entry) *holder {
	h := g.of(e)
	if h != nil {
		return h
	}
	h = &holder{worker: e.Worker()}
	g.all[h.worker] = h
	if h.nextNamesake = g.names[h.ref()]; h.nextNamesake != nil {
		h.nextNamesake.prevNamesake = h
	}
	g.names[h.ref()] = h
	return h
}

func (g groups) remove(h *holder) {
	delete(g.all, h.worker)
	if h.nextNamesake != nil {
		h.nextNamesake.prevNamesake = h.prevNamesake
	}
	switch {
	case h.prevNamesake != nil:
		h.prevNamesake.nextNamesake = h.nextNamesake
	case h.nextNamesake != nil:
		g.names[h.ref()] = h.nextNamesake
	default:
		delete(g.names, h.ref())
	}
}

// named returns the holders of a name, by subject.
func (g groups) named(who lock.Ref) (all []*holder) {
	for h := g.names[who]; h != nil; h = h.nextNamesake {
		all = append(all, h)
	}
	slices.SortFunc(all, func(a, b *holder) int {
		return cmp.Compare(a.worker.Subject, b.worker.Subject)
	})
	return all
}

// groupsOf returns the groups to which e belongs.
func (t *Table) groupsOf(e *lock.Entry) groups {
	if e.Named {
		return t.named
	}
	return t.others
}

// addToHolder adds n to the entries of its holder. A named holder counts for deadlocks.
func (t *Table) addToHolder(n *node) {
	h := t.groupsOf(n.entry).add(n.entry)
	if n.entry.Named {
		n.holder = h
	}
	if n.group, n.prev = h, h.last; h.last == nil {
		h.first = n
	} else {
		h.last.next = n
	}
	h.last = n
	if !n.holds() && !n.entry.Choosing() {
		h.waiting++
	}
}

// removeFromHolder removes n, which held or waited, from the entries of its holder.
func (t *Table) removeFromHolder(n *node, held bool) {
	h := n.group
	if !held && !n.entry.Choosing() {
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
		t.groupsOf(n.entry).remove(h)
	}
}

// MaxWaits bounds the waiting entries of one named holder in deadlock detection. A holder with
// more is taken for a name that many clients use.
const MaxWaits = 100

// awaited reports whether an entry may wait for an entry of h other than n, or n itself would.
// Otherwise no wait of n can lead back to h. It is false if h has too many waiting entries.
func (h *holder) awaited(n *node) bool {
	if h.waiting > MaxWaits {
		return false
	}
	const many = 64 // entries read to find that none is waited for
	looked := 0
	for other := h.first; other != nil; other = other.next {
		if other == n {
			continue
		}
		if looked++; looked > many {
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
