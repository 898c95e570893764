package service

import (
	"context"
	"math"
	"sync"
	"time"

	"github.com/fencepost/fencepost/lock"
)

const (
	maxShownHolders = 100  // of one lock
	maxShownWaiters = 1000 // of one lock

	maxListedHolders = 2000 // on one page

	listChunk = 1000 // names looked at before the view is let go for a moment
)

// Waiter is somebody who waits for a lock, for people to see.
type Waiter struct {
	Entry    *lock.Entry
	Position int // 1 is next
	Waited   time.Duration
}

// LockView is a lock as this replica sees it.
type LockView struct {
	Name     string
	Holders  []Holder // the longest holding first; at most 100, the first 10 with ExpiresAt
	Waiters  []Waiter // in order; at most 1000
	Waiting  int      // how many wait in all
	Newest   uint64   // the newest fence, 0 if this replica saw none
	Figures  Figures
	Advised  time.Duration // the TTL that its holds suggest, 0 if there are too few
	Revision uint64        // the number up to which the view is complete
}

// Summary is a lock in a list.
type Summary struct {
	Name    string
	Holders []Holder // without ExpiresAt; at most 100
	Waiting int
	Newest  uint64
}

// Page is a part of a list, in byte order of the names.
type Page struct {
	Locks    []Summary
	Next     string // the last name of the page if there is more, otherwise ""
	Revision uint64

	holders int // on the page
}

// ListRequest asks for a page of the locks in use. A page has at most 2000 holders,
// even if that is fewer locks than Limit.
type ListRequest struct {
	Tenant string
	Prefix string
	State  string // "", "held" or "contended"
	Limit  int
	After  string            // the name after which the page starts
	May    func(string) bool // which names the caller may see; nil is all
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
	q := s.view.queue(r, "", maxShownHolders, maxShownWaiters)
	s.addExpiries(ctx, q.holders, askedPerLook)
	return &LockView{
		Name: r.Name, Holders: q.holders, Waiters: q.waiters, Waiting: q.waiting,
		Newest: q.newest, Figures: q.figures, Advised: s.advisedTTL(q.figures), Revision: q.revision,
	}, nil
}

// List returns a page of the tenant's locks, from a view as for [Service.Lock].
func (s *Service) List(ctx context.Context, req ListRequest, consistent bool) (*Page, error) {
	ctx, span := s.Tracer.Start(ctx, "service.List")
	defer span.End()
	if err := s.settle(ctx, consistent); err != nil {
		return nil, err
	}
	page := &Page{Locks: []Summary{}}
	for last, more := req.After, true; more; {
		last, more = s.view.list(req, last, page)
	}
	return page, nil
}

// settle waits for the view if the caller wants it current. An old view says of
// which number it is; one that never was would say that everything is free.
func (s *Service) settle(ctx context.Context, consistent bool) error {
	if !consistent {
		return s.view.missing()
	}
	number, err := s.Store.Newest(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	return s.view.await(ctx, number)
}

// addExpiries adds to the first holders, up to most of them, until when their leases
// last, as the store knows it.
func (s *Service) addExpiries(ctx context.Context, holders []Holder, most int) {
	var asks sync.WaitGroup
	for i := range holders[:min(len(holders), most)] {
		asks.Go(func() { holders[i].ExpiresAt = s.expiries.of(ctx, holders[i].Entry, s.Store.Remaining) })
	}
	asks.Wait()
}

// advisedTTL is twice the hold time that one in a hundred exceeds, in whole
// seconds within the bounds: long enough for a holder that never renews, short
// enough to notice a dead one. It needs some holds to go by.
func (s *Service) advisedTTL(f Figures) time.Duration {
	const enough = 10
	if f.Acquisitions < enough || f.Hold.P99 == 0 {
		return 0
	}
	ttl := time.Duration(math.Ceil(2*f.Hold.P99.Seconds())) * time.Second
	return min(max(ttl, s.MinTTL), s.MaxTTL)
}

// queueView is a queue as the view has it.
type queueView struct {
	holders  []Holder
	waiters  []Waiter
	waiting  int
	newest   uint64
	figures  Figures
	revision uint64
}

// queue reads a queue, without the entry that is leaving it, if there is one. It
// costs what it shows.
func (v *view) queue(r lock.Ref, leaving lock.ID, maxHolders, maxWaiters int) queueView {
	v.mu.RLock()
	defer v.mu.RUnlock()
	out := queueView{figures: v.figures.read(r), revision: v.number}
	out.newest = out.figures.Newest
	q := v.table.Queue(r)
	if q == nil {
		return out
	}
	out.newest = max(out.newest, q.NewestHolder(leaving))
	holding := q.Holders()
	out.waiting = q.Len() - holding
	if e, holds := v.table.Entry(leaving); holds {
		holding--
	} else if e != nil {
		out.waiting--
	}
	maxHolders, maxWaiters = min(maxHolders, holding), min(maxWaiters, out.waiting)
	for e, holds := range q.Entries() {
		switch {
		case len(out.holders) == maxHolders && len(out.waiters) == maxWaiters:
			return out
		case e.ID == leaving:
		case holds && len(out.holders) < maxHolders:
			out.holders = append(out.holders, Holder{Entry: e, Since: v.since[e.ID]})
		case !holds && len(out.waiters) < maxWaiters:
			out.waiters = append(out.waiters, Waiter{Entry: e, Position: len(out.waiters) + 1, Waited: v.waitedFor(e)})
		}
	}
	return out
}

// list adds locks to the page from the name after last on. It looks at a limited
// number of names, and returns where to go on and whether there is more to do.
func (v *view) list(req ListRequest, last string, page *Page) (string, bool) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	page.Revision = v.number
	seen, more := 0, false
	v.accounts.after(req.Tenant, req.way(), req.Prefix, last, func(name string) bool {
		if seen == listChunk {
			more = true
			return false
		}
		seen++
		sum, ok := v.summary(req, name)
		if !ok {
			last = name
			return true
		}
		if len(page.Locks) == req.Limit || page.holders+len(sum.Holders) > maxListedHolders {
			page.Next = page.Locks[len(page.Locks)-1].Name
			return false
		}
		last = name
		page.holders += len(sum.Holders)
		page.Locks = append(page.Locks, sum)
		return true
	})
	return last, more
}

// way is how the locks that the request asks for are used.
func (r ListRequest) way() int {
	switch r.State {
	case "held":
		return isHeld
	case "contended":
		return contended
	}
	return inUse
}

// summary describes a lock if the caller may see it.
func (v *view) summary(req ListRequest, name string) (Summary, bool) {
	if req.May != nil && !req.May(name) {
		return Summary{}, false
	}
	ref := lock.Ref{Tenant: req.Tenant, Name: name}
	q := v.table.Queue(ref)
	sum := Summary{Name: name, Newest: v.figures.newest(ref), Waiting: q.Len() - q.Holders()}
	for e, holds := range q.Entries() {
		if len(sum.Holders) == min(q.Holders(), maxShownHolders) {
			break
		}
		if holds { // others are of sets that still wait for another lock
			sum.Holders = append(sum.Holders, Holder{Entry: e, Since: v.since[e.ID]})
			sum.Newest = max(sum.Newest, e.Number)
		}
	}
	return sum, true
}
