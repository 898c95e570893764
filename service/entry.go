package service

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service/figures"
	"github.com/fencepost/fencepost/service/view"
)

// setTimeout is for how long the view is waited for by a request about a set.
const setTimeout = 2 * time.Second

// reasonTimeout is how long the view is given to learn why an entry is gone.
const reasonTimeout = time.Second

// TokenRequest is a request about an entry by the one who has its token.
type TokenRequest struct {
	Tenant string
	Name   string  // the lock in the URL
	Set    bool    // the URL names a lock set, and no lock
	ID     lock.ID // the entry in the URL; "" if it names none
	Token  string
	May    func(string) bool // which names the caller may use; nil is all. For sets
}

// subject is what the token has to be bound to.
func (r TokenRequest) subject() string {
	if r.Set {
		return setSubject
	}
	return r.Name
}

// permits returns whether the caller may use all locks of e.
func (r TokenRequest) permits(e *lock.Entry) error {
	for _, c := range e.Claims {
		if r.May != nil && !r.May(c.Name) {
			return lock.Errorf(lock.Forbidden, "the caller is limited to other lock names than %s", c.Name)
		}
	}
	return nil
}

// entries answer about one entry: to the client that has its token, and to the operator that
// revokes it.
type entries struct {
	*withdrawals
	slack  slackSamples
	ending endings
}

// Renew starts the entry's lease again for its full TTL, whether it holds or
// waits, and proves that it is still there. Errors: token_mismatch, lock_lost; and
// deadlock or mode_mismatch for one that waits and that no request has told yet.
func (x *entries) Renew(ctx context.Context, req TokenRequest) (*Grant, error) {
	ctx, span := x.span(ctx, "service.Renew")
	defer span.End()
	g, err := x.renew(ctx, req)
	switch {
	case err == nil:
		x.Metrics.Renewed(ctx, "ok")
	case errors.Is(err, lock.Lost):
		x.Metrics.Renewed(ctx, lostOrLate(err))
		x.lostTo(req, figures.RenewedTooLate, err)
	default:
		x.Metrics.Renewed(ctx, "error")
	}
	return g, err
}

func (x *entries) renew(ctx context.Context, req TokenRequest) (*Grant, error) {
	e, err := x.locate(ctx, req)
	if err != nil {
		return nil, err
	}
	if err := x.expireWait(ctx, e, x.Now()); err != nil {
		return nil, err
	}
	x.measureSlack(ctx, e)
	start := time.Now()
	if err := x.Store.Renew(ctx, e); err != nil {
		return nil, x.whyLost(ctx, e, err)
	}
	x.renewedAt(e, start)
	g, err := x.describe(ctx, e, x.wall(start.Add(e.TTL)))
	return g, tookEffect(err)
}

// expireWait ends an entry that its client keeps alive although it no longer
// wants to wait, or must not.
func (x *entries) expireWait(ctx context.Context, e *lock.Entry, now time.Time) error {
	st := x.view.Status(e.ID, e.Number)
	over := !e.WaitUntil.IsZero() && !now.Before(e.WaitUntil)
	if st.State != view.Waiting || !over && st.Refused == nil {
		return nil
	}
	if st.Refused != nil {
		return x.carryOut(ctx, e, st.Refused)
	}
	holds, err := x.giveWay(context.WithoutCancel(ctx), e, lock.WaitTimeout)
	switch {
	case holds:
		return nil
	case err != nil:
		return x.whyLost(ctx, e, err)
	}
	return lock.LostBecause(lock.WaitTimeout)
}

// Release takes the entry out of its queue, whether it holds or waits. Errors:
// token_mismatch, lock_lost with the reason if it was gone already.
func (x *entries) Release(ctx context.Context, req TokenRequest) error {
	ctx, span := x.span(ctx, "service.Release")
	defer span.End()
	err := x.release(ctx, req)
	x.lostTo(req, figures.ReleasedTooLate, err)
	return err
}

func (x *entries) release(ctx context.Context, req TokenRequest) error {
	e, err := x.locate(ctx, req)
	if err != nil {
		return err
	}
	x.ending.note(trace.SpanFromContext(ctx), e.ID)
	// As with Enqueue: a client that goes away must not leave it half done.
	if err := x.Store.Remove(context.WithoutCancel(ctx), e, lock.Released); err != nil {
		return x.whyLost(ctx, e, err)
	}
	return nil
}

// Entry tells how the entry stands. With wait it waits for the grant for at most
// that long, keeping the entry's place, and then starts a full lease.
func (s *Service) Entry(ctx context.Context, req TokenRequest, hold time.Duration) (*Grant, error) {
	ctx, span := s.span(ctx, "service.Entry")
	defer span.End()
	e, err := s.locate(ctx, req)
	if err != nil {
		return nil, err
	}
	st := s.view.Status(e.ID, e.Number)
	if hold == 0 || st.State == view.Held {
		return s.look(ctx, e)
	}
	watch, err := s.view.Attend(e.ID)
	if err != nil {
		return nil, err
	}
	w := &wait{
		keeper: keeper{s: s, entry: e}, origin: byToken, news: watch, limit: min(hold, s.MaxHold),
	}
	return w.run(ctx)
}

