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

// setTimeout bounds how long a request about a set waits for the view.
const setTimeout = 2 * time.Second

// reasonTimeout bounds how long a request waits for the view to learn why an entry is gone.
const reasonTimeout = time.Second

// TokenRequest is a request about one entry by the client that has its token.
type TokenRequest struct {
	Tenant string
	Name   string  // the lock in the URL
	Set    bool    // the URL names a lock set instead of a lock
	ID     lock.ID // the entry in the URL; "" if it names none
	Token  string
	May    func(string) bool // reports whether the caller may use a name, for sets; nil allows all
}

// subject returns what the token must be bound to.
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
			return lock.Errorf(lock.Forbidden, "the caller is limited to other lock names than %s; "+
				"use a credential that covers it", c.Name)
		}
	}
	return nil
}

// Entries answers about single entries, to the client with the token and to the operator who
// revokes.
type Entries struct {
	*base
	reads       *queueReads
	withdrawals *withdrawals
	slack       slackSamples
	ending      endings
}

// Renew restarts the entry's lease for its full TTL, whether it holds or waits, and proves that
// the entry still exists. Errors: token_mismatch, lock_lost; for a waiting entry also deadlock,
// mode_mismatch or superseded, if no request has reported it yet.
func (x *Entries) Renew(ctx context.Context, req TokenRequest) (*Grant, error) {
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

func (x *Entries) renew(ctx context.Context, req TokenRequest) (*Grant, error) {
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

// expireWait ends a wait that may not continue although the client still renews. It returns why.
func (x *Entries) expireWait(ctx context.Context, e *lock.Entry, now time.Time) error {
	st := x.view.Status(e.ID, e.Number)
	over := !e.WaitUntil.IsZero() && !now.Before(e.WaitUntil)
	over = over && st.Choice == nil // otherwise it is granted at the last moment
	if st.State != view.Waiting || !over && st.Refused == nil {
		return nil
	}
	_, ended, err := x.withdrawals.endWait(context.WithoutCancel(ctx), e, st.Refused)
	switch {
	case errors.Is(err, lock.Changed):
		return nil
	case !ended:
		return x.whyLost(ctx, e, err)
	case st.Refused != nil:
		return st.Refused
	}
	return lock.LostBecause(lock.WaitTimeout)
}

// Release removes the entry from its queue, whether it holds or waits. Errors: token_mismatch;
// lock_lost with the reason if it was gone already.
func (x *Entries) Release(ctx context.Context, req TokenRequest) error {
	ctx, span := x.span(ctx, "service.Release")
	defer span.End()
	err := x.release(ctx, req)
	x.lostTo(req, figures.ReleasedTooLate, err)
	return err
}

func (x *Entries) release(ctx context.Context, req TokenRequest) error {
	e, err := x.locate(ctx, req)
	if err != nil {
		return err
	}
	x.ending.note(trace.SpanFromContext(ctx), e.ID)
	// As with Enqueue: the removal must finish even if the client disconnects.
	if err := x.Store.Remove(context.WithoutCancel(ctx), e, lock.Released); err != nil {
		return x.whyLost(ctx, e, err)
	}
	return nil
}

// Entry returns the entry's state. With hold it waits for the grant for at most that long, keeps
// the entry alive meanwhile, and starts a full lease at the grant.
func (s *Service) Entry(ctx context.Context, req TokenRequest, hold time.Duration) (*Grant, error) {
	ctx, span := s.span(ctx, "service.Entry")
	defer span.End()
	e, err := s.Entries.locate(ctx, req)
	if err != nil {
		return nil, err
	}
	st := s.view.Status(e.ID, e.Number)
	if hold == 0 || st.State == view.Held {
		return s.Entries.look(ctx, e)
	}
	watch, err := s.view.Waits.Attend(e.ID)
	if err != nil {
		return nil, err
	}
	w := &wait{
		keeper: keeper{s: s, entry: e}, origin: byToken, news: watch, limit: min(hold, s.MaxHold),
	}
	return w.run(ctx)
}

// look describes an entry without touching its lease.
func (x *Entries) look(ctx context.Context, e *lock.Entry) (*Grant, error) {
	start := time.Now()
	left, err := x.Store.Remaining(ctx, e)
	if err != nil {
		return nil, x.whyLost(ctx, e, err)
	}
	return x.describe(ctx, e, x.wall(start.Add(left)))
}

// describe answers about an entry that exists.
func (x *Entries) describe(ctx context.Context, e *lock.Entry, expires time.Time) (*Grant, error) {
	st, err := x.stateOf(ctx, e)
	if err != nil {
		return nil, err
	}
	return x.describeAs(ctx, e, st, expires)
}

// stateOf returns the state of an existing entry. "It holds" is true in every view, however old.
// "It waits" and "it cannot stay" are true only in a view with every write before the question:
// another replica may have reported a grant meanwhile.
func (x *Entries) stateOf(ctx context.Context, e *lock.Entry) (view.Status, error) {
	st := x.view.Status(e.ID, e.Number)
	if st.State == view.Held {
		return st, nil
	}
	if x.view.Progress.Reached(e.Number) && x.settled(ctx) {
		return x.view.Status(e.ID, e.Number), nil
	}
	// another replica may have reported a grant by now
	direct, err := x.reads.placeInStore(ctx, e, x.reads.moment())
	switch {
	case err != nil:
		return st, err
	case direct.entry == nil:
		return st, x.whyLost(ctx, e, lock.LostBecause(lock.Unknown))
	case direct.holds:
		return x.shownToHold(direct.entry), nil
	}
	st.Refused, st.Choice = nil, direct.choice
	return st, nil
}

// shownToHold returns the state of an entry that the store itself showed as a holder.
func (x *Entries) shownToHold(e *lock.Entry) view.Status {
	return view.Status{State: view.Held, Entry: e, Waited: x.view.Queues.WaitedFor(e), Doubt: true}
}

// describeAs answers about an entry in the given state. If the entry was granted while the server
// refuses to grant, the answer waits until that is over. If a choosing entry can leave queues, it
// does so first, and then holds.
func (x *Entries) describeAs(
	ctx context.Context, e *lock.Entry, st view.Status, expires time.Time,
) (*Grant, error) {
	if st.Choice != nil && x.outdated() == nil {
		now, err := x.Store.Narrow(ctx, e, st.Choice)
		if err != nil {
			return nil, x.whyLost(ctx, e, err)
		}
		st = x.shownToHold(now)
	}
	if e.Choosing() && st.State == view.Held {
		e = st.Entry
	}
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
		g.Position = max(1, x.view.Queues.Position(e.ID))
		if e.Choosing() {
			g.Places = x.view.Lists.Places(e.ID)
		}
	}
	return g, nil
}

// locate finds the entry of a token.
func (x *Entries) locate(ctx context.Context, req TokenRequest) (*lock.Entry, error) {
	e, err := x.find(ctx, req)
	if err != nil {
		return nil, err
	}
	return e, req.permits(e)
}

func (x *Entries) find(ctx context.Context, req TokenRequest) (*lock.Entry, error) {
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

// awaitSet keeps waiting for a set that the view has not shown. Neither the token nor the URL of
// a set names a lock, so the store cannot be asked. A replica without a feed cannot serve a set
// that it has never seen.
func (x *Entries) awaitSet(ctx context.Context, id lock.ID, number uint64) (*lock.Entry, error) {
	newest, err := x.Store.Newest(ctx)
	if err != nil {
		return nil, err
	}
	if newest < number {
		if err := x.reads.distrust(ctx, number, newest); err != nil {
			return nil, err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, setTimeout)
	defer cancel()
	if err := x.view.Progress.Await(ctx, number); err != nil {
		return nil, err
	}
	switch st := x.view.Status(id, number); {
	case st.Entry != nil && st.Entry.Number == number:
		return st.Entry, nil
	}
	return nil, x.lostBecause(ctx, id, number)
}

// locateInStore finds an entry that the view has not shown. A genuine token whose number the
// store has not reached proves that the store lost its past.
func (x *Entries) locateInStore(
	ctx context.Context, r lock.Ref, id lock.ID, number uint64,
) (*lock.Entry, error) {
	entries, newest, err := x.Store.Queue(ctx, r)
	if err == nil && newest < number {
		if err = x.reads.distrust(ctx, number, newest); err == nil {
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
