package service

import (
	"context"
	"errors"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service/view"
	"github.com/fencepost/fencepost/store"
)

// Grant describes an entry in an answer.
type Grant struct {
	Entry     *lock.Entry
	Held      bool
	Token     string
	ExpiresAt time.Time      // until when the lease is sure to last
	Waited    time.Duration  // held: between the request and the grant
	Position  int            // waiting: 1 is next
	Places    []view.PlaceAt // waiting for any of several locks: where
	Asked     *view.Asked    // held: what its waiters ask of the holder; nil if none asks
	Holders   []view.Holder  // of a refusal: the current holders
	Waiters   int            // of a refusal: how many wait
	Replayed  bool           // an earlier request with the idempotency key wrote the entry
	// of a set's refusal: each lock of the set that is in use, in canonical order
	Busy []Busy
}

// Busy is a lock of a set that was refused.
type Busy struct {
	Name    string
	Holders []view.Holder
	Waiters int
}

// Acquire puts an entry into its queues and waits for the grant. It waits req.Wait at most in
// all, and req.Hold or MaxHold in one call. After that, a grant that does not hold is still
// queued at its position.
//
// Some errors come with a grant. With lock_held and wait_timeout it names the holders. With
// draining or an unknown outcome it has the entry that the client can resume.
//
// If ctx ends first, the client is gone. Acquire then removes the entry at once. If an
// idempotency key can resume the entry, Acquire leaves it to its lease.
func (s *Service) Acquire(ctx context.Context, req AcquireRequest) (*Grant, error) {
	began := time.Now()
	ctx, span := s.span(ctx, "service.Acquire")
	defer span.End()
	req.Trace = ownTrace(span, req.Trace)
	if req.Hold = min(req.Hold, s.MaxHold); req.Wait == 0 {
		req.Hold = 0 // a try must report whether it holds, however long that takes to learn
	}
	g, err := s.acquireInTime(ctx, &req, began)
	if g != nil {
		err = tookEffect(err)
	}
	if outcome := waitOutcome(g, err); outcome != "" {
		s.Metrics.Waited(ctx, outcome, err != nil || g.Waited > 0, time.Since(began))
		s.Metrics.Acquired(ctx, outcome, len(req.Claims))
	}
	if err != nil {
		span.RecordError(err)
	}
	return g, err
}

// tookEffect returns the error of a request that changed something: it left an entry queued, or
// it restarted a lease.
func tookEffect(err error) error {
	e, is := errors.AsType[*lock.Error](err)
	if !is || !errors.Is(e, lock.StoreUnavailable) && e.Code != lock.Draining {
		return err
	}
	marked := *e
	marked.OutcomeUnknown = true
	return &marked
}

// If the store itself removes the entry of a request, the service writes a new one, within these
// bounds. The request must be younger than rewriteWithin and the write must end by rewriteUntil, so
// that the client gets its answer in time. After a change of closures it tries maxTries times also
// in a slow store.
const (
	rewriteWithin = 3 * time.Second
	rewriteUntil  = 4500 * time.Millisecond
)

// acquireInTime repeats the request with a new entry if the store reports that the earlier write
// has no effect and never will: it came late, or the closures have changed since the entry was
// admitted.
func (s *Service) acquireInTime(
	ctx context.Context, req *AcquireRequest, began time.Time,
) (*Grant, error) {
	now := s.Now()
	for tries := 1; ; tries++ {
		g, err := s.acquire(ctx, req, now, began)
		young := time.Since(began) < rewriteWithin
		switch {
		case ctx.Err() != nil:
			return g, err
		case errors.Is(err, store.ErrNotWritten) && young:
			req.due = began.Add(rewriteUntil)
		case !errors.Is(err, store.ErrClosuresChanged) || !young && tries >= maxTries:
			return g, err
		}
	}
}

func (s *Service) acquire(
	ctx context.Context, req *AcquireRequest, now, began time.Time,
) (*Grant, error) {
	e, err := s.newEntry(req, now)
	if err != nil {
		return nil, err
	}
	if s.Draining() {
		return nil, errDraining()
	}
	if req.IdempotencyKey != "" {
		if g, err := s.rejoin(ctx, e, req.Hold); g != nil || err != nil {
			return g, err
		}
	}
	if err := s.keepable(e); err != nil {
		return nil, err
	}
	if err := s.admit(e); err != nil {
		return s.refuseOrRejoinWhenSettled(ctx, e, req.Hold, err)
	}
	if err := s.refuse(ctx, e); err != nil {
		return s.refuseOrRejoin(ctx, e, req.Hold, err)
	}
	if err := s.keys.limited(e); err != nil {
		return s.refuseOrRejoin(ctx, e, req.Hold, err)
	}
	if err := s.view.Quotas.Reserve(e); err != nil {
		return s.refuseOrRejoinWhenSettled(ctx, e, req.Hold, err)
	}
	defer s.view.Quotas.Unreserve(e)
	e.Lingers = !e.Tries() && !s.view.Queues.Admits(e)
	return s.enqueue(ctx, e, req, began)
}

// maxTries bounds how often the service restarts a try with an idempotency key because another
// request with that key removed its entry.
const maxTries = 5

// enqueue writes the entry and waits on it. Another request with the same idempotency key may
// remove the entry of a try. That removal does not show that the lock is held, and a stale view
// cannot tell whether the entry ended for another reason. So enqueue asks the store again.
func (s *Service) enqueue(
	ctx context.Context, e *lock.Entry, req *AcquireRequest, began time.Time,
) (g *Grant, err error) {
	for range maxTries {
		g, err = s.join(ctx, e, req, began)
		if req.Wait > 0 || !e.Resumable() || !vanished(err) || ctx.Err() != nil {
			return g, err
		}
		began = time.Now()
	}
	return g, err
}

