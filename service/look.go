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
	Holders  []Holder // the longest holding first; at most 100
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
}

// ListRequest asks for a page of the locks in use.
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
	return &LockView{
		Name: r.Name, Holders: s.holders(ctx, q.holders), Waiters: q.waiters, Waiting: q.waiting,
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

// holders adds to each holder until when its lease lasts, as the store knows it.
func (s *Service) holders(ctx context.Context, holders []Holder) []Holder {
	var asks sync.WaitGroup
	for i := range holders {
		asks.Go(func() {
			start := time.Now()
			if left, err := s.Store.Remaining(ctx, holders[i].Entry); err == nil {
				holders[i].ExpiresAt = start.Add(left)
			}
		})
	}
	asks.Wait()
	return holders
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

// queue reads a queue, without the entry that is leaving it, if there is one.
func (v *view) queue(r lock.Ref, leaving lock.ID, maxHolders, maxWaiters int) queueView {
	now := time.Now()
	v.mu.RLock()
	defer v.mu.RUnlock()
	out := queueView{figures: v.figures.read(r), revision: v.number}
	out.newest = out.figures.Newest
	q := v.table.Queue(r)
	if q == nil {
		return out
	}
	for e, holds := range q.Entries() {
		switch {
		case e.ID == leaving:
		case holds:
			out.newest = max(out.newest, e.Number)
			if len(out.holders) < maxHolders {
				out.holders = append(out.holders, Holder{Entry: e, Since: v.since[e.ID]})
			}
		default:
			out.waiting++
			if len(out.waiters) < maxWaiters {
				out.waiters = append(out.waiters, Waiter{Entry: e, Position: out.waiting, Waited: now.Sub(e.EnqueuedAt)})
			}
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
	v.names.after(req.Tenant, req.Prefix, last, func(name string) bool {
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
		if len(page.Locks) == req.Limit {
			page.Next = page.Locks[len(page.Locks)-1].Name
			return false
		}
		last = name
		page.Locks = append(page.Locks, sum)
		return true
	})
	return last, more
}

// summary describes a lock if the request asks for it.
func (v *view) summary(req ListRequest, name string) (Summary, bool) {
	if req.May != nil && !req.May(name) {
		return Summary{}, false
	}
	ref := lock.Ref{Tenant: req.Tenant, Name: name}
	q := v.table.Queue(ref)
	sum := Summary{Name: name, Newest: v.figures.newest(ref), Waiting: q.Waiting()}
	left := q.Len() - q.Waiting()
	for e, holds := range q.Entries() {
		if left--; left < 0 {
			break
		}
		switch {
		case !holds: // of a set that still waits for another lock
			sum.Waiting++
		case len(sum.Holders) < maxShownHolders:
			sum.Holders = append(sum.Holders, Holder{Entry: e, Since: v.since[e.ID]})
			sum.Newest = max(sum.Newest, e.Number)
		}
	}
	switch req.State {
	case "held":
		return sum, len(sum.Holders) > 0
	case "contended":
		return sum, sum.Waiting > 0
	}
	return sum, true
}
