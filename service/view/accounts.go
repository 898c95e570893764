package view

import (
	"container/list"
	"fmt"
	"strings"
	"time"

	"github.com/google/btree"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/lock/heap"
)

// maxPlaces is how many places in queues one tenant's entries may take, by the view of
// the replica that is asked: it bounds memory, and is not exact.
const maxPlaces = 200_000

// maxRenewals is how many renewals a second one tenant's async entries may need while they
// wait: of 11,000 with a lease of 30 s. It bounds the load of the store, and is not exact.
const maxRenewals = 1250

// account is what the view keeps for one tenant, beside the entries themselves, so
// that everything that a tenant can make grow has a bound of its own.
type account struct {
	tenant  string
	places  int    // of its entries in queues
	renewed int    // renewals an hour that its async entries need while they wait
	asks    int    // of its entries that wait
	waiting int    // of its entries
	holding int    // of its claims, those of entries that hold
	counted [2]int // of those who wait and hold, in the series

	uses  map[string]use // of the locks in use, by name
	names [allUses]*btree.BTreeG[string]

	ends    share
	chunks  []*chunk // of ends, the oldest first
	figures share
	recent  *list.List // of *usage, the lock used last first

	rings limiter // lines about contradicting orders
}

// use is how a lock is used, as a set of bits.
type use uint8

// The ways in which a lock is used. Each has an index of names.
const (
	inUse     = iota // there is somebody
	isHeld           // somebody holds
	contended        // somebody waits
	allUses
)

// accounts are those of all tenants that have anything. It is not safe for
// concurrent use.
type accounts map[string]*account

// of returns the tenant's account and makes it if need be. Whoever does not
// charge it with anything must close it.
func (all accounts) of(tenant string) *account {
	a := all[tenant]
	if a == nil {
		a = &account{tenant: tenant, uses: map[string]use{}, recent: list.New()}
		a.ends.of, a.figures.of = a, a
		all[tenant] = a
	}
	return a
}

// close forgets the account if there is nothing left in it.
func (all accounts) close(a *account) {
	if a.places == 0 && len(a.uses) == 0 && a.ends.size == 0 && a.figures.size == 0 {
		delete(all, a.tenant)
	}
}

// empty takes all entries out of the accounts, before they are counted anew.
func (all accounts) empty() {
	for _, a := range all {
		a.places, a.renewed, a.asks, a.waiting, a.holding, a.uses, a.names = 0, 0, 0, 0, 0, map[string]use{}, [allUses]*btree.BTreeG[string]{}
		all.close(a)
	}
}

// Room returns why e, which was not written yet, must not be: its tenant has no place
// left, or has the replicas renew too much.
func (v *View) Room(e *lock.Entry) error {
	v.mu.RLock()
	defer v.mu.RUnlock()
	full := func(format string, args ...any) error {
		return &lock.Error{Code: lock.QuotaExceeded, RetryAfter: time.Second, Detail: fmt.Sprintf(format, args...)}
	}
	switch a := v.accounts[e.Tenant]; {
	case a == nil:
		return nil
	case a.places+len(e.Claims) > v.MaxPlaces:
		return full("the tenant's entries take %d places in queues, and more are not kept", v.MaxPlaces)
	case e.Async && a.renewed+renewals(e) > v.MaxRenewals*3600:
		return full("the tenant's async entries need %d renewals a second, and more are not made; longer leases need fewer", v.MaxRenewals)
	}
	return nil
}

// renewals is how often in an hour the replicas renew an entry while it waits.
func renewals(e *lock.Entry) int {
	if !e.Async {
		return 0
	}
	return int(time.Hour * 16 / 5 / e.TTL)
}

// left notes that e is gone, which held or waited.
func (a *account) left(e *lock.Entry, held bool) {
	if held {
		a.holding -= len(e.Claims)
	} else {
		a.waiting--
		a.renewed -= renewals(e)
	}
}

// granted notes that entries which waited came to hold.
func (a *account) granted(all []*lock.Entry) {
	a.waiting -= len(all)
	for _, g := range all {
		a.holding += len(g.Claims)
		a.renewed -= renewals(g)
	}
}

// note keeps the indexes right after the lock's queue has changed; nil stands for
// one that is empty. It reports whether anybody waits, or did before.
func (a *account) note(name string, q *lock.Queue) bool {
	var now use
	if q != nil {
		now = 1 << inUse
		if q.Holders() > 0 {
			now |= 1 << isHeld
		}
		if q.Len() > q.Holders() {
			now |= 1 << contended
		}
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

// after yields the names of locks used in the way, in byte order: those that start
// with prefix and come after the given one. So a page of a list costs its own
// length.
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

// share is how much of something bounded one tenant has.
type share struct {
	heap.Place // among the shares, if size is not 0
	of         *account
	size       int
}

// Before has the largest in front.
func (s *share) Before(other *share) bool { return s.size > other.size }

// shares are all tenants' shares of one thing. Where there is no room, whoever has
// most gives way: nobody can push out those who have less.
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

// limiter lets one thing through in a while and counts the others.
type limiter struct {
	last   time.Time
	passed uint64 // over, since then
}

// pass reports whether it is time again, and how many were passed over since the
// last.
func (l *limiter) pass(now time.Time, every time.Duration) (silenced uint64, ok bool) {
	if !l.last.IsZero() && now.Sub(l.last) < every {
		l.passed++
		return 0, false
	}
	silenced, l.passed, l.last = l.passed, 0, now
	return silenced, true
}

// Account is what of a tenant counts against its bounds, by this view.
type Account struct {
	Places, MaxPlaces     int // of its entries in queues
	Renewals, MaxRenewals int // a second, of its async entries while they wait
	Asks                  int // entries that ask others to finish
}

// AccountOf returns what of a tenant counts against its bounds.
func (v *View) AccountOf(tenant string) Account {
	v.mu.RLock()
	defer v.mu.RUnlock()
	out := Account{MaxPlaces: v.MaxPlaces, MaxRenewals: v.MaxRenewals}
	if a := v.accounts[tenant]; a != nil {
		out.Places, out.Renewals, out.Asks = a.places, (a.renewed+3599)/3600, a.asks
	}
	return out
}
