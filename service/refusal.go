package service

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service/view"
)

// refuse answers a request without a write, if others are in its way and it does
// not want to queue, or must not: the lock is in use in another mode, or to wait
// would close a cycle. The view may be late, so before it is believed it must
// reach a number read after the request came in: somebody who just released the
// lock elsewhere and tries it here must not be told that it is held.
//
// What comes between this and the write is noticed when the entry joins.
func (s *Service) refuse(ctx context.Context, e *lock.Entry) error {
	if s.view.RefusalOf(e) == nil {
		return nil
	}
	number, err := s.Store.Newest(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, s.FeedTimeout)
	defer cancel()
	if err := s.view.Await(ctx, number); err != nil {
		return nil // the queue itself will tell
	}
	err = s.view.Refuse(e)
	if errors.Is(err, lock.Deadlock) {
		s.Metrics.Deadlocked(ctx)
	}
	return err
}

// refuseOrRejoin answers a request that found others in its way, or no room, unless it
// was an earlier request with the same idempotency key that took the lock meanwhile.
func (s *Service) refuseOrRejoin(
	ctx context.Context, e *lock.Entry, hold time.Duration, busy error,
) (*Grant, error) {
	if e.Resumable() {
		if g, err := s.rejoin(ctx, e, hold); g != nil || err != nil {
			return g, err
		}
	}
	return s.refusal(ctx, e, busy)
}

// errTimedOut is the answer to a request whose wait is over.
func errTimedOut() error {
	return &lock.Error{
		Code: lock.TimedOut, Detail: "others were in front for all of wait_seconds",
		RetryAfter: time.Second,
	}
}

func errIdempotencyMismatch() error {
	return lock.Errorf(
		lock.IdempotencyMismatch, "the idempotency key was used before with other parameters",
	)
}

// refusal adds to an error who is in the way.
func (s *Service) refusal(ctx context.Context, e *lock.Entry, err error) (*Grant, error) {
	why, is := errors.AsType[*lock.Error](err)
	if !is || why.Code != lock.Held && why.Code != lock.TimedOut {
		return nil, err
	}
	g, asks := &Grant{Entry: e}, askedPerRefusal
	for _, c := range e.Claims {
		q := s.view.Queue(
			lock.Ref{Tenant: e.Tenant, Name: c.Name}, e.ID, max(1, view.MaxShownHolders/len(e.Claims)), 0,
		)
		s.addExpiries(ctx, q.Holders, asks)
		asks = max(0, asks-len(q.Holders))
		b := Busy{Name: c.Name, Holders: q.Holders, Waiters: q.Waiting}
		switch {
		case !e.Set:
			g.Holders, g.Waiters = b.Holders, b.Waiters
		// an answer may do without the holders, and names the lock all the same
		case len(b.Holders) > 0 || b.Waiters > 0:
			g.Busy = append(g.Busy, b)
		}
	}
	return g, s.comeAgain(g, *why)
}

// A client is asked to come again from shortestRetry to longestRetry after a refusal.
const (
	shortestRetry = time.Second
	longestRetry  = 30 * time.Second
)

// comeAgain returns the refusal with the time to the earliest end of a holder's lease, as far
// as it is known, and up to a quarter more, so that those who were refused do not all come
// at once.
func (s *Service) comeAgain(g *Grant, why lock.Error) error {
	earliest, now := time.Duration(0), s.Now()
	see := func(holders []view.Holder) {
		for _, h := range holders {
			if left := h.ExpiresAt.Sub(now); !h.ExpiresAt.IsZero() && (earliest == 0 || left < earliest) {
				earliest = max(left, 1)
			}
		}
	}
	see(g.Holders)
	for _, b := range g.Busy {
		see(b.Holders)
	}
	least := min(max(earliest, shortestRetry), longestRetry*4/5)
	why.RetryAfter = least + rand.N(least/4)
	return &why
}

// refuseOrRejoinWhenSettled is [Service.refuseOrRejoin] for a refusal that says nothing of the
// queue: the entry of an earlier request with the key may be there, and not be seen yet.
func (s *Service) refuseOrRejoinWhenSettled(
	ctx context.Context, e *lock.Entry, hold time.Duration, refused error,
) (*Grant, error) {
	if e.Resumable() {
		if err := s.settle(ctx, true); err != nil {
			return nil, err
		}
	}
	return s.refuseOrRejoin(ctx, e, hold, refused)
}
