package service

import (
	"context"
	"errors"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service/view"
	"github.com/fencepost/fencepost/store"
)

const (
	// rollAfter is when another replica than the one that was asked tells who held when locks
	// were closed, and unsettledAfter when a closure is given up of which nobody knows.
	rollAfter      = 2 * time.Second
	unsettledAfter = 15 * time.Second

	// closureCheck is the longest time between two looks at the clock while a closure stands:
	// clocks are set.
	closureCheck = time.Minute
	closureRetry = time.Second
)

// tendClosures ends closures whose time is over, and finishes what another replica began. Every
// replica does, and each write is safe to repeat: none depends on another.
func (s *Service) tendClosures(ctx context.Context) {
	due := time.NewTimer(0)
	defer due.Stop()
	for {
		select {
		case <-s.view.ClosuresChanged():
		case <-due.C:
		case <-ctx.Done():
			return
		}
		select {
		case <-s.view.ClosuresChanged(): // both are one reason to look
		default:
		}
		if wait := s.tend(ctx); wait > 0 {
			due.Reset(wait)
		} else {
			due.Stop()
		}
	}
}

// tend does what is due, and returns after how long it has to be called again; 0 is when
// something changes.
func (s *Service) tend(ctx context.Context) (wait time.Duration) {
	soonest := func(d time.Duration) {
		if d = min(max(d, time.Millisecond), closureCheck); wait == 0 || d < wait {
			wait = d
		}
	}
	for _, c := range s.view.Closures("") {
		task, in := s.dutyOf(c)
		if in > 0 {
			soonest(in)
		} else if err := task(ctx); err != nil && !errors.Is(err, lock.Lost) {
			soonest(s.spread(closureRetry))
		}
	}
	for _, e := range s.view.LeftRolls() {
		if err := s.Store.Remove(ctx, e, lock.Withdrawn); err != nil && !errors.Is(err, lock.Lost) {
			soonest(s.spread(closureRetry))
		}
	}
	return wait
}

// dutyOf returns what a closure needs next, and in how long.
func (s *Service) dutyOf(c view.Closing) (task func(context.Context) error, in time.Duration) {
	remove := func(why lock.Reason) func(context.Context) error {
		return func(ctx context.Context) error { return s.Store.Remove(ctx, c.Entry, why) }
	}
	task, in = remove(lock.Expired), c.Entry.Closing.Until.Sub(s.Now())
	sooner := func(at time.Time, other func(context.Context) error) {
		if left := time.Until(at); left < in {
			task, in = other, left
		}
	}
	switch {
	case c.Recorded, in <= 0: // its end is due, whatever else is
	case c.Roll != nil:
		sooner(c.Seen.Add(rollAfter), func(ctx context.Context) error { return s.recordRoll(ctx, c) })
	default:
		sooner(c.Seen.Add(unsettledAfter), func(ctx context.Context) error { return s.giveUp(ctx, c) })
	}
	return task, in
}

// giveUp ends a closure of which nobody is left who knows who held when it began. That is so
// only if the store does not tell either: the feed may be late.
func (s *Service) giveUp(ctx context.Context, c view.Closing) error {
	read, err := s.readQueue(ctx, lock.ClosuresOf(c.Tenant), c.Entry.Number, s.moment())
	if err != nil {
		return err
	}
	for _, known := range lock.ClosuresIn(read.entries) {
		if known.Entry.ID == c.Entry.ID && known.Settled() {
			return errInDoubt()
		}
	}
	return s.Store.Remove(ctx, c.Entry, lock.Withdrawn)
}

// inTheWay is why an entry did not hold that gave way to others.
func (s *Service) inTheWay(others []*lock.Entry) error {
	if len(others) > 0 && others[0].Closing != nil {
		return lock.ErrClosed(others[0].Closing)
	}
	return lock.ErrHeld()
}

// timedOut is what a request is told whose wait is over.
func (s *Service) timedOut(e *lock.Entry) error {
	err := &lock.Error{Code: lock.TimedOut, Detail: "others were in front for all of wait_seconds", RetryAfter: time.Second}
	if c := s.view.ClosedFor(e.Tenant, e.Claims); c != nil {
		err.Detail, err.Closing, err.RetryAfter = "an operator has closed the lock, or others were in front for all of wait_seconds", c, s.reopens(c)
	}
	return err
}

// closed is an error of a closure, with when to come again.
func (s *Service) closed(c *lock.Closing) error {
	err := lock.ErrClosed(c)
	err.RetryAfter = s.reopens(c)
	return err
}

// maxReopens is after how long to come again to a lock that is closed for longer: it may be
// opened before.
const maxReopens = 30 * time.Second

func (s *Service) reopens(c *lock.Closing) time.Duration {
	return min(max(c.Until.Sub(s.Now()), time.Second), maxReopens)
}

// barred returns the closure that keeps an entry from holding that is in front in all its queues,
// as they were read at number or before. The closures are read at that or later: one that began
// after it found the entry holding. An error says that it cannot be known yet.
// at is the number at which the closures were read.
func (s *Service) barred(ctx context.Context, e *lock.Entry, number uint64) (by []*lock.Entry, at uint64, err error) {
	if e.Tenant == lock.OwnTenant {
		return nil, number, nil
	}
	read, err := s.readQueue(ctx, lock.ClosuresOf(e.Tenant), number, 0)
	if err != nil {
		return nil, 0, err
	}
	by, certain := lock.BarrierIn(lock.ClosuresIn(read.entries), e)
	if !certain {
		return nil, 0, errInDoubt()
	}
	return by, read.number, nil
}

func errInDoubt() error {
	return &lock.Error{Code: lock.StoreUnavailable, Detail: "the lock is being closed, and this replica does not know yet who holds it", RetryAfter: time.Second}
}

var _ RecordPutter = store.RecordStore(nil)