// vanished reports whether an error means that an entry is gone for an unknown reason.
func vanished(err error) bool {
	var ended *lock.Error
	return errors.As(err, &ended) && ended.Code == lock.Lost && ended.Reason == lock.Unknown
}

// join writes the entry, or finds that of an earlier request, and waits on it.
func (s *Service) join(
	ctx context.Context, e *lock.Entry, req *AcquireRequest, began time.Time,
) (g *Grant, err error) {
	var news *view.Watch
	if e.Resumable() || e.Async { // other requests may wait on the entry, and remove it
		if news, err = s.view.Waits.Attend(e.ID); err != nil {
			return nil, err
		}
		defer news.End()
	}
	asked := time.Now()
	placed, written, err := s.write(ctx, e, req.due)
	s.keys.use(e, written, err)
	if errors.Is(err, store.ErrClosuresChanged) && s.Config.Closures != nil {
		err = s.reread(ctx, e, err)
	}
	switch {
	case err != nil && ctx.Err() != nil && !e.Resumable():
		return nil, ctx.Err()
	case err != nil:
		return nil, s.explained(e, err)
	}
	if placed.Request != e.Request {
		return nil, errIdempotencyMismatch()
	}
	if placed.Async {
		g, err = s.answerAsync(ctx, placed, written, began)
	} else {
		w := &wait{
			keeper: keeper{s: s, entry: placed, shown: true, began: began}, origin: joined, news: news,
			limit: req.Hold,
		}
		if written {
			w.origin, w.refreshed = wrote, asked
		}
		g, err = w.run(ctx)
	}
	if !written && placed.Resumable() {
		return replayed(g, err)
	}
	return g, err
}

// reread reads the closures that refused the entry, and returns refused, or why it cannot read.
func (s *Service) reread(ctx context.Context, e *lock.Entry, refused error) error {
	err := s.Config.Closures.Reread(ctx, e.Tenant, e.Admitted)
	if err == nil {
		return refused
	}
	if r, is := errors.AsType[*lock.Error](refused); is && r.OutcomeUnknown {
		return tookEffect(err) // by an earlier attempt
	}
	return err
}

// replayed marks an answer about the entry of an earlier request with the idempotency key.
func replayed(g *Grant, err error) (*Grant, error) {
	if g != nil {
		g.Replayed = true
	}
	var e *lock.Error
	if errors.As(err, &e) {
		marked := *e
		marked.Replayed = true
		err = &marked
	}
	return g, err
}

// explained adds to the store's error about a used key what this replica knows of the end of its
// entry.
func (s *Service) explained(e *lock.Entry, err error) error {
	var lost *lock.Error
	if !errors.As(err, &lost) || lost.Code != lock.Lost || !e.Resumable() {
		return err
	}
	_, err = replayed(nil, s.ended(e.ID, lost.Reason))
	return err
}

// write stores the entry. Once sent, the write does not end with the client, because its outcome
// would then be harder to learn. If the store gives up, it removes the entry. The store also gives
// up a write that it has not made by due; with a zero due the store chooses the time.
func (s *Service) write(
	ctx context.Context, e *lock.Entry, due time.Time,
) (placed *lock.Entry, written bool, err error) {
	if e.Resumable() { // its client can come back
		ctx = context.WithoutCancel(ctx)
	} else {
		ctx = store.Outlive(ctx)
	}
	if !due.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, due)
		defer cancel()
	}
	return s.Store.Enqueue(ctx, e)
}

// rejoin finds the entry of an earlier request with the same idempotency key, and waits on it for
// at most hold. It returns nil and no error if there is none.
func (s *Service) rejoin(ctx context.Context, e *lock.Entry, hold time.Duration) (*Grant, error) {
	news, err := s.view.Waits.Attend(e.ID)
	if err != nil {
		return nil, err
	}
	defer news.End()
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
	g, err := s.takeUp(ctx, st.Entry, news, hold)
	if errors.Is(err, lock.Lost) {
		return nil, s.usedUp(ctx, e.ID)
	}
	return replayed(g, err)
}

// takeUp answers about the entry of an earlier request.
func (s *Service) takeUp(
	ctx context.Context, e *lock.Entry, news *view.Watch, hold time.Duration,
) (*Grant, error) {
	if e.Async {
		return s.answerAsync(ctx, e, false, time.Now())
	}
	w := &wait{keeper: keeper{s: s, entry: e}, origin: resumed, news: news, limit: hold}
	return w.run(ctx)
}

// usedUp returns why the key with the id cannot be used again, if a view with every write before
// the call knows. Otherwise the store decides: the key may be in use again, by an entry written
// before the end of an earlier one was recorded.
func (s *Service) usedUp(ctx context.Context, id lock.ID) error {
	if !s.settled(ctx) {
		return ctx.Err() // nil, unless the client is gone
	}
	if st := s.view.Status(id, 0); st.State == view.Gone {
		_, err := replayed(nil, s.ended(id, st.Reason))
		return err
	}
	return nil
}

// waitOutcome returns the metric's word for how a wait ended, or "" if it continues.
func waitOutcome(g *Grant, err error) string {
	switch {
	case err == nil && g.Held:
		return "granted"
	case err == nil:
		return ""
	case errors.Is(err, lock.Held), errors.Is(err, lock.Closed),
		errors.Is(err, lock.Deadlock), errors.Is(err, lock.ModeMismatch),
		errors.Is(err, lock.NotNewest):
		return "refused"
	case errors.Is(err, lock.TimedOut):
		return "timeout"
	case errors.Is(err, context.Canceled):
		return "cancelled"
	}
	return "error"
}
