package service

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service/view"
)

// refuse rejects a request without a write, if earlier entries block it and it must not queue.
// That is so for a try, for a lock in use in another mode, and for a wait that would close a
// cycle.
//
// The view may be stale, so it must first reach a number read after the request came in.
// Otherwise a client that just released the lock at another replica would learn here that the
// lock is held. The join itself detects what changes between this check and the write.
func (s *Service) refuse(ctx context.Context, e *lock.Entry) error {
	if s.view.Rejections.RefusalOf(e) == nil {
		return nil
	}
	number, err := s.Store.Newest(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, s.FeedTimeout)
	defer cancel()
	if err := s.view.Progress.Await(ctx, number); err != nil {
		return nil // joining the queue will show it
	}
	err = s.view.Rejections.Refuse(e)
	if errors.Is(err, lock.Deadlock) {
		s.Metrics.Deadlocked(ctx)
	}
	return err
}

// refuseOrRejoin answers a request that found the lock taken or its tenant over quota. If an
// earlier request with the same idempotency key has taken the lock meanwhile, it joins that
// request's entry instead.
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

// errTimedOut returns the error for a wait that is over.
func errTimedOut() error {
	return &lock.Error{
		Code: lock.TimedOut, Detail: "others were in front for all of wait_seconds, and the request " +
			"left the queue; retry or wait longer",
		RetryAfter: time.Second,
	}
}

func errIdempotencyMismatch() error {
	return lock.Errorf(
		lock.IdempotencyMismatch, "the idempotency key was used before with other parameters; "+
			"repeat those, or use a new key",
	)
}

// refusal adds the blocking holders to an error.
func (s *Service) refusal(ctx context.Context, e *lock.Entry, err error) (*Grant, error) {
	why, is := errors.AsType[*lock.Error](err)
	if !is || why.Code != lock.Held && why.Code != lock.TimedOut {
		return nil, err
	}
	g, asks := &Grant{Entry: e}, askedPerRefusal
	for _, c := range e.Claims {
		q := s.view.Lists.Queue(
			lock.Ref{Tenant: e.Tenant, Name: c.Name}, e.ID, max(1, view.MaxShownHolders/len(e.Claims)), 0,
		)
		s.Locks.addExpiries(ctx, q.Holders, asks)
		asks = max(0, asks-len(q.Holders))
		b := Busy{Name: c.Name, Holders: q.Holders, Waiters: q.Waiting}
		switch {
		case !e.Set:
			g.Holders, g.Waiters = b.Holders, b.Waiters
		// an answer without holders still names the lock
		case len(b.Holders) > 0 || b.Waiters > 0:
			g.Busy = append(g.Busy, b)
		}
	}
	return g, s.comeAgain(g, *why)
}

// After a refusal, Retry-After is between shortestRetry and longestRetry.
const (
	shortestRetry = time.Second
	longestRetry  = 30 * time.Second
)

// comeAgain returns the refusal with the time until the earliest known end of a holder's lease.
// It adds up to a quarter of that time, so that rejected clients do not all retry at once.
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

// refuseOrRejoinWhenSettled is [Service.refuseOrRejoin] for a refusal that does not depend on the
// queue. It waits for the view first, because that may not show the entry of an earlier request
// with the key yet.
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
