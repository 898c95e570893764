package service

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service/view"
	"github.com/fencepost/fencepost/store"
)

// AcquireRequest asks for one or several locks. Wait and TTL of 0 mean none and
// the default.
type AcquireRequest struct {
	Tenant   string
	Claims   []lock.Claim
	Set      bool
	Holder   string
	Named    bool // the request named the holder
	Metadata map[string]string
	TTL      time.Duration
	Wait     time.Duration
	Async    bool           // answer at once; the replicas keep the entry for as long as it waits
	Callback *lock.Callback // where the grant of an async entry is told; nil is nowhere
	// AskWithin has the entry ask those who hold to finish within this time, if it has to
	// wait; nil asks for nothing.
	AskWithin *time.Duration

	Trace string // W3C traceparent of the request; what is none is passed over. A retry may have another

	// IdempotencyKey makes repeated requests the same entry; "" makes each a new
	// one.
	IdempotencyKey string
}

// Grant is what the service knows of an entry when it answers about it.
type Grant struct {
	Entry     *lock.Entry
	Held      bool
	Token     string
	ExpiresAt time.Time     // until when the lease is sure to last
	Waited    time.Duration // held: between the request and the grant
	Position  int           // waiting: 1 is next
	Asked     *view.Asked   // held: what those ask who wait for it; nil if nobody does
	Holders   []view.Holder // of a refusal: who holds
	Waiters   int           // of a refusal: how many wait
	Busy      []Busy        // of a set's refusal: the same for each lock, in canonical order
}

// Busy is a lock of a set that was refused.
type Busy struct {
	Name    string
	Holders []view.Holder
	Waiters int
}

// removalTimeout is for how long an entry is tried to be taken out of its queues.
const removalTimeout = 10 * time.Second

// Acquire puts an entry into its queues and waits for the grant: at most for
// req.Wait, and at most for MaxHold in one call. A grant that is not held then
// still waits in its place. Errors come with a grant where there is something to
// tell: lock_held and wait_timeout who holds; draining and an unclear outcome the
// entry to go on with.
//
// When ctx ends first, the client is gone. The entry is removed at once, unless
// an idempotency key can bring the client back; then it lapses by its lease.
func (s *Service) Acquire(ctx context.Context, req AcquireRequest) (*Grant, error) {
	began := time.Now()
	ctx, span := s.Tracer.Start(ctx, "service.Acquire")
	defer span.End()
	req.Trace = ownTrace(span, req.Trace)
	g, err := s.acquire(ctx, req, began)
	if g != nil {
		err = stands(err)
	}
	if outcome := waitOutcome(g, err); outcome != "" {
		s.Metrics.Waited(ctx, outcome, err != nil || g.Waited > 0, time.Since(began))
	}
	if err != nil {
		span.RecordError(err)
	}
	return g, err
}

// stands returns the error of a request that has had its effect: an entry is left in
// its queue, or its lease was started anew.
func stands(err error) error {
	var e *lock.Error
	if !errors.As(err, &e) || e.Code != lock.StoreUnavailable && e.Code != lock.Draining {
		return err
	}
	standing := *e
	standing.Ambiguous = true
	return &standing
}

func (s *Service) acquire(ctx context.Context, req AcquireRequest, began time.Time) (*Grant, error) {
	e, err := s.newEntry(req, s.Now())
	if err != nil {
		return nil, err
	}
	if s.Draining() {
		return nil, errDraining()
	}
	if req.IdempotencyKey != "" {
		if g, err := s.rejoin(ctx, e); g != nil || err != nil {
			return g, err
		}
	}
	if err := s.keepable(e); err != nil {
		return nil, err
	}
	if err := s.refuse(ctx, e); err != nil {
		return s.refuseOrRejoin(ctx, e, err)
	}
	if err := s.view.Room(e); err != nil {
		if e.Resumable() { // its entry may be there, and not be seen yet
			s.settled(ctx)
		}
		return s.refuseOrRejoin(ctx, e, err)
	}
	defer s.view.Leave(e)
	if err := s.letAsk(e); err != nil {
		return s.refuseOrRejoin(ctx, e, err)
	}
	e.Lingers = !e.Tries() && !s.view.Admits(e)
	return s.enqueue(ctx, e, req.Wait == 0, began)
}

// maxTries is how often a try with an idempotency key is begun anew, because another
// request with the key has taken its entry back.
const maxTries = 5

