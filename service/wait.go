package service

import (
	"context"
	"errors"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service/view"
)

// freshEnough is how old the last refresh of a lease may be when a waited grant
// is answered without another one. The answer tells until when the lease lasts,
// so nothing is claimed that is not so; this only keeps a store call out of the
// hand-over of a busy lock.
const freshEnough = 250 * time.Millisecond

// While the feed is interrupted, waiting requests ask the store themselves: after
// recheck, spread over as much again, each time for at most askTimeout. When that
// fails too and the feed has been gone for giveUp, they are told. A store that is
// lost is so made known within 5 s, of which the feed takes 2.5 to notice; the
// rest is giveUp, the longest pause and one more question.
const (
	recheck    = 300 * time.Millisecond
	askTimeout = 700 * time.Millisecond
	// readTimeout is that of a read that several share: who began it hears of its end
	// before it gives up itself.
	readTimeout = askTimeout - 50*time.Millisecond
	giveUp      = 1200 * time.Millisecond
)

// wait is one request that waits on an entry.
type wait struct {
	s         *Service
	entry     *lock.Entry
	changed   <-chan struct{} // the view saw something happen to the entry
	refreshed time.Time       // before the last proof of a full lease; zero if unknown
	again     time.Time       // not before then is a failed keepalive repeated
	shown     bool            // the store has shown the entry since the request began
	written   bool            // by this request
	try       bool            // leave the queue at once if the entry does not hold
	client    bool            // the client can come back to the entry
	limit     time.Duration   // for how long to hold the request open; 0 is MaxHold

	began   time.Time // the request, or its wait if that is not known
	doubted uint64    // no refusal counts before the view has reached it
	waited  bool      // the entry was seen not to hold
	proven  bool      // the store itself showed that the entry holds
	soon    bool      // the view announced its turn
	ahead   bool      // its lease was started anew for that
}

// run waits until the entry holds, is gone, has waited for long enough, or the
// request has. It keeps the lease alive all the while. An entry for which its client can
// neither be told nor come back is not left behind, whatever the answer would have been.
func (w *wait) run(ctx context.Context) (*Grant, error) {
	g, err := w.await(ctx)
	if g != nil && g.Token != "" && w.goneForGood(ctx) {
		return nil, ctx.Err()
	}
	return g, err
}

func (w *wait) await(ctx context.Context) (*Grant, error) {
	if w.began.IsZero() {
		w.began = time.Now()
	}
	for {
		if err := w.s.outdated(); err != nil {
			return w.handOver(ctx, err)
		}
		g, err, done := w.look(ctx)
		if done {
			return g, err
		}
		if err, done := w.pause(ctx); done {
			return w.leave(ctx, err)
		}
	}
}

// look answers from the view, if there is an answer.
func (w *wait) look(ctx context.Context) (g *Grant, err error, done bool) {
	st := w.s.view.Status(w.entry.ID, w.entry.Number)
	if w.proven && (st.State == view.Waiting || st.State == view.Unseen) {
		if st.State = view.Held; w.waited {
			st.Waited = w.s.Now().Sub(w.entry.EnqueuedAt)
		}
	}
	switch {
	case st.State == view.Gone && st.Refused != nil:
		return nil, st.Refused, true // another request with the same key has taken it back
	case st.State == view.Gone:
		g, err = w.lost(ctx, st.Reason)
		return g, err, true
	case st.Refused != nil && !w.proven && w.s.view.Reached(w.doubted):
		return w.refuse(ctx, st.Refused)
	case st.State == view.Held:
		g, err = w.grant(ctx, st.Waited)
		return g, err, true
	case st.State == view.Waiting || w.waited: // as the view sees it, or the store itself
		if w.waited = true; w.try {
			g, err = w.giveWay(ctx)
			return g, err, true
		}
		w.soon = st.Soon
	}
	return nil, nil, false
}

