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

// Renew starts the entry's lease anew for its full TTL, whether it holds or
// waits, and proves that it is still there. Errors: token_mismatch, lock_lost; and
// deadlock or mode_mismatch for one that waits and that no request has told yet.
func (s *Service) Renew(ctx context.Context, req TokenRequest) (*Grant, error) {
	ctx, span := s.Tracer.Start(ctx, "service.Renew")
	defer span.End()
	g, err := s.renew(ctx, req)
	switch {
	case err == nil:
		s.Metrics.Renewed(ctx, "ok")
	case errors.Is(err, lock.Lost):
		s.Metrics.Renewed(ctx, lostOrLate(err))
		s.lostTo(req, figures.RenewedTooLate, err)
	default:
		s.Metrics.Renewed(ctx, "error")
	}
	return g, err
}

func (s *Service) renew(ctx context.Context, req TokenRequest) (*Grant, error) {
	e, err := s.locate(ctx, req)
	if err != nil {
		return nil, err
	}
	if err := s.expireWait(ctx, e, s.Now()); err != nil {
		return nil, err
	}
	s.measureSlack(ctx, e)
	start := time.Now()
	if err := s.Store.Renew(ctx, e); err != nil {
		return nil, s.whyLost(ctx, e, err)
	}
	s.renewedAt(e, start)
	g, err := s.describe(ctx, e, s.wall(start.Add(e.TTL)))
	return g, tookEffect(err)
}

// expireWait ends an entry that its client keeps alive although it no longer
// wants to wait, or must not.
func (s *Service) expireWait(ctx context.Context, e *lock.Entry, now time.Time) error {
	st := s.view.Status(e.ID, e.Number)
	over := !e.WaitUntil.IsZero() && !now.Before(e.WaitUntil)
	if st.State != view.Waiting || !over && st.Refused == nil {
		return nil
	}
	if st.Refused != nil {
		return s.carryOut(ctx, e, st.Refused)
	}
	holds, err := s.giveWay(context.WithoutCancel(ctx), e, lock.WaitTimeout)
	switch {
	case holds:
		return nil
	case err != nil:
		return s.whyLost(ctx, e, err)
	}
	return lock.LostBecause(lock.WaitTimeout)
}

// carryOut takes an entry back that cannot stay in its queues, and returns why. If
// the view is late about that, or the entry is gone, a renewal goes on.
func (s *Service) carryOut(ctx context.Context, e *lock.Entry, refused error) error {
	while, ok := s.view.Grounds(e.ID)
	if !ok {
		return nil
	}
	err := s.Store.Remove(context.WithoutCancel(ctx), e, endOf(e, refused), while...)
	switch {
	case errors.Is(err, lock.Changed), errors.Is(err, lock.Lost):
		return nil
	case err != nil:
		return err
	}
	return refused
}

// Release takes the entry out of its queue, whether it holds or waits. Errors:
// token_mismatch, lock_lost with the reason if it was gone already.
func (s *Service) Release(ctx context.Context, req TokenRequest) error {
	ctx, span := s.Tracer.Start(ctx, "service.Release")
	defer span.End()
	err := s.release(ctx, req)
	s.lostTo(req, figures.ReleasedTooLate, err)
	return err
}

func (s *Service) release(ctx context.Context, req TokenRequest) error {
	e, err := s.locate(ctx, req)
	if err != nil {
		return err
	}
	s.ending.note(trace.SpanFromContext(ctx), e.ID)
	// As with Enqueue: a client that goes away must not leave it half done.
	if err := s.Store.Remove(context.WithoutCancel(ctx), e, lock.Released); err != nil {
		return s.whyLost(ctx, e, err)
	}
	return nil
}

// Entry tells how the entry stands. With wait it waits for the grant for at most
// that long, keeping the entry's place, and then starts a full lease.
func (s *Service) Entry(ctx context.Context, req TokenRequest, hold time.Duration) (*Grant, error) {
	ctx, span := s.Tracer.Start(ctx, "service.Entry")
	defer span.End()
	e, err := s.locate(ctx, req)
	if err != nil {
		return nil, err
	}
	st := s.view.Status(e.ID, e.Number)
	if hold == 0 || st.State == view.Held {
		return s.look(ctx, e)
	}
	changed, unwatch, err := s.view.Attend(e.ID)
	if err != nil {
		return nil, err
	}
	defer unwatch()
	w := &wait{keeper: keeper{s: s, entry: e}, origin: byToken, changed: changed, limit: min(hold, s.MaxHold)}
	return w.run(ctx)
}

// look describes an entry without touching its lease.
func (s *Service) look(ctx context.Context, e *lock.Entry) (*Grant, error) {
	start := time.Now()
	left, err := s.Store.Remaining(ctx, e)
	if err != nil {
		return nil, s.whyLost(ctx, e, err)
	}
	return s.describe(ctx, e, s.wall(start.Add(left)))
}