// enqueue writes the entry and waits on it. The entry of a try with an idempotency key
// may be taken back by another request with the key. That says nothing of the lock, and
// a view that is late does not know whether the entry ended otherwise: the store is
// asked again.
func (s *Service) enqueue(ctx context.Context, e *lock.Entry, try bool, began time.Time) (g *Grant, err error) {
	for range maxTries {
		g, err = s.join(ctx, e, try, began)
		if !try || !e.Resumable() || !vanished(err) || ctx.Err() != nil {
			return g, err
		}
		began = time.Now()
	}
	return g, err
}

// vanished reports whether an error says that an entry is gone and nobody knows why.
func vanished(err error) bool {
	var ended *lock.Error
	return errors.As(err, &ended) && ended.Code == lock.Lost && ended.Reason == lock.Unknown
}

// join writes the entry, or finds that of an earlier request, and waits on it.
func (s *Service) join(ctx context.Context, e *lock.Entry, try bool, began time.Time) (*Grant, error) {
	changed, unwatch, err := s.view.Attend(e.ID)
	if err != nil {
		s.askFailed(e.ID, err)
		return nil, err
	}
	defer unwatch()
	// The write is not given up with the client: its outcome would only be harder to
	// learn. The store takes back what it gives up itself.
	placed, written, err := s.Store.Enqueue(context.WithoutCancel(ctx), e)
	if s.askFailed(e.ID, err); err != nil {
		return nil, err
	}
	if placed.Request != e.Request {
		return nil, errIdempotencyMismatch()
	}
	if placed.Async {
		return s.answerAsync(ctx, placed, written, began)
	}
	w := &wait{
		keeper:  keeper{s: s, entry: placed, shown: true, began: began},
		changed: changed, try: try, client: e.Resumable(), written: written,
	}
	if written {
		w.refreshed = began
	}
	return w.run(ctx)
}

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
	_, holds, err = s.giveWayTo(ctx, e, why)
	return holds, err
}

// giveWayTo is giveWay, and returns who was in the way.
func (s *Service) giveWayTo(ctx context.Context, e *lock.Entry, why lock.Reason) (blockers []*lock.Entry, holds bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, removalTimeout)
	defer cancel()
	blockers, known := s.view.Blockers(e)
	for nearest := true; ; nearest = !nearest {
		if !known {
			st, err := s.standing(ctx, e, nearest, 0)
			if err != nil || st.holds {
				return nil, st.holds, err
			}
			if blockers = st.blockers; st.entry == nil {
				return nil, false, lock.LostBecause(lock.Unknown)
			}
		}
		err := s.Store.Remove(ctx, e, why, blockers...)
		if !errors.Is(err, lock.Changed) {
			return blockers, false, err
		}
		known = false
	}
}

// rejoin finds the entry of an earlier request with the same idempotency key. It
// returns nothing if there is none.
func (s *Service) rejoin(ctx context.Context, e *lock.Entry) (*Grant, error) {
	changed, unwatch, err := s.view.Attend(e.ID)
	if err != nil {
		return nil, err
	}
	defer unwatch()
	st := s.view.Status(e.ID, 0)
	switch st.State {
	case view.Gone:
		return nil, s.usedUp(ctx, e.ID)
	case view.Unseen:
		return nil, nil
	}
	if st.Entry.Request != e.Request {
		return nil, errIdempotencyMismatch()
	}
	g, err := s.takeUp(ctx, st.Entry, changed)
	if errors.Is(err, lock.Lost) {
		return nil, s.usedUp(ctx, e.ID)
	}
	return g, err
}

// takeUp answers about the entry of an earlier request.
func (s *Service) takeUp(ctx context.Context, e *lock.Entry, changed <-chan struct{}) (*Grant, error) {
	if e.Async {
		return s.answerAsync(ctx, e, false, time.Now())
	}
	w := &wait{keeper: keeper{s: s, entry: e}, changed: changed, try: e.Tries(), client: true}
	return w.run(ctx)
}

// answerAsync tells at once how an async entry stands. One whose client went away before
// it could be told, and cannot come back, is taken back.
func (s *Service) answerAsync(ctx context.Context, e *lock.Entry, written bool, began time.Time) (*Grant, error) {
	g, err := s.standsAsync(ctx, e, written, began)
	switch {
	case ctx.Err() != nil && !e.Resumable():
		s.inBackground(func(ctx context.Context) { s.leaveQueue(ctx, e) })
		return nil, ctx.Err()
	case errors.Is(err, lock.StoreUnavailable): // it is there, and will be kept
		k := keeper{s: s, entry: e}
		if written {
			k.refreshed = began
		}
		g = k.resumable()
	}
	return g, err
}

