package deadlock

import (
	"cmp"
	"slices"

	"github.com/fencepost/fencepost/lock"
)

// Rejection is why a waiting entry cannot stay in its queues: its claim disagrees with that of an
// earlier entry, it closed a cycle when it joined, or only the newest is to wait and it is not.
type Rejection struct {
	Clash   *lock.Claim
	Against *lock.Entry // the entry of Clash
	Cycle   []lock.Wait // if there is no clash
	Newer   *lock.Entry // the next one in a queue, if there is neither
}

// others returns the other entries that v depends on.
func (v *Rejection) others(e *lock.Entry) []*lock.Entry {
	if v.Clash != nil {
		return []*lock.Entry{v.Against}
	}
	var all []*lock.Entry
	for _, w := range v.Cycle {
		for _, other := range []*lock.Entry{w.Waiter, w.Blocker} {
			if other != e && !slices.Contains(all[max(0, len(all)-2):], other) {
				all = append(all, other)
			}
		}
	}
	return all
}

// loose reports whether v may become wrong while all its others exist: an entry that waits for a
// semaphore waits for many entries at once.
func (v *Rejection) loose() bool {
	return slices.ContainsFunc(v.Cycle, func(w lock.Wait) bool {
		for _, c := range w.Waiter.Claims {
			if c.Name == w.Lock {
				return c.Mode == lock.Semaphore
			}
		}
		return false
	})
}

// inOrder compares entries by number, and by id if one transaction wrote both.
func inOrder(a, b *lock.Entry) int {
	return cmp.Or(cmp.Compare(a.Number, b.Number), cmp.Compare(a.ID, b.ID))
}