// refuse takes back an entry that cannot stay in its queues. If what this was decided
// by has changed, it is decided anew when the view has that.
func (w *wait) refuse(ctx context.Context, why error) (g *Grant, err error, done bool) {
	while, ok := w.s.view.Grounds(w.entry.ID)
	if !ok {
		return nil, nil, false // it can stay now, of which it has been notified
	}
	if w.goneForGood(ctx) {
		return nil, why, true
	}
	err = w.s.Store.Remove(context.WithoutCancel(ctx), w.entry, lock.Withdrawn, while...)
	switch {
	case errors.Is(err, lock.Changed):
		if err = w.doubt(ctx); err != nil {
			g, err = w.leave(ctx, err)
		}
		return g, err, err != nil
	case errors.Is(err, lock.Lost) && !w.shown: // perhaps since before the request, and for no reason that still is
		g, err = w.lost(ctx, lock.Unknown)
		return g, err, true
	}
	w.s.unlessGone(w.entry, err)
	if errors.Is(why, lock.Deadlock) {
		w.s.Metrics.Deadlocked(ctx)
	}
	g, err = w.s.refusal(ctx, w.entry, why)
	return g, err, true
}

// doubt does not believe in a refusal before the view is newer than now.
func (w *wait) doubt(ctx context.Context) error {
	number, err := w.s.Store.Newest(context.WithoutCancel(ctx))
	w.doubted = number
	return err
}

// giveWay takes back the entry of a request that does not want to queue, or tells its
// grant if it has come to hold.
func (w *wait) giveWay(ctx context.Context) (*Grant, error) {
	switch {
	case w.goneForGood(ctx):
	case ctx.Err() != nil:
		w.s.inBackground(func(ctx context.Context) {
			_, err := w.s.giveWay(ctx, w.entry, lock.Withdrawn)
			w.s.unlessGone(w.entry, err)
		})
	default:
		holds, err := w.s.giveWay(context.WithoutCancel(ctx), w.entry, lock.Withdrawn)
		switch {
		case holds:
			return w.grantDirectly(ctx)
		case errors.Is(err, lock.Lost):
			return w.lost(ctx, lock.Unknown)
		}
		w.s.unlessGone(w.entry, err)
		if err != nil && !w.written {
			return nil, stands(err) // others were in front in a view that may be older than the request
		}
	}
	return w.s.refusal(ctx, w.entry, lock.ErrHeld())
}

// grantDirectly answers with an entry that holds, as the store showed.
func (w *wait) grantDirectly(ctx context.Context) (*Grant, error) {
	w.proven, w.waited = true, true
	return w.grant(ctx, max(0, w.s.Now().Sub(w.entry.EnqueuedAt)))
}

// goneForGood takes the entry back, whether it holds or not, if the client is gone
// and cannot come back to it.
func (w *wait) goneForGood(ctx context.Context) bool {
	if ctx.Err() == nil || w.client {
		return false
	}
	w.withdraw(ctx)
	return true
}

// lost answers that the entry ended. One that did not want to queue, and that no other
// request can have taken back, was in somebody's way when it was seen.
func (w *wait) lost(ctx context.Context, why lock.Reason) (*Grant, error) {
	if w.try && !w.client && why == lock.Unknown {
		return w.s.refusal(ctx, w.entry, lock.ErrHeld())
	}
	return nil, lock.LostBecause(why)
}

// grant answers with the held entry. One that was taken over from an earlier
// request, or that waited for long, gets its full TTL first, and the refresh
// proves that it is still there.
func (w *wait) grant(ctx context.Context, waited time.Duration) (*Grant, error) {
	if time.Since(w.refreshed) > freshEnough && (w.waited || w.refreshed.IsZero()) {
		if err := w.refresh(context.WithoutCancel(ctx)); err != nil {
			return w.leave(ctx, w.s.whyLost(ctx, w.entry, err))
		}
	}
	if ctx.Err() != nil {
		return w.leave(ctx, ctx.Err())
	}
	if err := w.s.Store.Refusal(); err != nil {
		return w.leave(ctx, err) // it came to hold in a store that lost its past
	}
	g := w.resumable()
	g.Held, g.Waited = true, waited
	return g, nil
}

