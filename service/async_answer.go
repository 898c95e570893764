package service

import (
	"context"
	"errors"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service/view"
)

// answerAsync reports at once how an async entry stands. If its client left before the answer and
// cannot come to the entry otherwise, answerAsync removes it.
func (s *Service) answerAsync(
	ctx context.Context, e *lock.Entry, written bool, began time.Time,
) (*Grant, error) {
	g, err := s.standsAsync(ctx, e, written, began)
	switch {
	case ctx.Err() != nil && !e.Recoverable():
		s.withdrawals.leaveQueue(e)
		return nil, ctx.Err()
	case errors.Is(err, lock.StoreUnavailable): // it is queued, and a replica will keep it
		k := keeper{s: s, entry: e}
		if written {
			k.refreshed = began
		}
		g = k.resumable()
	}
	return g, err
}

func (s *Service) standsAsync(
	ctx context.Context, e *lock.Entry, written bool, began time.Time,
) (*Grant, error) {
	if !written {
		return s.Entries.look(ctx, e)
	}
	if !s.view.Progress.Reached(e.Number) {
		s.async.given.add(e)
	}
	st, err := s.stateAtFirst(ctx, e)
	if err != nil {
		return nil, err
	}
	if st.State == view.Waiting && st.Refused != nil {
		_, ended, err := s.withdrawals.endWait(context.WithoutCancel(ctx), e, st.Refused)
		switch {
		case ended:
			return nil, st.Refused
		case err == nil, errors.Is(err, lock.Changed), errors.Is(err, lock.Lost):
		case !errors.Is(err, lock.StoreUnavailable):
			return nil, err
		}
		st = s.view.Status(e.ID, e.Number) // its keeper may have been faster, or will do it
	}
	if st.State == view.Gone && st.Refused != nil {
		return nil, st.Refused
	}
	return s.Entries.describeAs(ctx, e, st, s.wall(began.Add(e.TTL)))
}

// stateAtFirst returns the state of an entry that was just written, as of the write or later.
func (s *Service) stateAtFirst(ctx context.Context, e *lock.Entry) (view.Status, error) {
	if st := s.catchUp(ctx, e.ID, e.Number); st.State != view.Unseen {
		return st, nil
	}
	return s.Entries.stateOf(ctx, e)
}
