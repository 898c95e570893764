package service

import (
	"context"
	"math"
	"sync"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service/figures"
	"github.com/fencepost/fencepost/service/view"
)

// Locks answers about locks from what this replica sees.
type Locks struct {
	*base
	expiries *expiries
	events   publisher
	started  time.Time
}

// LockView is a lock as this replica sees it.
type LockView struct {
	Name       string
	view.Queue // at most 100 holders, the first 10 with ExpiresAt, and 1000 waiters
	Figures    figures.Lock
	Advised    time.Duration // the TTL that its holds suggest, 0 with too few holds
	Closure    *lock.Closure // keeps new entries out; nil if the lock is open
	Asked      *view.Asked   // what waiters ask of the holders; nil if none asks
}

// longQueue is the number of entries from which reading a queue occupies a processor for a while.
const longQueue = 100

// Lock describes one lock. With consistent, it waits until the view has every write before the
// call. Otherwise the view may be stale. Before the first view it returns
// [lock.StoreUnavailable]. It reads a long queue within long, which returns why it did not call
// its argument; with a nil long it reads at once.
func (x *Locks) Lock(
	ctx context.Context, r lock.Ref, consistent bool, long func(read func()) error,
) (*LockView, error) {
	ctx, span := x.span(ctx, "service.Lock")
	defer span.End()
	if err := x.settle(ctx, consistent); err != nil {
		return nil, err
	}
	var q view.Queue
	read := func() { q = x.view.Lists.Queue(r, "", view.MaxShownHolders, view.MaxShownWaiters) }
	if long == nil || x.view.Lists.Len(r) < longQueue {
		read()
	} else if err := long(read); err != nil {
		return nil, err
	}
	used := x.figures.Of(r)
	q.Newest = max(q.Newest, used.Newest)
	x.addExpiries(ctx, q.Holders, askedPerLook)
	return &LockView{
		Name: r.Name, Queue: q, Figures: used, Advised: x.advisedTTL(used),
		Closure: x.closed(r.Tenant, []lock.Claim{{Name: r.Name}}), Asked: x.view.AskedAt(r),
	}, nil
}

// ListRequest asks for a page of a tenant's locks.
type ListRequest struct {
	view.ListRequest
	Consistent bool // as for [Locks.Lock]

	// Enter waits until List may read the locks, which occupies a processor for a while, or returns
	// why it may not. List calls it last, after all other waits. With a nil Enter, List reads at
	// once.
	Enter func() error
}

// List returns a page of the tenant's locks, from a view as for [Locks.Lock], or the error of
// Enter.
func (x *Locks) List(ctx context.Context, req ListRequest) (*view.Page, error) {
	ctx, span := x.span(ctx, "service.List")
	defer span.End()
	if err := x.settle(ctx, req.Consistent); err != nil {
		return nil, err
	}
	if req.Enter != nil {
		if err := req.Enter(); err != nil {
			return nil, err
		}
	}
	page := &view.Page{Locks: []view.Summary{}}
	for last, more := req.After, true; more; {
		last, more = x.view.Lists.List(req.ListRequest, last, page)
	}
	x.figures.Settle()
	for i := range page.Locks {
		is := &page.Locks[i]
		newest, _ := x.figures.Recent(lock.Ref{Tenant: req.Tenant, Name: is.Name}, time.Time{})
		is.Newest = max(is.Newest, newest)
	}
	return page, nil
}

// addExpiries adds the ends of leases, as the store knows them, to the first most holders.
func (x *Locks) addExpiries(ctx context.Context, holders []view.Holder, most int) {
	var asks sync.WaitGroup
	for i := range holders[:min(len(holders), most)] {
		asks.Go(func() { holders[i].ExpiresAt = x.expiries.of(ctx, holders[i].Entry, x.Store.Remaining) })
	}
	asks.Wait()
}

// advisedTTL returns twice the hold time that one hold in a hundred exceeds, in whole seconds,
// within the bounds. That is long enough for a holder that never renews, and short enough to
// notice a dead one. It returns 0 with too few holds.
func (x *Locks) advisedTTL(f figures.Lock) time.Duration {
	usual := f.UsualHold()
	if usual == 0 {
		return 0
	}
	ttl := time.Duration(math.Ceil(2*usual.Seconds())) * time.Second
	return min(max(ttl, x.MinTTL), x.MaxTTL)
}

// Count returns how many entries of all tenants hold and wait, by the mode of their first claim,
// and how long the oldest waiter has waited. The map is nil until this replica has its first view
// of the store.
func (x *Locks) Count() (byMode map[lock.Mode]lock.Counts, oldest time.Duration) {
	return x.view.Queues.Count()
}

// Deepest returns the number of waiters of the lock with most waiters, of all tenants but the
// replicas' own.
func (x *Locks) Deepest() int { return x.view.Lists.Deepest() }

// Totals count what this replica saw happen since it started.
type Totals struct {
	view.Totals
	Contradicted  uint64 // contradictions between orders of locks
	EventsDropped uint64 // that came faster than the log took them
}

// Totals returns what this replica has counted so far.
func (x *Locks) Totals() Totals {
	return Totals{x.view.Totals(), x.figures.Contradicted(), x.events.dropped.Load()}
}

// Revision returns the store's number up to which this replica has seen everything, or 0 before
// its first view.
func (x *Locks) Revision() uint64 { return x.view.Progress.Number() }

// Started returns when this replica started to follow the feed.
func (x *Locks) Started() time.Time { return x.started }

// LockOrder returns the orders in which named holders take locks, and their contradictions, as
// this replica has learnt them. tenant "" is all.
func (x *Locks) LockOrder(tenant string, limit int) figures.OrderReport {
	return x.figures.LockOrder(tenant, limit)
}

// Deadlocks returns the latest rejected cycles, the newest first. tenant "" is all.
func (x *Locks) Deadlocks(tenant string, limit int) []view.Deadlock {
	return x.view.Rejections.Deadlocks(tenant, limit)
}