// resumable is what a client needs to come back to the entry.
func (w *wait) resumable() *Grant {
	return &Grant{Entry: w.entry, Token: w.s.tokens.issue(w.entry), ExpiresAt: w.s.wall(w.refreshed.Add(w.entry.TTL))}
}

func (w *wait) refresh(ctx context.Context) error {
	start := time.Now()
	err := w.s.Store.Refresh(ctx, w.entry)
	if err == nil {
		w.refreshed, w.shown = start, true
	}
	return err
}

// pause waits for something to happen. It returns done with the reason for which
// the request stops waiting; nil stands for a request that was held open for as
// long as it may be.
func (w *wait) pause(ctx context.Context) (err error, done bool) {
	next, act := w.next()
	if happened, done, err := w.happened(ctx); happened {
		return err, done
	}
	t := time.NewTimer(time.Until(next))
	defer t.Stop()
	select {
	case <-w.changed:
		return nil, false
	case <-ctx.Done():
		return ctx.Err(), true
	case <-w.s.draining:
		return errDraining(), true
	case <-t.C:
		return act(ctx)
	}
}

// happened tells what happened while the request did not wait, if anything did. Of
// several things a select would take any: what the view saw comes first, because it
// may be the grant.
func (w *wait) happened(ctx context.Context) (happened, done bool, err error) {
	select {
	case <-w.changed:
		return true, false, nil
	default:
	}
	switch {
	case ctx.Err() != nil:
		return true, true, ctx.Err()
	case w.s.Draining():
		return true, true, errDraining()
	}
	return false, false, nil
}

// action is what is due when a timer of the wait fires.
type action func(context.Context) (err error, done bool)

// next returns what is due first, and when.
func (w *wait) next() (time.Time, action) {
	limit := w.limit
	if limit == 0 {
		limit = w.s.MaxHold
	}
	at, act := w.began.Add(limit), action(func(context.Context) (error, bool) { return nil, true })
	sooner := func(t time.Time, a action) {
		if t.Before(at) {
			at, act = t, a
		}
	}
	if until := w.entry.WaitUntil; !until.IsZero() {
		sooner(time.Now().Add(until.Sub(w.s.Now())), func(context.Context) (error, bool) { return errTimedOut(), true })
	}
	sooner(later(w.refreshed.Add(w.entry.TTL/3), w.again), w.keepAlive)
	if w.soon && !w.ahead && time.Since(w.refreshed) > freshEnough/2 {
		sooner(time.Now(), w.getReady)
	}
	if !w.s.view.Reached(w.doubted) {
		sooner(time.Now().Add(w.s.FeedPatience), func(context.Context) (error, bool) { return nil, false })
	}
	if lost := w.s.view.LostFor() > 0; lost || !w.s.view.Reached(w.entry.Number) {
		sooner(time.Now().Add(w.recheckAfter(lost)), w.askStore)
	}
	return at, act
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func errTimedOut() error {
	return &lock.Error{Code: lock.TimedOut, Detail: "others were in front for all of wait_seconds", RetryAfter: time.Second}
}

// recheckAfter is soon after joining, and spread while the feed is down, so that
// waiters do not ask in step.
func (w *wait) recheckAfter(lost bool) time.Duration {
	if !lost {
		return w.s.FeedPatience
	}
	return w.s.spread(recheck)
}

// keepAlive renews the lease while the client waits here. A store that does not
// answer for a moment is asked again, for as long as the client has a third of the
// lease left to come back in, or until the feed is given up too.
func (w *wait) keepAlive(ctx context.Context) (error, bool) {
	ask, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	start := time.Now()
	err := w.refresh(ask)
	switch {
	case err == nil:
		return nil, false
	case errors.Is(err, lock.Lost):
		return w.s.whyLost(ctx, w.entry, err), true
	case time.Since(start) > 2*askTimeout:
		return nil, false // this process stood still, which says nothing of the store
	}
	w.again = time.Now().Add(w.recheckAfter(true))
	failing := time.Since(later(w.refreshed, w.began))
	return err, failing > w.entry.TTL*2/3 || w.s.view.LostFor() > giveUp
}

// getReady renews the lease once before the grant, instead of at it.
func (w *wait) getReady(ctx context.Context) (error, bool) {
	w.ahead = true
	return w.keepAlive(ctx)
}

// askStore looks at the queues themselves, because the view is late or cut off.
// A consistent view that has the entry and nothing before it grants, wherever it
// comes from.
func (w *wait) askStore(ctx context.Context) (error, bool) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	st, err := w.s.standing(ctx, w.entry, true, 0)
	switch {
	case err != nil:
		return err, w.s.view.LostFor() > giveUp
	case st.entry == nil:
		return w.s.whyLost(ctx, w.entry, lock.LostBecause(lock.Unknown)), true
	case st.holds:
		w.proven = true
	default:
		w.waited = true
	}
	w.shown = true
	return nil, false
}