// look describes an entry without touching its lease.
func (x *entries) look(ctx context.Context, e *lock.Entry) (*Grant, error) {
	start := time.Now()
	left, err := x.Store.Remaining(ctx, e)
	if err != nil {
		return nil, x.whyLost(ctx, e, err)
	}
	return x.describe(ctx, e, x.wall(start.Add(left)))
}

// describe answers about an entry that is there.
func (x *entries) describe(ctx context.Context, e *lock.Entry, expires time.Time) (*Grant, error) {
	st, err := x.stateOf(ctx, e)
	if err != nil {
		return nil, err
	}
	return x.describeAs(ctx, e, st, expires)
}

// stateOf tells how an entry stands that is there. That it holds is true in every view,
// however old; that it waits, or cannot stay, only in one that has what happened before the
// question: another replica may have told its client otherwise.
func (x *entries) stateOf(ctx context.Context, e *lock.Entry) (view.Status, error) {
	st := x.view.Status(e.ID, e.Number)
	if st.State == view.Held {
		return st, nil
	}
	if x.view.Reached(e.Number) && x.settled(ctx) {
		return x.view.Status(e.ID, e.Number), nil
	}
	// another replica may have told of a grant until now
	direct, err := x.placeInStore(ctx, e, x.moment())
	switch {
	case err != nil:
		return st, err
	case direct.entry == nil:
		return st, x.whyLost(ctx, e, lock.LostBecause(lock.Unknown))
	case direct.holds:
		return view.Status{State: view.Held, Waited: x.view.WaitedFor(e), Doubt: true}, nil
	}
	st.Refused = nil
	return st, nil
}

// describeAs answers about an entry that stands so. One that has come to hold while
// nothing may be granted is not told before that is over.
func (x *entries) describeAs(
	ctx context.Context, e *lock.Entry, st view.Status, expires time.Time,
) (*Grant, error) {
	g := &Grant{Entry: e, Token: x.tokens.issue(e), ExpiresAt: expires}
	switch st.State {
	case view.Held:
		if err := x.Store.Refusal(); err != nil && st.Doubt {
			return nil, err
		}
		g.Held, g.Waited, g.Asked = true, max(0, st.Waited), x.view.AskedOf(e)
	case view.Gone:
		return nil, x.lostBecause(ctx, e.ID, e.Number)
	default:
		g.Position = max(1, x.view.Position(e.ID))
	}
	return g, nil
}

// locate finds the entry that a token is for.
func (x *entries) locate(ctx context.Context, req TokenRequest) (*lock.Entry, error) {
	e, err := x.find(ctx, req)
	if err != nil {
		return nil, err
	}
	return e, req.permits(e)
}

func (x *entries) find(ctx context.Context, req TokenRequest) (*lock.Entry, error) {
	id, number, err := x.tokens.find(req)
	if err != nil {
		return nil, err
	}
	if req.ID != "" && req.ID != id {
		return nil, errTokenMismatch()
	}
	st := x.view.Status(id, number)
	if st.State == view.Unseen {
		st = x.catchUp(ctx, id, number)
	}
	switch st.State {
	case view.Held, view.Waiting:
		return st.Entry, nil
	case view.Gone:
		return nil, x.lostBecause(ctx, id, number)
	}
	if req.Set {
		return x.awaitSet(ctx, id, number)
	}
	return x.locateInStore(ctx, lock.Ref{Tenant: req.Tenant, Name: req.Name}, id, number)
}

// awaitSet waits on for a set that the view has not seen. Neither its token nor
// its URL names a lock under which the store could be asked for it, so a replica
// that is cut off from the feed cannot serve a set that it has never seen.
func (x *entries) awaitSet(ctx context.Context, id lock.ID, number uint64) (*lock.Entry, error) {
	newest, err := x.Store.Newest(ctx)
	if err != nil {
		return nil, err
	}
	if newest < number {
		if err := x.distrust(ctx, number, newest); err != nil {
			return nil, err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, setTimeout)
	defer cancel()
	if err := x.view.Await(ctx, number); err != nil {
		return nil, err
	}
	switch st := x.view.Status(id, number); {
	case st.Entry != nil && st.Entry.Number == number:
		return st.Entry, nil
	}
	return nil, x.lostBecause(ctx, id, number)
}

// locateInStore finds an entry that the view has not seen. A genuine token whose
// number the store has not reached proves that the store lost its past.
func (x *entries) locateInStore(
	ctx context.Context, r lock.Ref, id lock.ID, number uint64,
) (*lock.Entry, error) {
	entries, newest, err := x.Store.Queue(ctx, r)
	if err == nil && newest < number {
		if err = x.distrust(ctx, number, newest); err == nil {
			entries, _, err = x.Store.Queue(ctx, r)
		}
	}
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if e.ID == id && e.Number == number {
			return e, nil
		}
	}
	return nil, x.whyLost(ctx, &lock.Entry{ID: id, Number: number}, lock.LostBecause(lock.Unknown))
}
