package service

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/lock/order"
	"github.com/fencepost/fencepost/store"
)

const (
	maxContradictionsToTell = 256                    // that wait to be told; more are not
	contradictionPause      = 100 * time.Millisecond // between two: each is a write
	contradictionTries      = 5
)

// contradictionQueue has the contradictions of orders that are yet to be told to all. Every replica
// finds them, and those give one the same id, so that the first who writes it tells it. Tenants
// take turns; where there are too many, the one who has most gives way. It is safe for
// concurrent use.
type contradictionQueue struct {
	mu      sync.Mutex
	waiting store.Turns[*order.Contradiction]
	ready   chan struct{} // holds a value after the queue ceased to be empty
}

func newContradictionQueue() *contradictionQueue {
	return &contradictionQueue{ready: make(chan struct{}, 1)}
}

// add takes a contradiction, unless there is no room and nobody has two more than its tenant: it
// is shown by LockOrder all the same. It does not block.
func (q *contradictionQueue) add(c *order.Contradiction) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.waiting.Len() == maxContradictionsToTell && !q.waiting.Drop(q.waiting.Of(c.Tenant)+1) {
		return
	}
	q.waiting.Add(c.Tenant, c)
	select {
	case q.ready <- struct{}{}:
	default:
	}
}

// next returns the oldest of the tenant whose turn it is, nil if there is none.
func (q *contradictionQueue) next() *order.Contradiction {
	q.mu.Lock()
	defer q.mu.Unlock()
	c, _ := q.waiting.Next()
	return c
}

// tellContradictions writes what is found until ctx ends.
func (s *Service) tellContradictions(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.events.contradictions.ready:
		}
		for c := s.events.contradictions.next(); c != nil; c = s.events.contradictions.next() {
			s.tellContradiction(ctx, c)
			if store.Pause(ctx, contradictionPause) != nil {
				return
			}
		}
	}
}

func (s *Service) tellContradiction(ctx context.Context, c *order.Contradiction) {
	n := noticeOfContradiction(c)
	for range contradictionTries {
		err := s.Store.Notify(ctx, n, nil)
		if err == nil || errors.Is(err, lock.InvalidRequest) || store.Pause(ctx, s.spread(time.Second)) != nil {
			return
		}
	}
	s.Logger.Info("a contradiction of orders could not be told to those who follow", "tenant", c.Tenant)
}

func noticeOfContradiction(c *order.Contradiction) *lock.Notice {
	r := lock.OrderContradiction{Found: c.Found, Length: len(c.Steps)}
	for _, s := range c.Steps {
		r.Sides = append(r.Sides, lock.OrderSide{From: s.From, To: s.To, Holder: s.Holder, Held: s.Held, Taken: s.Taken, At: s.At})
	}
	return lock.NoticeOfContradiction(c.Tenant, "ring:"+c.ID(), r)
}