// leave ends a wait that was not granted.
func (w *wait) leave(ctx context.Context, why error) (*Grant, error) {
	var ended *lock.Error
	switch {
	case why == nil:
		return w.stillWaiting(ctx)
	case errors.As(why, &ended) && ended.Code == lock.Lost:
		return w.lost(ctx, ended.Reason)
	case errors.Is(why, lock.TimedOut):
		return w.timeOut(ctx, why)
	case errors.Is(why, lock.Draining):
		return w.handOver(ctx, why)
	}
	return w.resumable(), why
}

// stillWaiting answers that the entry waits, unless the store knows better than a late
// view.
func (w *wait) stillWaiting(ctx context.Context) (*Grant, error) {
	ask, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	g, err := w.s.describe(ask, w.entry, w.s.wall(w.refreshed.Add(w.entry.TTL)))
	switch {
	case err != nil:
		return w.leave(ctx, err)
	case g.Held:
		return w.grantDirectly(ctx)
	}
	return g, nil
}

// timeOut leaves the queue, unless the entry came to hold at the last moment. If another
// request has ended the same wait, that is told of an entry that was there during this
// one; otherwise the wait was over before.
func (w *wait) timeOut(ctx context.Context, why error) (*Grant, error) {
	if !w.s.view.Reached(w.entry.Number) {
		_, _ = w.askStore(ctx) // if it cannot tell, the wait is over all the same
	}
	if g, err, done := w.look(ctx); done {
		return g, err
	}
	holds, err := w.s.giveWay(context.WithoutCancel(ctx), w.entry, lock.WaitTimeout)
	switch {
	case holds:
		return w.grantDirectly(ctx)
	case errors.Is(err, lock.Lost): // it may have expired, and the lock be free
		var gone *lock.Error
		if errors.As(w.s.whyLost(ctx, w.entry, err), &gone) && (gone.Reason != lock.WaitTimeout || !w.shown) {
			return w.lost(ctx, gone.Reason)
		}
	case err != nil:
		return w.resumable(), err
	}
	return w.s.refusal(ctx, w.entry, why)
}

// handOver starts the lease anew, so that the client has one TTL to go on waiting
// at another replica.
func (w *wait) handOver(ctx context.Context, why error) (*Grant, error) {
	if err := w.refresh(context.WithoutCancel(ctx)); errors.Is(err, lock.Lost) {
		return w.leave(ctx, w.s.whyLost(ctx, w.entry, err))
	}
	return w.resumable(), why
}

// withdraw takes the entry back: nobody was told of it, or nobody is left to be
// told.
func (w *wait) withdraw(ctx context.Context) {
	if ctx.Err() == nil {
		w.s.leaveQueue(context.WithoutCancel(ctx), w.entry)
		return
	}
	w.s.inBackground(func(ctx context.Context) { w.s.leaveQueue(ctx, w.entry) })
}