func (s *Service) standsAsync(ctx context.Context, e *lock.Entry, written bool, began time.Time) (*Grant, error) {
	if !written {
		return s.look(ctx, e)
	}
	if !s.view.Reached(e.Number) {
		s.async.given.add(e)
	}
	st, err := s.stateAtFirst(ctx, e)
	if err != nil {
		return nil, err
	}
	if st.State == view.Waiting && st.Refused != nil {
		if err := s.carryOut(ctx, e, st.Refused); err != nil && !errors.Is(err, lock.StoreUnavailable) {
			return nil, err
		}
		st = s.view.Status(e.ID, e.Number) // whoever keeps it may have been faster, or will do it
	}
	if st.State == view.Gone && st.Refused != nil {
		return nil, st.Refused
	}
	return s.describeAs(ctx, e, st, s.wall(began.Add(e.TTL)))
}

// stateAtFirst tells how an entry stands that was just written: as of then, or later.
func (s *Service) stateAtFirst(ctx context.Context, e *lock.Entry) (view.Status, error) {
	if st := s.catchUp(ctx, e.ID, e.Number); st.State != view.Unseen {
		return st, nil
	}
	return s.stateOf(ctx, e)
}

// usedUp says why the key with the id cannot be used any more, if a view that has all that
// happened before the call knows. Otherwise the store does: the key may be in use again,
// by an entry that was written before the end of an earlier one was recorded.
func (s *Service) usedUp(ctx context.Context, id lock.ID) error {
	if !s.settled(ctx) {
		return ctx.Err() // nil, unless the client is gone
	}
	if st := s.view.Status(id, 0); st.State == view.Gone {
		return lock.LostBecause(st.Reason)
	}
	return nil
}

