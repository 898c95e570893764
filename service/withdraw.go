package service

import (
	"context"
	"errors"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
)

// removalTimeout is for how long an entry is tried to be taken out of its queues.
const removalTimeout = 10 * time.Second

// leaveQueue takes back an entry that nobody was told of and whose client is gone.
func (s *Service) leaveQueue(ctx context.Context, e *lock.Entry) {
	s.unlessGone(e, s.Store.Remove(ctx, e, lock.Withdrawn))
}

// unlessGone goes on to take back an entry that could not be removed: whoever was told
// that the wait is over would otherwise still block others, until the lease ends.
func (s *Service) unlessGone(e *lock.Entry, err error) {
	if err == nil || errors.Is(err, lock.Lost) {
		return
	}
	s.tasks.Go(func() { s.removeAtLast(e, err) })
}

func (s *Service) removeAtLast(e *lock.Entry, err error) {
	ctx, cancel := context.WithTimeout(s.closing, e.TTL)
	defer cancel()
	for store.Pause(ctx, s.spread(recheck)) == nil {
		if e.Resumable() {
			_, err = s.giveWay(ctx, e, lock.Withdrawn) // it may have been granted to another request
		} else {
			err = s.Store.Remove(ctx, e, lock.Withdrawn)
		}
		if err == nil || errors.Is(err, lock.Lost) {
			return
		}
	}
	s.Logger.Warn("an entry could not be removed and lapses by its lease",
		"tenant", e.Tenant, "lock", e.Name(), "entry", string(e.ID), "error", err)
}

// giveWay takes an entry out of its queues that others are in the way of. It is not
// taken out if it holds: this replica may be the last to learn that, and another one
// may have granted it. So the removal is decided by those in the way: it happens only
// if they are there still.
func (s *Service) giveWay(ctx context.Context, e *lock.Entry, why lock.Reason) (holds bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, removalTimeout)
	defer cancel()
	blockers, known := s.view.Blockers(e)
	for {
		if !known {
			st, err := s.placeInStore(ctx, e, 0)
			if err != nil || st.holds {
				return st.holds, err
			}
			if blockers = st.blockers; st.entry == nil {
				return false, lock.LostBecause(lock.Unknown)
			}
		}
		err := s.Store.Remove(ctx, e, why, blockers...)
		if !errors.Is(err, lock.Changed) {
			return false, err
		}
		known = false
	}
}
