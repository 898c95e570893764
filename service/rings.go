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
	maxRingsToTell = 256                    // that wait to be told; more are not
	ringPause      = 100 * time.Millisecond // between two: each is a write
	ringTries      = 5
)

// ringQueue has the contradictions of orders that are yet to be told to all. Every replica
// finds them, and those give one the same id, so that the first who writes it tells it.
type ringQueue chan *order.Contradiction

func newRingQueue() ringQueue { return make(ringQueue, maxRingsToTell) }

// add takes a contradiction, unless there are too many. It does not block.
func (q ringQueue) add(c *order.Contradiction) {
	select {
	case q <- c:
	default: // it is still shown by LockOrder
	}
}

// tellRings writes what is found until ctx ends.
func (s *Service) tellRings(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case c := <-s.events.rings:
			s.tellRing(ctx, c)
		}
		if store.Pause(ctx, ringPause) != nil {
			return
		}
	}
}

func (s *Service) tellRing(ctx context.Context, c *order.Contradiction) {
	n := noticeOfRing(c)
	for range ringTries {
		err := s.Store.Notify(ctx, n, nil)
		if err == nil || errors.Is(err, lock.InvalidRequest) || store.Pause(ctx, s.spread(time.Second)) != nil {
			return
		}
	}
	s.Logger.Info("a contradiction of orders could not be told to those who follow", "tenant", c.Tenant)
}

func noticeOfRing(c *order.Contradiction) *lock.Notice {
	r := lock.OrderRing{Found: c.Found, Length: len(c.Steps)}
	for _, s := range c.Steps {
		r.Sides = append(r.Sides, lock.OrderSide{From: s.From, To: s.To, Holder: s.Holder, Held: s.Held, Taken: s.Taken, At: s.At})
	}
	return lock.NoticeOfRing(c.Tenant, "ring:"+c.ID(), r)
}