// refuse answers a request without a write, if others are in its way and it does
// not want to queue, or must not: the lock is in use in another mode, or to wait
// would close a cycle. The view may be late, so before it is believed it must
// reach a number read after the request came in: somebody who just released the
// lock elsewhere and tries it here must not be told that it is held.
//
// What comes between this and the write is noticed when the entry joins.
func (s *Service) refuse(ctx context.Context, e *lock.Entry) error {
	if s.view.Objection(e) == nil {
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
func (s *Service) refuseOrRejoin(ctx context.Context, e *lock.Entry, busy error) (*Grant, error) {
	if e.Resumable() {
		if g, err := s.rejoin(ctx, e); g != nil || err != nil {
			return g, err
		}
	}
	return s.refusal(ctx, e, busy)
}

func errIdempotencyMismatch() error {
	return lock.Errorf(lock.IdempotencyMismatch, "the idempotency key was used before with other parameters")
}

// refusal adds to an error who is in the way.
func (s *Service) refusal(ctx context.Context, e *lock.Entry, err error) (*Grant, error) {
	var why *lock.Error
	switch {
	case errors.Is(err, lock.Closed) && errors.As(err, &why):
		err = s.closed(why.Closing)
	case !errors.Is(err, lock.Held) && !errors.Is(err, lock.TimedOut):
		return nil, err
	}
	g, asks := &Grant{Entry: e}, askedPerRefusal
	for _, c := range e.Claims {
		q := s.view.Queue(lock.Ref{Tenant: e.Tenant, Name: c.Name}, e.ID, max(1, view.MaxShownHolders/len(e.Claims)), 0)
		s.addExpiries(ctx, q.Holders, asks)
		asks = max(0, asks-len(q.Holders))
		b := Busy{Name: c.Name, Holders: q.Holders, Waiters: q.Waiting}
		if e.Set {
			g.Busy = append(g.Busy, b)
		} else {
			g.Holders, g.Waiters = b.Holders, b.Waiters
		}
	}
	return g, err
}

// newEntry checks a request against the configured bounds and makes an entry of
// it.
func (s *Service) newEntry(req AcquireRequest, now time.Time) (*lock.Entry, error) {
	if req.TTL == 0 {
		req.TTL = s.DefaultTTL
	}
	if err := s.check(req); err != nil {
		return nil, err
	}
	if err := lock.CheckClaims(req.Claims, req.Set); err != nil {
		return nil, err
	}
	req.TTL, req.Wait = wholeMilliseconds(req.TTL), wholeMilliseconds(req.Wait)
	req.Claims = slices.Clone(req.Claims)
	lock.Canonical(req.Claims)
	e := &lock.Entry{
		ID: newID(s.Rand), Tenant: req.Tenant, Claims: req.Claims, Set: req.Set,
		Holder: req.Holder, Named: req.Named, Metadata: req.Metadata, TTL: req.TTL,
		EnqueuedAt: now.UTC().Truncate(time.Millisecond), Async: req.Async, Callback: req.Callback,
	}
	if lock.ValidTrace(req.Trace) {
		e.Trace = req.Trace
	}
	if req.AskWithin != nil {
		within := wholeMilliseconds(*req.AskWithin)
		e.AskWithin = &within
	}
	if req.Wait > 0 {
		e.WaitUntil = e.EnqueuedAt.Add(req.Wait)
	}
	if req.IdempotencyKey != "" {
		e.ID = idFor(req.Tenant, subjectOf(e), req.IdempotencyKey)
		e.Request = fingerprint(req)
	}
	return e, nil
}

func (s *Service) check(req AcquireRequest) error {
	switch {
	case req.TTL < s.MinTTL || req.TTL > s.MaxTTL:
		return lock.Invalid("ttl_seconds", "must be between %g and %g", s.MinTTL.Seconds(), s.MaxTTL.Seconds())
	case req.Wait < 0 || req.Wait > s.MaxWait:
		return lock.Invalid("wait_seconds", "must be between 0 and %g", s.MaxWait.Seconds())
	case req.Async && req.TTL < MinAsyncTTL:
		return lock.Invalid("ttl_seconds", "must be at least %g with async", MinAsyncTTL.Seconds())
	case req.Callback != nil && (!req.Async || req.Callback.Check() != nil):
		return lock.Invalid("callback_url", "must be one that can be kept, of an async request")
	case req.Async && req.Wait == 0:
		return lock.Invalid("wait_seconds", "must be more than 0 with async: it is for how long the place is kept")
	}
	if wrong := lock.CheckHolder(req.Holder); wrong != "" {
		return lock.Invalid("holder", "%s", wrong)
	}
	if wrong := lock.CheckMetadata(req.Metadata); wrong != "" {
		return lock.Invalid("metadata", "%s", wrong)
	}
	return req.checkAsk()
}

// wholeMilliseconds rounds up, so that a wait that is asked for is never none.
func wholeMilliseconds(d time.Duration) time.Duration {
	return (d + time.Millisecond - 1).Truncate(time.Millisecond)
}

// fingerprint condenses what a retry must repeat.
func fingerprint(req AcquireRequest) string {
	h := sha256.New()
	for _, c := range req.Claims {
		writeParts(h, c.Name, string(c.Mode))
		writeNumber(h, int64(c.Limit))
	}
	writeParts(h, req.Holder)
	for _, k := range slices.Sorted(maps.Keys(req.Metadata)) {
		writeParts(h, k, req.Metadata[k])
	}
	writeNumber(h, int64(req.TTL))
	writeNumber(h, int64(req.Wait))
	if req.Async {
		writeParts(h, "async")
	}
	if req.Callback != nil { // its secret may be rotated between two attempts
		writeParts(h, "callback", req.Callback.URL)
	}
	if req.AskWithin != nil {
		writeParts(h, "request_release")
		writeNumber(h, int64(wholeMilliseconds(*req.AskWithin)))
	}
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil)[:12])
}

func writeNumber(w interface{ Write([]byte) (int, error) }, n int64) {
	_, _ = w.Write(binary.BigEndian.AppendUint64(nil, uint64(n))) // a hash takes everything
}

// waitOutcome is the word for how a wait ended, "" if it goes on.
func waitOutcome(g *Grant, err error) string {
	switch {
	case err == nil && g.Held:
		return "granted"
	case err == nil:
		return ""
	case errors.Is(err, lock.Held), errors.Is(err, lock.Closed), errors.Is(err, lock.Deadlock), errors.Is(err, lock.ModeMismatch):
		return "refused"
	case errors.Is(err, lock.TimedOut):
		return "timeout"
	case errors.Is(err, context.Canceled):
		return "cancelled"
	}
	return "error"
}
