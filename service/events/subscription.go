package events

import (
	"fmt"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/quota"
)

const (
	strange    = -1       // no log has this life
	batchBytes = 64 << 10 // roughly how much one read returns
	retryAfter = 5 * time.Second
)

// Request asks for a [Subscription].
type Request struct {
	Of     string        // the tenant whose limit on subscriptions applies
	Tenant string        // the tenant whose events to send; "" is all
	After  *lock.EventID // resume after it; nil starts with new events

	Strange bool // After is not part of the store's present history: start with all kept events
}

// Missed describes what a follower missed: everything after one event and before the other. The
// follower continues with the latter.
type Missed struct {
	After, Before lock.EventID
	Until         time.Time // no later than the last missed event; zero if unknown
}

// Backwards reports whether numbers went back: the next events belong to another history.
func (m *Missed) Backwards() bool { return m.Before.Compare(m.After) < 0 }

// Subscription follows the events of a tenant, or of all. It is for one goroutine.
type Subscription struct {
	log  *Log
	req  Request
	ring *ring
	life int
	at   lock.EventID // everything up to it was sent
	past lock.EventID // everything up to it happened before the subscription

	closed bool
}

// Subscribe starts to follow. The subscription must be closed. Errors: quota_exceeded if the
// tenant has too many, overloaded if there are too many in all, store_unavailable if the log has
// not begun.
func (l *Log) Subscribe(req Request) (*Subscription, error) {
	limits := l.cfg.Limits(req.Of)
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.began {
		return nil, &lock.Error{
			Code:       lock.StoreUnavailable,
			Detail:     "this replica has not seen the store's locks yet; retry, here or at another",
			RetryAfter: time.Second,
		}
	}
	if err := l.places.take(req.Of, limits, l.cfg.Subscriptions); err != nil {
		return nil, err
	}
	s := &Subscription{
		log: l, req: req, life: l.life, at: lock.Before(l.filed + 1), past: lock.Before(l.filed + 1),
		ring: l.all,
	}
	if req.After != nil {
		s.at = *req.After
	}
	if req.Strange ||
		req.After != nil && req.After.Number <= l.lost { // such an id is ambiguous between two histories
		s.life = strange
	}
	if req.Tenant != "" {
		s.ring = l.of(req.Tenant)
	}
	s.ring.followers++
	return s, nil
}

// Close ends the subscription. Calling it again is safe.
func (s *Subscription) Close() {
	l := s.log
	l.mu.Lock()
	defer l.mu.Unlock()
	if s.closed {
		return
	}
	s.closed = true
	l.places.give(s.req.Of)
	s.ring.followers--
	if s.req.Tenant != "" {
		l.release(s.req.Tenant, s.ring)
	}
}

// Filed returns the number up to which the log has all events.
func (l *Log) Filed() uint64 {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.filed
}

// Next returns the following events that fit into buffer, or what is missed before them. If
// there are none, more is closed when there may be some.
func (s *Subscription) Next(
	buffer []*Record,
) (given []*Record, missed *Missed, more <-chan struct{}) {
	l := s.log
	l.mu.RLock()
	defer l.mu.RUnlock()
	if s.life != l.life {
		s.life = l.life
		return nil, s.miss(s.at, s.start()), nil
	}
	if start := s.start(); s.at.Compare(start.EventID) < 0 {
		return nil, s.miss(s.at, start), nil
	}
	rest, ahead := s.ring.after(s.at), l.gapAfter(s.at)
	given = buffer[:0]
	for bytes := 0; len(given) < min(len(rest), cap(buffer)) && bytes < batchBytes; {
		rec := rest[len(given)]
		if ahead != nil && rec.ID.Compare(ahead.before.EventID) > 0 {
			break
		}
		given, bytes = append(given, rec), bytes+rec.size
	}
	switch {
	case len(given) > 0:
		s.at = given[len(given)-1].ID
		return given, nil, nil
	case ahead != nil:
		return nil, s.miss(s.at.Later(ahead.after), ahead.before), nil
	}
	s.at = s.at.Later(lock.Before(l.filed + 1))
	return nil, nil, s.ring.grown
}

// Past reports whether the next events happened before the subscription began.
func (s *Subscription) Past() bool { return s.at.Compare(s.past) < 0 }

// Spacing returns how long a follower waits after it received events: 0 with few followers.
// Sending has the same cost for one event as for many.
func (s *Subscription) Spacing() time.Duration {
	l := s.log
	l.mu.RLock()
	defer l.mu.RUnlock()
	spacing := time.Duration(l.places.all) * time.Second / time.Duration(l.cfg.Tellings)
	if spacing <= pace {
		return 0
	}
	return spacing
}

// At returns the id up to which everything was sent.
func (s *Subscription) At() lock.EventID { return s.at }

func (s *Subscription) miss(after lock.EventID, before edge) *Missed {
	s.at = before.EventID
	return &Missed{After: after, Before: before.EventID, Until: before.at}
}

// start returns where the kept events begin.
func (s *Subscription) start() edge { return s.ring.floor.later(s.log.start) }

// gapAfter returns the first gap that ends after an event, or nil.
func (l *Log) gapAfter(id lock.EventID) *gap {
	for i := range l.gaps {
		if l.gaps[i].before.Compare(id) > 0 {
			return &l.gaps[i]
		}
	}
	return nil
}

// places counts subscriptions.
type places struct {
	all      int
	byTenant map[string]int
}

func (p *places) take(tenant string, limits *quota.Limits, inAll int) error {
	switch n := p.byTenant[tenant]; {
	case n >= limits[quota.EventStreams]:
		err := limits.Exceeded(quota.EventStreams, n)
		err.RetryAfter = retryAfter
		return err
	// webhooks do not stop when there are many followers
	case p.all >= inAll && tenant != lock.OwnTenant:
		return &lock.Error{
			Code: lock.Overloaded, RetryAfter: retryAfter,
			Detail: fmt.Sprintf("%d follow events at this replica; try another", inAll),
		}
	}
	p.all++
	p.byTenant[tenant]++
	return nil
}

func (p *places) give(tenant string) {
	p.all--
	if p.byTenant[tenant]--; p.byTenant[tenant] == 0 {
		delete(p.byTenant, tenant)
	}
}

// Subscriptions returns how many a tenant has.
func (l *Log) Subscriptions(tenant string) int {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.places.byTenant[tenant]
}
