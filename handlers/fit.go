package handlers

import (
	"maps"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/lock/order"
	"github.com/fencepost/fencepost/service"
	"github.com/fencepost/fencepost/service/view"
)

// How many bytes an answer may have, about. What does not fit is left to the next
// page where there is one, and left out where not.
const (
	maxPageBytes    = 1 << 20
	maxRefusalBytes = 256 << 10

	// What a member of an answer needs besides the texts of clients.
	rowBytes  = 300 // of a holder, a waiter, a lock, a wait
	pairBytes = 6   // of metadata
)

// textBytes is what a text needs in JSON at most: a tab and a line
// break become two bytes, U+2028 becomes six, and texts have no other control characters.
func textBytes(s string) int { return 2*len(s) + 2 }

func metadataBytes(pairs map[string]string) int {
	size := 0
	for key, value := range maps.All(pairs) {
		size += textBytes(key) + textBytes(value) + pairBytes
	}
	return size
}

func entryBytes(e *lock.Entry, metadata bool) int {
	size := rowBytes + textBytes(e.Holder)
	if metadata {
		size += metadataBytes(e.Metadata)
	}
	return size
}

// fit returns the first members that fit into what is left, and takes what they need.
func fit[T any](all []T, left *int, size func(T) int) []T {
	for i, one := range all {
		need := size(one)
		if need > *left {
			return all[:i]
		}
		*left -= need
	}
	return all
}

func fitHolders(holders []view.Holder, left *int, metadata bool) []view.Holder {
	return fit(holders, left, func(h view.Holder) int { return entryBytes(h.Entry, metadata) })
}

// fitLock shortens the answer about a lock and returns how large it gets. Of
// holders there are few, as a rule, so they come first; half is for those who wait.
func fitLock(v *service.LockView) int {
	left := maxPageBytes / 2
	v.Holders = fitHolders(v.Holders, &left, true)
	left += maxPageBytes / 2
	v.Waiters = fit(v.Waiters, &left, func(w view.Waiter) int { return entryBytes(w.Entry, true) })
	return maxPageBytes - left + 2*rowBytes
}

// fitPage shortens a page and returns how large the answer gets. One lock fits
// always: it has at most 100 holders, without metadata.
func fitPage(p *view.Page) int {
	left := maxPageBytes
	locks := fit(p.Locks, &left, func(l view.Summary) int {
		size := rowBytes + len(l.Name)
		for _, h := range l.Holders {
			size += entryBytes(h.Entry, false)
		}
		return size
	})
	if n := len(locks); n < len(p.Locks) {
		p.Locks, p.Next = locks, locks[n-1].Name
	}
	return maxPageBytes - left + rowBytes
}

// fitRefusal shortens the holders in a refusal, and returns how large it gets. A set names each
// holder twice: with the lock, and among all.
func fitRefusal(g *service.Grant) int {
	if !g.Entry.Set {
		left := maxRefusalBytes
		g.Holders = fitHolders(g.Holders, &left, true)
		return maxRefusalBytes - left + rowBytes
	}
	left := maxRefusalBytes / 2
	for i := range g.Busy {
		left -= rowBytes
		g.Busy[i].Holders = fitHolders(g.Busy[i].Holders, &left, false)
	}
	return 2*(maxRefusalBytes/2-left) + rowBytes
}

// hideHolders leaves the locks that are in use, and the numbers of waiters.
func hideHolders(g *service.Grant) {
	g.Holders = nil
	for i := range g.Busy {
		g.Busy[i].Holders = nil
	}
}

func cycleBytes(cycle []lock.Wait) int {
	size := 0
	for _, w := range cycle[:min(len(cycle), maxShownWaits)] {
		size += rowBytes + textBytes(w.Waiter.Holder) + textBytes(w.Blocker.Holder) + len(w.Lock)
	}
	return size
}

func exampleBytes(x order.Example) int {
	return rowBytes + textBytes(x.Holder) + len(x.Held) + len(x.Taken)
}

func contradictionBytes(c order.Contradiction) int {
	size := rowBytes
	for _, s := range c.Steps {
		size += rowBytes + len(s.From) + len(s.To) + exampleBytes(s.Example)
	}
	return size
}

func orderBytes(o order.Edge) int {
	size := rowBytes + len(o.From) + len(o.To)
	for _, x := range o.Examples {
		size += exampleBytes(x)
	}
	return size
}

func deadlockBytes(d view.Deadlock) int {
	size := rowBytes + textBytes(d.Refused.Holder) + cycleBytes(d.Cycle)
	for _, c := range d.Refused.Claims {
		size += len(c.Name) + 3
	}
	return size
}
