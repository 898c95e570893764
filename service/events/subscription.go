package events

import (
	"fmt"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/quota"
)

const (
	strange    = -1       // the life of no log
	batchBytes = 64 << 10 // about how much a follower is given at once
	retryAfter = 5 * time.Second
)

// Request asks for a [Subscription].
type Request struct {
	Of     string        // the tenant whose subscription it is, among whose it counts
	Tenant string        // whose events; "" is all
	After  *lock.EventID // goes on after it; nil begins with what happens from now on

	Strange bool // After is not of the store's history as it is now: begin with all that is kept
}

// Missed says what a follower misses: what happened after the one event and before the
// other. It goes on with what comes then.
type Missed struct {
	After, Before lock.EventID
	Until         time.Time // when the last of it happened, or earlier; zero if unknown
}

// Backwards reports whether numbers went back: the next events are of another past.
func (m *Missed) Backwards() bool { return m.Before.Compare(m.After) < 0 }

// Subscription follows the events of a tenant, or of all. It is for one goroutine.
type Subscription struct {
	log  *Log
	req  Request
	ring *ring
	life int
	at   lock.EventID // everything up to it was given
	past lock.EventID // what came up to it happened before

	closed bool
}

// Subscribe begins to follow. It must be closed. Errors: quota_exceeded if the tenant has
// too many, overloaded if there are too many in all, store_unavailable if the log has not
// begun.
func (l *Log) Subscribe(req Request) (*Subscription, error) {
	limits := l.cfg.Limits(req.Of)
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.began {
		return nil, &lock.Error{
			Code:       lock.StoreUnavailable,
			Detail:     "this replica has not seen the store's locks yet",
			RetryAfter: time.Second,
		}
	}
	if err := l.places.take(req.Of, limits, l.cfg.Subscriptions); err != nil {
		return nil, err
	}
	s := &Subscription{
		log:  l,
		req:  req,
		life: l.life,
		at:   lock.Before(l.told + 1),
		past: lock.Before(l.told + 1),
		ring: l.all,
	}
	if req.After != nil {
		s.at = *req.After
	}
	if req.Strange ||
		req.After != nil && req.After.Number <= l.lost { // which names events of two pasts
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

// Told returns the number up to which the log has all events.
func (l *Log) Told() uint64 {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.told
}

// Next gives the events that follow, as many as fit into room, or says what is missed
// before them. If there is nothing, more is closed when there may be.
func (s *Subscription) Next(
	room []*Record,
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
	given = room[:0]
	for bytes := 0; len(given) < min(len(rest), cap(room)) && bytes < batchBytes; {
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
	s.at = s.at.Later(lock.Before(l.told + 1))
	return nil, nil, s.ring.grown
}

// Past reports whether what is given next happened before the subscription began.
func (s *Subscription) Past() bool { return s.at.Compare(s.past) < 0 }

// Spacing is how long a follower waits after it was given events, 0 if there are few followers:
// giving costs the same however many events it is.
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

// At returns up to where everything was given.
func (s *Subscription) At() lock.EventID { return s.at }

func (s *Subscription) miss(after lock.EventID, before edge) *Missed {
	s.at = before.EventID
	return &Missed{After: after, Before: before.EventID, Until: before.at}
}

// start is where what is kept begins.
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
	case p.all >= inAll && tenant != lock.OwnTenant: // webhooks do not stop because many follow
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