// describe answers about an entry that is there.
func (s *Service) describe(ctx context.Context, e *lock.Entry, expires time.Time) (*Grant, error) {
	st, err := s.stateOf(ctx, e)
	if err != nil {
		return nil, err
	}
	return s.describeAs(ctx, e, st, expires)
}

// stateOf tells how an entry stands that is there. That it holds is true in every view,
// however old; that it waits, or cannot stay, only in one that has what happened before the
// question: another replica may have told its client otherwise.
func (s *Service) stateOf(ctx context.Context, e *lock.Entry) (view.Status, error) {
	st := s.view.Status(e.ID, e.Number)
	if st.State == view.Held {
		return st, nil
	}
	if s.view.Reached(e.Number) && s.settled(ctx) {
		return s.view.Status(e.ID, e.Number), nil
	}
	direct, err := s.placeInStore(ctx, e, s.moment()) // another replica may have told of a grant until now
	switch {
	case err != nil:
		return st, err
	case direct.entry == nil:
		return st, s.whyLost(ctx, e, lock.LostBecause(lock.Unknown))
	case direct.holds:
		return view.Status{State: view.Held, Waited: s.view.WaitedFor(e), Doubt: true}, nil
	}
	st.Refused = nil
	return st, nil
}

// describeAs answers about an entry that stands so. One that has come to hold while
// nothing may be granted is not told before that is over.
func (s *Service) describeAs(ctx context.Context, e *lock.Entry, st view.Status, expires time.Time) (*Grant, error) {
	g := &Grant{Entry: e, Token: s.tokens.issue(e), ExpiresAt: expires}
	switch st.State {
	case view.Held:
		if err := s.Store.Refusal(); err != nil && st.Doubt {
			return nil, err
		}
		g.Held, g.Waited, g.Asked = true, max(0, st.Waited), s.view.AskedOf(e)
	case view.Gone:
		return nil, s.lostBecause(ctx, e.ID, e.Number)
	default:
		g.Position = max(1, s.view.Position(e.ID))
	}
	return g, nil
}

// settled waits for a moment until the view has all that happened before the call.
func (s *Service) settled(ctx context.Context) bool {
	number, err := s.Store.Newest(ctx)
	if err != nil {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, s.FeedTimeout)
	defer cancel()
	return s.view.Await(ctx, number) == nil
}

// locate finds the entry that a token is for.
func (s *Service) locate(ctx context.Context, req TokenRequest) (*lock.Entry, error) {
	e, err := s.find(ctx, req)
	if err != nil {
		return nil, err
	}
	return e, req.permits(e)
}

func (s *Service) find(ctx context.Context, req TokenRequest) (*lock.Entry, error) {
	id, number, err := s.tokens.find(req)
	if err != nil {
		return nil, err
	}
	if req.ID != "" && req.ID != id {
		return nil, errTokenMismatch()
	}
	st := s.view.Status(id, number)
	if st.State == view.Unseen {
		st = s.catchUp(ctx, id, number)
	}
	switch st.State {
	case view.Held, view.Waiting:
		return st.Entry, nil
	case view.Gone:
		return nil, s.lostBecause(ctx, id, number)
	}
	if req.Set {
		return s.awaitSet(ctx, id, number)
	}
	return s.locateInStore(ctx, lock.Ref{Tenant: req.Tenant, Name: req.Name}, id, number)
}

