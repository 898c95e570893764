package view

import (
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/quota"
)

// tally counts what limits apply to.
type tally struct {
	places   int // entries in queues
	holding  int // claims of entries that hold
	waiting  int
	sets     int
	metadata int // bytes that clients choose: metadata, holder, callback URL
	renewed  int // renewals an hour that the waiting entries need
}

// tallyOf returns what a holding or waiting entry counts, or one that will hold all or some of its
// locks.
func tallyOf(e *lock.Entry, holds bool) tally {
	t := tally{places: len(e.Claims)}
	// an unnamed holder is the token's subject, which the tenant does not choose here
	if e.Named {
		t.metadata += len(e.Holder)
	}
	if e.Callback != nil {
		t.metadata += len(e.Callback.URL)
	}
	for key, value := range e.Metadata {
		t.metadata += len(key) + len(value)
	}
	if e.Set {
		t.sets = 1
	}
	switch {
	case holds && e.Choosing():
		t.holding = e.Any
	case holds:
		t.holding = len(e.Claims)
	default:
		t.waiting, t.renewed = 1, renewals(e)
	}
	return t
}

// renewals returns how often in an hour the replicas renew a waiting entry.
func renewals(e *lock.Entry) int {
	if !e.Async {
		return 0
	}
	return int(time.Hour * 16 / 5 / e.TTL)
}

func (t *tally) add(more tally) {
	t.places += more.places
	t.holding += more.holding
	t.waiting += more.waiting
	t.sets += more.sets
	t.metadata += more.metadata
	t.renewed += more.renewed
}

func (t *tally) take(less tally) {
	t.add(tally{-less.places, -less.holding, -less.waiting, -less.sets, -less.metadata, -less.renewed})
}

// granted moves entries from waiting to holding.
func (a *account) granted(all []*lock.Entry) {
	for _, g := range all {
		a.take(tallyOf(g, false))
		a.add(tallyOf(g, true))
	}
}

// Quotas compares tenants' entries with their limits. It holds the entries that this replica is
// writing and that the view does not show yet. They count as if it did; otherwise a burst would
// pass the limit before the view shows the first entry.
type Quotas struct {
	base
	queues  *Queues
	entries map[lock.ID]expected
	flights map[lock.Ref]flight
}

// expected is what an in-flight entry counts.
type expected struct {
	entry   *lock.Entry
	tally   tally
	written bool // the feed will bring it, or the next list settles it
}

// flight is what is being written for one queue.
type flight struct {
	all     int // entries
	alone   int // exclusive entries among them
	permits int // that they take
	waits   int // entries among them that will have to wait
}

func newQuotas(shared base, q *Queues) Quotas {
	return Quotas{
		base: shared, queues: q, entries: map[lock.ID]expected{}, flights: map[lock.Ref]flight{},
	}
}

// Reserve counts e against its tenant's limits, before its write, until the view has it or
// [Quotas.Unreserve] is called. If the tenant is at a limit, Reserve returns the error. It does
// not count what other replicas are writing.
func (v *Quotas) Reserve(e *lock.Entry) error {
	if e.Tenant == lock.OwnTenant {
		return nil
	}
	limits := v.Limits(e.Tenant)
	v.mu.Lock()
	defer v.mu.Unlock()
	if x, known := v.entries[e.ID]; known { // another request with the same idempotency key
		if x.entry.Request != e.Request {
			return lock.Errorf(
				lock.IdempotencyMismatch, "the idempotency key is in use with other parameters; "+
					"repeat those, or use a new key",
			)
		}
		return nil
	}
	if seen, _ := v.queues.table.Entry(e.ID); seen != nil && seen.Request == e.Request {
		return nil // already counted
	}
	holds := v.wouldHold(e)
	if err := v.exceeds(e, tallyOf(e, holds), limits); err != nil {
		return err
	}
	v.expect(e, tallyOf(e, holds))
	return nil
}

// Written reports whether an entry with a new id holds after its write: a view with all earlier
// entries shows none in front of it. The entry stays counted as in [Quotas.Reserve] until the view
// has it.
func (v *Quotas) Written(e *lock.Entry) (holds bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	at := v.queues.progress
	if at.number >= e.Number {
		_, holds = v.queues.table.Entry(e.ID)
		return holds
	}
	if !at.current || at.number != e.Number-1 || e.Choosing() || !v.queues.table.Admits(e) {
		return false
	}
	if x, known := v.entries[e.ID]; known {
		x.written = true
		v.entries[e.ID] = x
	}
	return true
}

// relist ends the counting of written entries: the list has them, or the feed soon brings them.
func (v *Quotas) relist() {
	for id, x := range v.entries {
		if x.written {
			v.arrived(id)
			v.queues.accounts.close(v.queues.accounts.of(x.entry.Tenant))
		}
	}
}

