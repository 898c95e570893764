package service

import (
	"context"
	"errors"
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

// contradictionQueue has the contradictions of orders that are yet to be told to all, the first
// first. Every replica finds them, and those give one the same id, so that the first that writes it
// tells it.
type contradictionQueue chan *order.Contradiction

func newContradictionQueue() contradictionQueue {
	return make(contradictionQueue, maxContradictionsToTell)
}

// add takes a contradiction, unless the queue is full: LockOrder shows it all the same.
func (q contradictionQueue) add(c *order.Contradiction) {
	select {
	case q <- c:
	default:
	}
}

// tellContradictions writes what is found until ctx ends.
func (s *Service) tellContradictions(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case c := <-s.events.contradictions:
			s.tellContradiction(ctx, c)
		}
		if store.Pause(ctx, contradictionPause) != nil {
			return
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
