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

// LockView is a lock as this replica sees it.
type LockView struct {
	Name       string
	view.Queue               // at most 100 holders, the first 10 with ExpiresAt, and 1000 waiters
	Advised    time.Duration // the TTL that its holds suggest, 0 if there are too few
	Closure    *lock.Closure // keeps new entries out; nil if the lock is open
	Asked      *view.Asked   // what waiters ask of the holders; nil if none asks
}

// Lock tells about one lock. consistent waits until the view has everything that
// happened before the call; without it the view may be old, but there must be one:
// before the first, it is [lock.StoreUnavailable].
func (s *Service) Lock(ctx context.Context, r lock.Ref, consistent bool) (*LockView, error) {
	ctx, span := s.Tracer.Start(ctx, "service.Lock")
	defer span.End()
	if err := s.settle(ctx, consistent); err != nil {
		return nil, err
	}
	q := s.view.Queue(r, "", view.MaxShownHolders, view.MaxShownWaiters)
	s.addExpiries(ctx, q.Holders, askedPerLook)
	return &LockView{
		Name: r.Name, Queue: q, Advised: s.advisedTTL(q.Figures),
		Closure: s.closed(r.Tenant, []lock.Claim{{Name: r.Name}}), Asked: s.view.AskedAt(r),
	}, nil
}

// ListRequest asks for a page of a tenant's locks.
type ListRequest struct {
	view.ListRequest
	Consistent bool // as for [Service.Lock]

	// Enter waits until the locks may be read, which takes a processor for a while, or returns why they
	// may not. List calls it when there is nothing else to wait for. Nil is that they may at once.
	Enter func() error
}

// List returns a page of the tenant's locks, from a view as for [Service.Lock], or the error of Enter.
func (s *Service) List(ctx context.Context, req ListRequest) (*view.Page, error) {
	ctx, span := s.Tracer.Start(ctx, "service.List")
	defer span.End()
	if err := s.settle(ctx, req.Consistent); err != nil {
		return nil, err
	}
	if req.Enter != nil {
		if err := req.Enter(); err != nil {
			return nil, err
		}
	}
	page := &view.Page{Locks: []view.Summary{}}
	for last, more := req.After, true; more; {
		last, more = s.view.List(req.ListRequest, last, page)
	}
	return page, nil
}

// settle waits for the view if the caller wants it current. An old view says of
// which number it is; one that never was would say that everything is free.
func (s *Service) settle(ctx context.Context, consistent bool) error {
	if !consistent {
		return s.view.Missing()
	}
	number, err := s.Store.Newest(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	return s.view.Await(ctx, number)
}

// addExpiries adds to the first holders, up to most of them, until when their leases
// last, as the store knows it.
func (s *Service) addExpiries(ctx context.Context, holders []view.Holder, most int) {
	var asks sync.WaitGroup
	for i := range holders[:min(len(holders), most)] {
		asks.Go(func() { holders[i].ExpiresAt = s.expiries.of(ctx, holders[i].Entry, s.Store.Remaining) })
	}
	asks.Wait()
}

// advisedTTL is twice the hold time that one in a hundred exceeds, in whole
// seconds within the bounds: long enough for a holder that never renews, short
// enough to notice a dead one. It needs some holds to go by.
func (s *Service) advisedTTL(f figures.Lock) time.Duration {
	const enough = 10
	if f.Acquisitions < enough || f.Hold.P99 == 0 {
		return 0
	}
	ttl := time.Duration(math.Ceil(2*f.Hold.P99.Seconds())) * time.Second
	return min(max(ttl, s.MinTTL), s.MaxTTL)
}