// Unreserve ends what [Quotas.Reserve] began, for an entry that was not written or is not in the
// view.
func (v *Quotas) Unreserve(e *lock.Entry) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if x, known := v.entries[e.ID]; known && x.entry == e && !x.written {
		v.arrived(e.ID)
		if a := v.queues.accounts[e.Tenant]; a != nil {
			v.queues.accounts.close(a)
		}
	}
}

// exceeds returns which limit of its tenant an entry exceeds, or nil.
func (v *Quotas) exceeds(e *lock.Entry, more tally, limits *quota.Limits) error {
	if e.Tries() {
		more.waiting = 0 // it does not stay
	}
	has := v.queues.accounts.counts(e.Tenant)
	used, asked := has.used(), more.used()
	has.add(more)
	after := has.used()
	for _, l := range [...]quota.Limit{
		quota.Places, quota.HeldLocks, quota.Waiting, quota.Sets, quota.MetadataBytes,
		quota.AsyncRenewals,
	} {
		if after[l] > limits[l] && asked[l] > 0 {
			return limits.Exceeded(l, used[l])
		}
	}
	if more.waiting == 0 {
		return nil
	}
	for _, c := range e.Claims {
		r := lock.Ref{Tenant: e.Tenant, Name: c.Name}
		_, waiting := v.queues.inQueue(r)
		if n := waiting + v.flights[r].waits; n >= limits[quota.WaitingPerLock] {
			return limits.Exceeded(quota.WaitingPerLock, n)
		}
	}
	return nil
}

// counts returns a tenant's tally, including entries in flight.
func (all accounts) counts(tenant string) tally {
	a := all[tenant]
	if a == nil {
		return tally{}
	}
	has := a.tally
	has.add(a.pending)
	return has
}

// used converts a tally for comparison with limits.
func (t *tally) used() (used quota.Limits) {
	used[quota.Places], used[quota.HeldLocks], used[quota.Waiting] = t.places, t.holding, t.waiting
	used[quota.Sets], used[quota.MetadataBytes] = t.sets, t.metadata
	used[quota.AsyncRenewals] = (t.renewed + 3599) / 3600
	return used
}

// wouldHold reports whether an entry will hold at once, if all in-flight entries are written in
// the order of their requests.
func (v *Quotas) wouldHold(e *lock.Entry) bool {
	if !v.queues.table.Admits(e) {
		return false
	}
	for _, c := range e.Claims {
		r := lock.Ref{Tenant: e.Tenant, Name: c.Name}
		f := v.flights[r]
		switch {
		case f.all == 0:
		case c.Mode == lock.Semaphore:
			taken := f.permits
			if q := v.queues.table.Queue(r); q != nil {
				taken += q.Taken()
			}
			if taken+c.Permits > c.Limit {
				return false
			}
		case c.Mode == lock.Exclusive || f.alone > 0:
			return false
		}
	}
	return true
}

// expect counts an entry that is being written.
func (v *Quotas) expect(e *lock.Entry, more tally) {
	v.entries[e.ID] = expected{entry: e, tally: more}
	v.queues.accounts.of(e.Tenant).pending.add(more)
	for _, c := range e.Claims {
		v.note(lock.Ref{Tenant: e.Tenant, Name: c.Name}, c, more.waiting, 1)
	}
}

// arrived stops counting an entry. A caller that leaves an empty account must close it.
func (v *Quotas) arrived(id lock.ID) {
	x, known := v.entries[id]
	if !known {
		return
	}
	delete(v.entries, id)
	v.queues.accounts.of(x.entry.Tenant).pending.take(x.tally)
	for _, c := range x.entry.Claims {
		v.note(lock.Ref{Tenant: x.entry.Tenant, Name: c.Name}, c, x.tally.waiting, -1)
	}
}

func (v *Quotas) note(r lock.Ref, c lock.Claim, waits, by int) {
	f := v.flights[r]
	f.all += by
	f.permits += by * c.Permits
	f.waits += by * waits
	if c.Mode == lock.Exclusive {
		f.alone += by
	}
	if f == (flight{}) {
		delete(v.flights, r)
	} else {
		v.flights[r] = f
	}
}

// Account is what a tenant counts against its limits, by this view.
type Account struct {
	Used   quota.Limits // as far as the view counts it
	Limits quota.Limits
}

// AccountOf returns what a tenant counts against its limits.
func (v *Quotas) AccountOf(tenant string) Account {
	limits := v.Limits(tenant)
	v.mu.RLock()
	defer v.mu.RUnlock()
	has := v.queues.accounts.counts(tenant)
	return Account{Used: has.used(), Limits: *limits}
}
