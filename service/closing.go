package service

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fencepost/fencepost/audit"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service/view"
	"github.com/fencepost/fencepost/store"
)

// CloseRequest asks that nobody new is granted some locks of a tenant.
type CloseRequest struct {
	Tenant string
	Locks  string // a [lock.Pattern]
	Until  time.Time
	Reason string    // in the operator's words
	By     audit.Who // who he is
}

// RecordPutter is what the service needs of the store's small records.
type RecordPutter interface {
	Put(ctx context.Context, p store.RecordPut) (uint64, error)
}

// CloseLocks closes locks: from the number of the closure's entry on nobody comes to hold them who
// did not hold then, whichever replica he asks. Holders go on, and waiters keep their places.
// It is put on record before. Errors: invalid_request, quota_exceeded, rate_limited. After an
// unknown outcome the closure may stand, and the list tells.
func (s *Service) CloseLocks(ctx context.Context, req CloseRequest) (view.Closing, error) {
	ctx, span := s.Tracer.Start(ctx, "service.CloseLocks")
	defer span.End()
	e, err := s.newClosing(req, s.Now())
	if err != nil {
		return view.Closing{}, err
	}
	if err := s.settle(ctx, true); err != nil {
		return view.Closing{}, err
	}
	switch {
	case len(s.view.Closures(req.Tenant)) >= lock.MaxClosures:
		return view.Closing{}, s.tooManyClosures(req.Tenant)
	case !s.view.FitsRoll(e):
		return view.Closing{}, s.whyNoRoll(req.Tenant)
	}
	// As with Release: an operator who goes away must not leave it half done.
	ctx = context.WithoutCancel(ctx)
	if err := s.Journal.Put(ctx, req.record(e, audit.CloseLocks, audit.Closed)); err != nil {
		return view.Closing{}, err
	}
	return s.enforce(ctx, e)
}

// tooManyClosures says when one of them ends by itself, at the latest: one may be lifted before.
func (s *Service) tooManyClosures(tenant string) error {
	var next *lock.Closing
	for _, c := range s.view.Closures(tenant) {
		if next == nil || c.Entry.Closing.Until.Before(next.Until) {
			next = c.Entry.Closing
		}
	}
	err := &lock.Error{
		Code: lock.QuotaExceeded, RetryAfter: time.Second,
		Detail: fmt.Sprintf("%d closures of the tenant stand, and more are not kept", lock.MaxClosures),
	}
	if next != nil {
		err.RetryAfter = s.reopens(next)
	}
	return err
}

// newClosing checks a request and makes the entry of it.
func (s *Service) newClosing(req CloseRequest, now time.Time) (*lock.Entry, error) {
	locks, err := lock.ParseNamePattern(req.Locks)
	switch {
	case req.Tenant == lock.OwnTenant || !lock.ValidTenant(req.Tenant):
		return nil, lock.Invalid("tenant", "must be one whose locks can be closed")
	case err != nil:
		return nil, lock.Invalid("locks", "must be a pattern of 1 to %d bytes", lock.MaxPatternLength)
	case !req.Until.After(now) || req.Until.Sub(now) > lock.MaxClosing:
		return nil, lock.Invalid("until", "must be within the next %g hours", lock.MaxClosing.Hours())
	}
	if wrong := lock.CheckExplanation(req.Reason); wrong != "" {
		return nil, lock.Invalid("reason", "%s", wrong)
	}
	ref := lock.ClosuresOf(req.Tenant)
	now = now.UTC().Truncate(time.Millisecond)
	return &lock.Entry{
		ID: newID(s.Rand), Tenant: ref.Tenant, Claims: []lock.Claim{{Name: ref.Name, Mode: lock.Exclusive}},
		Holder: req.By.Subject, TTL: lock.MaxTTL, EnqueuedAt: now, WaitUntil: now.Add(lock.MaxTTL),
		Closing: &lock.Closing{Locks: locks, Until: req.Until.UTC().Truncate(time.Millisecond), Reason: req.Reason, By: req.By.Subject},
	}, nil
}

func (r *CloseRequest) record(e *lock.Entry, action, result string) *audit.Record {
	return &audit.Record{
		Tenant: r.Tenant, By: r.By, Action: action, Reason: r.Reason, Result: result,
		Object: audit.Object{Locks: []string{r.Locks}, Entry: e.ID, Until: &e.Closing.Until, Fence: e.Number},
	}
}

// closingTimeout is for how long the view may take to have a closure that was just written.
const closingTimeout = 2 * time.Second

