package service

import (
	"strings"

	"github.com/fencepost/fencepost/lock"
)

// maxSets is of how many sets that expired the locks are known, of all tenants: those that expired last.
// They take some 7 MB at most.
const maxSets = 1000

// expiredSets are what locks the sets had that expired: their tokens do not say. Where there are too many,
// the tenant with most gives way.
type expiredSets struct {
	byID  map[lock.ID]*expiredSet
	share tenantLists[*expiredSet]
}

// expiredSet is what is known of a set that expired.
type expiredSet struct {
	id     lock.ID
	number uint64
	names  []string // of its locks
	listed *listed[*expiredSet]
}

func newExpiredSets() expiredSets {
	return expiredSets{byID: map[lock.ID]*expiredSet{}, share: newTenantLists[*expiredSet]()}
}

// add keeps what a set had that has just ended, and nothing of what it was read from.
func (x *expiredSets) add(e *lock.Entry) {
	x.remove(x.byID[e.ID]) // of the same idempotency key
	set := &expiredSet{id: lock.ID(strings.Clone(string(e.ID))), number: e.Number, names: make([]string, 0, len(e.Claims))}
	for _, c := range e.Claims {
		set.names = append(set.names, strings.Clone(c.Name))
	}
	set.listed = x.share.add(strings.Clone(e.Tenant), set)
	x.byID[set.id] = set
	if len(x.byID) > maxSets {
		x.remove(x.share.last())
	}
}

func (x *expiredSets) remove(set *expiredSet) {
	if set != nil {
		x.share.remove(set.listed)
		delete(x.byID, set.id)
	}
}

// locksOf returns the locks of a set; none if they are not known any more.
func (x *expiredSets) locksOf(id lock.ID, number uint64) (names []string) {
	if set := x.byID[id]; set != nil && set.number == number {
		return set.names
	}
	return nil
}