// awaitSet waits on for a set that the view has not seen. Neither its token nor
// its URL names a lock under which the store could be asked for it, so a replica
// that is cut off from the feed cannot serve a set that it has never seen.
func (s *Service) awaitSet(ctx context.Context, id lock.ID, number uint64) (*lock.Entry, error) {
	newest, err := s.Store.Newest(ctx)
	if err != nil {
		return nil, err
	}
	if newest < number {
		if err := s.distrust(ctx, number, newest); err != nil {
			return nil, err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, setTimeout)
	defer cancel()
	if err := s.view.Await(ctx, number); err != nil {
		return nil, err
	}
	switch st := s.view.Status(id, number); {
	case st.Entry != nil && st.Entry.Number == number:
		return st.Entry, nil
	}
	return nil, s.lostBecause(ctx, id, number)
}

// catchUp gives the view a moment to reach the number of a token.
func (s *Service) catchUp(ctx context.Context, id lock.ID, number uint64) view.Status {
	ctx, cancel := context.WithTimeout(ctx, s.FeedTimeout)
	defer cancel()
	if err := s.view.Await(ctx, number); err != nil {
		return view.Status{}
	}
	return s.view.Status(id, number)
}

// locateInStore finds an entry that the view has not seen. A genuine token whose
// number the store has not reached proves that the store lost its past.
func (s *Service) locateInStore(ctx context.Context, r lock.Ref, id lock.ID, number uint64) (*lock.Entry, error) {
	entries, newest, err := s.Store.Queue(ctx, r)
	if err == nil && newest < number {
		if err = s.distrust(ctx, number, newest); err == nil {
			entries, _, err = s.Store.Queue(ctx, r)
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
	return nil, s.whyLost(ctx, &lock.Entry{ID: id, Number: number}, lock.LostBecause(lock.Unknown))
}

// distrust has the store look into a number that it has not reached. It returns nil if
// there is trust after that: this replica did not know of a fence floor that another one
// was given, and whoever has the token may hold.
func (s *Service) distrust(ctx context.Context, number, newest uint64) error {
	s.Logger.Error("a genuine lock token is ahead of the store, as far as this replica knows", "token_number", number, "store_number", newest)
	if err := s.Store.Distrust(ctx, number); err != nil {
		return err
	}
	if s.Store.Refusal() == nil {
		return nil
	}
	return lock.LostBecause(lock.Unknown)
}

// whyLost adds the reason to an error that says that the store no longer has the
// entry.
func (s *Service) whyLost(ctx context.Context, e *lock.Entry, err error) error {
	if !errors.Is(err, lock.Lost) {
		return err
	}
	s.awaitRemoval(ctx, e)
	return s.lostBecause(ctx, e.ID, e.Number)
}

// lostBecause says why the entry is gone, as far as that is known. Right after a list
// the reasons from before are still being read; they are waited for, but not for long.
func (s *Service) lostBecause(ctx context.Context, id lock.ID, number uint64) error {
	st := s.view.Status(id, number)
	if st.State == view.Gone && st.Reason == lock.Unknown {
		ctx, cancel := context.WithTimeout(ctx, reasonTimeout)
		defer cancel()
		s.view.AwaitReasons(ctx)
		st = s.view.Status(id, number)
	}
	if st.State == view.Gone {
		return s.ended(id, st.Reason)
	}
	return lock.LostBecause(lock.Unknown)
}

// awaitRemoval gives the view a moment to see that the entry is gone, and why.
func (s *Service) awaitRemoval(ctx context.Context, e *lock.Entry) {
	changed, unwatch := s.view.Watch(e.ID)
	defer unwatch()
	ctx, cancel := context.WithTimeout(ctx, reasonTimeout)
	defer cancel()
	for s.view.Status(e.ID, e.Number).State != view.Gone {
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// queuePlace is where an entry stands, as read from the store's queues.
type queuePlace struct {
	entry    *lock.Entry // nil if it is not in all of them
	holds    bool
	blockers []*lock.Entry // because of whom it waits, if it does: see [lock.BlockersIn]
}

// placeInStore reads where an entry stands, from reads that began at the moment since or
// later; 0 stands for any. That it holds is true from then on, that it waits is not.
func (s *Service) placeInStore(ctx context.Context, e *lock.Entry, since uint64) (queuePlace, error) {
	st := queuePlace{holds: true}
	for _, c := range e.Claims {
		read, err := s.readQueue(ctx, lock.Ref{Tenant: e.Tenant, Name: c.Name}, e.Number, since)
		if err != nil {
			return queuePlace{}, err
		}
		if st.entry = read.find(e); st.entry == nil {
			return queuePlace{}, nil
		}
		if blockers, waits := lock.BlockersIn(read.entries, e, c.Name, true); waits {
			st.holds = false
			if st.blockers == nil || blockers != nil && len(blockers) < len(st.blockers) {
				st.blockers = blockers
			}
		}
	}
	return st, nil
}

// find returns the entry as it was read, nil if it is not there, or another of its id is.
func (r queueRead) find(e *lock.Entry) *lock.Entry {
	if place := lock.Place(r.entries, e.ID); place >= 0 && r.entries[place].Number == e.Number {
		return r.entries[place]
	}
	return nil
}

// readQueue reads a queue at number or later, by a read that began at the moment since
// or later. Requests for one lock share their reads; if one that is under way began too
// early, the next one is late enough.
func (s *Service) readQueue(ctx context.Context, r lock.Ref, number, since uint64) (queueRead, error) {
	read, err := s.shareRead(ctx, r)
	if err == nil && (read.number < number || read.began < since) {
		read, err = s.shareRead(ctx, r)
	}
	return read, err
}

type queueRead struct {
	entries []*lock.Entry
	number  uint64
	began   uint64 // a moment
}

// moment is later than every moment before it. It tells whether a read began before a
// question was asked, which no clock could: two may be read at the same time.
func (s *Service) moment() uint64 { return s.moments.Add(1) }

func (s *Service) shareRead(ctx context.Context, r lock.Ref) (queueRead, error) {
	read := s.direct.DoChan(r.Tenant+"/"+r.Name, func() (any, error) {
		ctx, cancel := context.WithTimeout(s.closing, readTimeout)
		defer cancel()
		began := s.moment()
		entries, number, err := s.Store.Queue(ctx, r)
		return queueRead{entries, number, began}, err
	})
	select {
	case r := <-read:
		return r.Val.(queueRead), r.Err
	case <-ctx.Done():
		return queueRead{}, &lock.Error{
			Code: lock.StoreUnavailable, Detail: "the store did not answer in time", RetryAfter: time.Second, Cause: ctx.Err(),
		}
	}
}
