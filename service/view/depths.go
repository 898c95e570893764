package view

import "github.com/fencepost/fencepost/lock"

// depths are how many wait for each contended lock, so that the longest queue is known at once. It
// is not safe for concurrent use.
type depths struct {
	of    map[lock.Ref]int
	locks map[int]int // how many have a depth
	most  int
}

func newDepths() depths { return depths{of: map[lock.Ref]int{}, locks: map[int]int{}} }

// set notes how many wait for a lock. To find the next longest queue takes no more steps than
// there were joins.
func (d *depths) set(r lock.Ref, waiting int) {
	was := d.of[r]
	if was == waiting || r.Tenant == lock.OwnTenant {
		return
	}
	if d.locks[was]--; d.locks[was] <= 0 {
		delete(d.locks, was)
	}
	if waiting == 0 {
		delete(d.of, r)
	} else {
		d.of[r] = waiting
		d.locks[waiting]++
		d.most = max(d.most, waiting)
	}
	for d.most > 0 && d.locks[d.most] == 0 {
		d.most--
	}
}

// Deepest returns how many entries wait for the lock for which most do, of all tenants but the
// replicas' own.
func (v *View) Deepest() int {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.depths.most
}