// enforce writes a closure, and who held when it began. If the second is not done here, another
// replica does it.
func (s *Service) enforce(ctx context.Context, e *lock.Entry) (view.Closing, error) {
	placed, _, err := s.Store.Enqueue(ctx, e)
	if err != nil {
		return view.Closing{}, err
	}
	made := view.Closing{Entry: placed, Tenant: lock.NewClosure(placed, nil).Tenant()}
	await, cancel := context.WithTimeout(ctx, closingTimeout)
	defer cancel()
	if s.view.Await(await, placed.Number) != nil {
		return made, nil
	}
	for _, c := range s.view.Closures(made.Tenant) {
		switch {
		case c.Entry.ID != placed.ID:
		case c.Roll == nil:
			err := s.Store.Remove(ctx, placed, lock.Withdrawn)
			if err == nil || errors.Is(err, lock.Lost) {
				err = s.whyNoRoll(made.Tenant)
			}
			return view.Closing{}, err
		default:
			made = c
			s.unlessWritten(c, s.recordRoll(ctx, c))
		}
	}
	return made, nil
}

func (s *Service) unlessWritten(c view.Closing, err error) {
	if err != nil {
		s.Logger.Warn("who held when locks were closed could not be written; it is tried again", "tenant", c.Tenant, "closure", string(c.Entry.ID), "error", err)
	}
}

// whyNoRoll says why this replica cannot tell who holds the locks of a tenant.
func (s *Service) whyNoRoll(tenant string) error {
	for _, c := range s.view.Closures(tenant) {
		if c.Roll == nil {
			return errInDoubt()
		}
	}
	return lock.Invalid("locks", "selects too many locks for which others wait: who holds them could not be told; close fewer")
}

// recordRoll writes who held when a closure began. Every replica that followed it knows the same,
// and the id is the same, so that it is written once.
func (s *Service) recordRoll(ctx context.Context, c view.Closing) error {
	now := s.Now().UTC().Truncate(time.Millisecond)
	_, _, err := s.Store.Enqueue(ctx, &lock.Entry{
		ID: s.tokens.idFor(c.Entry.Tenant, c.Entry.Name(), "roll of "+string(c.Entry.ID)), Request: "roll", Tenant: c.Entry.Tenant, Claims: c.Entry.Claims,
		Holder: c.Entry.Holder, TTL: lock.MaxTTL, EnqueuedAt: now, WaitUntil: now.Add(lock.MaxTTL), Roll: c.Roll,
	})
	if errors.Is(err, lock.Lost) { // it was there, and the closure has ended
		return nil
	}
	return err
}

// OpenRequest asks for the end of a closure.
type OpenRequest struct {
	ID     lock.ID
	May    func(tenant, locks string) bool // whether the operator may end a closure of these
	Reason string                          // in his words, "" if he gave none
	By     audit.Who
}

// OpenLocks ends a closure and puts that on record, in one write: whoever is next holds then. Errors:
// not_found, rate_limited.
func (s *Service) OpenLocks(ctx context.Context, req OpenRequest) error {
	ctx, span := s.Tracer.Start(ctx, "service.OpenLocks")
	defer span.End()
	if err := s.settle(ctx, true); err != nil {
		return err
	}
	for _, c := range s.view.Closures("") {
		if c.Entry.ID == req.ID && req.May(c.Tenant, c.Entry.Closing.Locks.String()) {
			return s.open(context.WithoutCancel(ctx), c, req)
		}
	}
	return errNoClosure()
}

func (s *Service) open(ctx context.Context, c view.Closing, req OpenRequest) error {
	closing := c.Entry.Closing
	done := CloseRequest{Tenant: c.Tenant, Locks: closing.Locks.String(), Reason: req.Reason, By: req.By}
	record := done.record(c.Entry, audit.OpenLocks, audit.Opened)
	put, err := s.Journal.Admit(record)
	if err != nil {
		return err
	}
	err = s.Store.RemoveAndPut(ctx, c.Entry, lock.Released, nil, put)
	s.Journal.Tell(ctx, record, err)
	if errors.Is(err, lock.Lost) {
		return errNoClosure()
	}
	return err
}

func errNoClosure() error { return lock.Errorf(lock.NotFound, "there is no such closure") }

// Closures returns the closures that stand, in the order in which they began. tenant "" is all.
func (s *Service) Closures(ctx context.Context, tenant string) ([]view.Closing, error) {
	if err := s.settle(ctx, false); err != nil {
		return nil, err
	}
	return s.view.Closures(tenant), nil
}
