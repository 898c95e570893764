package service

import (
	"context"
	"errors"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service/view"
)

// RequestRelease has an entry that waits ask those who hold to finish, within a time that is
// a wish. They are told; nothing is taken away. To repeat it changes nothing, also if the
// entry asked when it joined. Errors: token_mismatch, lock_lost; already_held if it does not
// wait; quota_exceeded.
func (s *Service) RequestRelease(ctx context.Context, req TokenRequest, within time.Duration) error {
	ctx, span := s.Tracer.Start(ctx, "service.RequestRelease")
	defer span.End()
	if err := checkAsk(within); err != nil {
		return err
	}
	e, err := s.locate(ctx, req)
	if err != nil {
		return err
	}
	st, err := s.stateOf(ctx, e)
	switch {
	case err != nil:
		return err
	case st.State == view.Held:
		return s.holdsAlready(ctx, e)
	case st.State == view.Gone:
		return s.lostBecause(ctx, e.ID, e.Number)
	case s.view.Asks(e.ID):
		return nil
	}
	if err := s.view.LetAsk(e); err != nil {
		return err
	}
	ask := lock.Ask{Since: s.Now(), Within: wholeMilliseconds(within)}
	err = s.Store.Notify(context.WithoutCancel(ctx), lock.NoticeOfAsk(e, ask), e)
	s.askFailed(e.ID, err)
	if errors.Is(err, lock.Lost) {
		return s.whyLost(ctx, e, err)
	}
	return err
}

// holdsAlready returns that an entry holds, as the view has it, and why that cannot be told if the entry
// has ended, or if the store has lost its past, and what was granted with it.
func (s *Service) holdsAlready(ctx context.Context, e *lock.Entry) error {
	if _, err := s.Store.Remaining(ctx, e); err != nil {
		return s.whyLost(ctx, e, err)
	}
	if err := s.Store.Refusal(); err != nil {
		return err
	}
	return lock.Errorf(lock.AlreadyHeld, "the entry holds: nobody is in its way")
}

func checkAsk(within time.Duration) error {
	if within < 0 || within > lock.MaxAskWithin {
		return lock.Invalid("within_seconds", "must be between 0 and %g", lock.MaxAskWithin.Seconds())
	}
	return nil
}

// checkAsk returns what is wrong with what a request asks of those who hold.
func (r AcquireRequest) checkAsk() error {
	switch {
	case r.AskWithin == nil:
		return nil
	case r.Wait == 0:
		return lock.Invalid("request_release", "needs wait_seconds: who does not wait asks nobody")
	}
	if checkAsk(*r.AskWithin) != nil {
		return lock.Invalid("request_release.within_seconds", "must be between 0 and %g", lock.MaxAskWithin.Seconds())
	}
	return nil
}

// letAsk returns why e must not be written, which asks others to finish if it has to wait.
func (s *Service) letAsk(e *lock.Entry) error {
	if _, asks := e.Asks(); !asks {
		return nil
	}
	return s.view.LetAsk(e)
}

// askFailed forgets that an entry was let ask, if it is certain that this was not written.
func (s *Service) askFailed(id lock.ID, err error) {
	var failed *lock.Error
	if err != nil && !(errors.As(err, &failed) && failed.OutcomeUnknown) {
		s.view.DropAsk(id)
	}
}
