package view

import (
	"strings"

	"github.com/google/btree"

	"github.com/fencepost/fencepost/lock/heap"
)

// account is what the view keeps for one tenant besides the entries, so that everything that a
// tenant can grow has its own bound.
type account struct {
	tenant  string
	tally         // of its entries
	pending tally // of entries whose writes are in flight

	uses  map[string]use // of the locks in use, by name
	names [allUses]*btree.BTreeG[string]

	ends   share
	chunks []*chunk // of ends, the oldest first
}

// use is how a lock is used, as a set of bits.
type use uint8

// The ways in which a lock is used. Each has an index of names.
const (
	inUse     = iota // it has an entry
	isHeld           // an entry holds
	contended        // an entry waits
	allUses
)

// accounts holds an account for each tenant with data. It is not safe for concurrent use.
type accounts map[string]*account

// of returns the tenant's account, and makes it if needed. A caller that adds nothing to it must
// close it.
func (all accounts) of(tenant string) *account {
	a := all[tenant]
	if a == nil {
		a = &account{tenant: tenant, uses: map[string]use{}}
		a.ends.of = a
		all[tenant] = a
	}
	return a
}

// close removes an empty account.
func (all accounts) close(a *account) {
	if a.places == 0 && a.pending == (tally{}) && len(a.uses) == 0 && a.ends.size == 0 {
		delete(all, a.tenant)
	}
}

// empty removes all entries from the accounts, before they are counted again.
func (all accounts) empty() {
	for _, a := range all {
		a.tally, a.uses, a.names = tally{}, map[string]use{}, [allUses]*btree.BTreeG[string]{}
		all.close(a)
	}
}

// eachLevel calls set for each tenant, with its waiting entries and its held claims.
func (all accounts) eachLevel(set func(tenant string, waiting, holding int)) {
	for tenant, a := range all {
		set(tenant, a.waiting, a.holding)
	}
}

// note updates the indexes after a change of the lock's queue. It reports whether an entry waits,
// or waited before.
func (a *account) note(name string, holding, waiting int) bool {
	var now use
	if holding+waiting > 0 {
		now = 1 << inUse
	}
	if holding > 0 {
		now |= 1 << isHeld
	}
	if waiting > 0 {
		now |= 1 << contended
	}
	was := a.uses[name]
	waits := (was|now)&(1<<contended) != 0
	changed := was ^ now
	if changed == 0 {
		return waits
	}
	for i := range a.names {
		if changed&(1<<i) != 0 {
			a.index(i, name, now&(1<<i) != 0)
		}
	}
	if now == 0 {
		delete(a.uses, name)
	} else {
		a.uses[name] = now
	}
	return waits
}

func (a *account) index(i int, name string, add bool) {
	if a.names[i] == nil {
		a.names[i] = btree.NewOrderedG[string](32)
	}
	if add {
		a.names[i].ReplaceOrInsert(name)
	} else {
		a.names[i].Delete(name)
	}
}

// after yields the names of locks that are used in the given way, in byte order: those with the
// prefix that come after last. So a page costs only its own length.
func (all accounts) after(tenant string, way int, prefix, last string, yield func(string) bool) {
	a := all[tenant]
	if a == nil || a.names[way] == nil {
		return
	}
	a.names[way].AscendGreaterOrEqual(max(prefix, last), func(name string) bool {
		if !strings.HasPrefix(name, prefix) {
			return name < prefix
		}
		return name == last || yield(name)
	})
}

// share is one tenant's part of something bounded.
type share struct {
	heap.Place // among the shares, if size is not 0
	of         *account
	size       int
}

// Before puts the largest share in front.
func (s *share) Before(other *share) bool { return s.size > other.size }

// shares are all tenants' parts of one thing. If the space is full, the largest share shrinks, so
// no tenant can evict the data of a smaller one.
type shares struct {
	total int
	heap  heap.Heap[*share]
}

// change adds n, which may be negative, to a share.
func (all *shares) change(s *share, n int) {
	was := s.size
	s.size += n
	all.total += n
	switch {
	case was == 0 && s.size > 0:
		all.heap.Push(s)
	case was > 0 && s.size == 0:
		all.heap.Remove(s)
	case s.size > 0:
		all.heap.Fix(s)
	}
}

// largest returns the account with the largest share. There must be one.
func (all *shares) largest() *account { return all.heap.First().of }
