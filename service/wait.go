package service

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service/view"
)

// wait is one request that waits on an entry, which it keeps alive meanwhile. It goes
// from stage to stage until there is an answer:
//
//	watch      looks, and pauses until something happens or is due
//	look       decides by what the view shows
//	grant      the entry holds
//	reject     the entry cannot stay in its queues
//	giveWay    others are in front of a request that does not queue
//	timeOut    the wait is over: a last look, and then takeBack
//	handOver   the request goes on at another replica
//	gone, lost the entry has ended
//	stillWaits the request was held open for as long as it may be
type wait struct {
	keeper
	origin origin
	news   *view.Watch   // nil before the request that wrote the entry has to wait
	limit  time.Duration // for how long to hold the request open; 0 is MaxHold

	// what follows a look that decides nothing: pause, or takeBack when the wait is over
	undecided stage
	waited    time.Duration // for the grant, if the entry holds
	due       chore         // what keeps the entry next
	timer     *time.Timer   // of the pauses; nil before the first

	blocker lock.ID // to whose request the span points
	links   int

	answer *Grant
	err    error
}

// stage does what is due in one state of a wait, and returns the next, nil when there is
// an answer. Method expressions, unlike method values, cost no allocation.
type stage func(*wait, context.Context) stage

// run waits until the entry holds, is gone, has waited for long enough, or the
// request has. It keeps the lease alive all the while. An entry for which its client can
// neither be told nor come back is not left behind, whatever the answer would have been.
func (w *wait) run(ctx context.Context) (*Grant, error) {
	if w.began.IsZero() {
		w.began = time.Now()
	}
	w.undecided = (*wait).pause
	defer w.end()
	for next := stage((*wait).watch); next != nil; {
		next = next(w, ctx)
	}
	if g := w.answer; g != nil && g.Token != "" && w.goneForGood(ctx) {
		return nil, ctx.Err()
	}
	return w.answer, w.err
}

// tell ends the wait with an answer.
func (w *wait) tell(g *Grant, err error) stage {
	w.answer, w.err = g, err
	return nil
}

func (w *wait) watch(ctx context.Context) stage {
	if err := w.s.outdated(); err != nil {
		return handOver(err)
	}
	if w.news == nil {
		if time.Since(w.refreshed) <= freshEnough && w.s.view.Written(w.entry) {
			w.seen, w.waited = holds, w.s.view.Status(w.entry.ID, w.entry.Number).Waited
			return (*wait).grant
		}
		w.news = w.s.view.Watch(w.entry.ID)
	}
	return w.look(ctx)
}

// look decides by what the view shows, and by what the store itself has shown.
func (w *wait) look(ctx context.Context) stage {
	st := w.s.view.Status(w.entry.ID, w.entry.Number)
	if w.seen.proven() && (st.State == view.Waiting || st.State == view.Unseen) {
		if st.State = view.Held; w.seen.waited() {
			st.Waited = w.s.view.WaitedFor(w.entry)
		}
	}
	switch {
	case st.State == view.Gone && st.Refused != nil && w.shown:
		// another request with the same key has taken it back, and not before this one
		return w.tell(nil, st.Refused)
	case st.State == view.Gone:
		return (*wait).gone
	case st.Refused != nil && !w.seen.proven() && w.s.view.Reached(w.doubted):
		return reject(st.Refused)
	case st.State == view.Held:
		w.waited = st.Waited
		return (*wait).grant
	case st.State == view.Waiting || w.seen == waits: // as the view sees it, or the store itself
		if w.seen = waits; w.tries() {
			return (*wait).giveWay
		}
		w.linkBlocker(ctx)
		w.turn = w.turn.announced(st.Soon)
	}
	return w.undecided
}

// reject takes back an entry that cannot stay in its queues. If what this was decided
// by has changed, it is decided again when the view has that.
func reject(why error) stage {
	return func(w *wait, ctx context.Context) stage {
		while, ok := w.s.view.Grounds(w.entry.ID)
		if !ok {
			return w.undecided // it can stay now, of which it has been notified
		}
		if w.goneForGood(ctx) {
			return w.tell(nil, why)
		}
		err := w.s.Store.Remove(context.WithoutCancel(ctx), w.entry, endOf(w.entry, why), while...)
		switch {
		case errors.Is(err, lock.Changed):
			if err = w.doubt(ctx); err != nil {
				return w.leave(err)
			}
			return w.undecided
		// perhaps since before the request, and for no reason that still is
		case errors.Is(err, lock.Lost) && !w.shown:
			return lost(lock.Unknown)
		// the view may be older than the request
		case err != nil && !errors.Is(err, lock.Lost) && w.origin != wrote:
			return w.leave(err)
		}
		w.s.unlessGone(w.entry, err)
		if errors.Is(why, lock.Deadlock) {
			w.s.Metrics.Deadlocked(ctx)
		}
		return w.tell(w.s.refusal(ctx, w.entry, why))
	}
}

// giveWay takes back the entry of a request that does not want to queue, or tells its
// grant if it has come to hold.
func (w *wait) giveWay(ctx context.Context) stage {
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
			return w.grantShown()
		case errors.Is(err, lock.Lost):
			return lost(lock.Unknown)
		}
		w.s.unlessGone(w.entry, err)
		if err != nil && w.origin != wrote {
			// others were in front in a view that may be older than the request
			return w.tell(nil, tookEffect(err))
		}
		w.awaitOthers(ctx)
	}
	return w.tell(w.s.refusal(ctx, w.entry, lock.ErrHeld()))
}

// othersTimeout is how long a try that is refused is held up at most, so that it can be told who
// holds.
const othersTimeout = 250 * time.Millisecond

// awaitOthers has the view show who was in front of the entry by what the store said, unless that
// takes too long, or the feed is known to be away: the refusal then does not say who holds.
func (w *wait) awaitOthers(ctx context.Context) {
	if w.s.view.LostFor() > 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, othersTimeout)
	defer cancel()
	_ = w.s.view.Await(ctx, w.entry.Number)
}

// grantShown is for an entry that holds, as the store showed.
func (w *wait) grantShown() stage {
	w.seen, w.waited = cameToHold, w.s.view.WaitedFor(w.entry)
	return (*wait).grant
}

// goneForGood takes the entry back, whether it holds or not, if the client is gone
// and cannot come back to it.
func (w *wait) goneForGood(ctx context.Context) bool {
	if ctx.Err() == nil || w.comesBack() {
		return false
	}
	w.s.inBackground(func(ctx context.Context) { w.s.leaveQueue(ctx, w.entry) })
	return true
}

// gone finds out why the entry ended: after an interruption of the feed the reasons come
// after the entries.
func (w *wait) gone(ctx context.Context) stage {
	return w.leave(w.s.lostBecause(ctx, w.entry.ID, w.entry.Number))
}

// lost answers that the entry ended. One that did not want to queue, and that no other
// request can have taken back, was in somebody's way when it was seen.
func lost(why lock.Reason) stage {
	return func(w *wait, ctx context.Context) stage {
		if w.tries() && !w.comesBack() && why == lock.Unknown {
			return w.tell(w.s.refusal(ctx, w.entry, lock.ErrHeld()))
		}
		return w.tell(nil, w.s.ended(w.entry.ID, why))
	}
}

// grant answers with the held entry. One that was taken over from an earlier
// request, or that waited for long, gets its full TTL first, and the refresh
// proves that it is still there.
func (w *wait) grant(ctx context.Context) stage {
	if (w.seen.waited() || w.refreshed.IsZero()) && time.Since(w.refreshed) > freshEnough {
		if err := w.refreshInTime(ctx, w.entry.TTL); err != nil {
			return w.leave(w.s.whyLost(ctx, w.entry, err))
		}
	}
	if ctx.Err() != nil {
		return w.leave(ctx.Err())
	}
	if err := w.s.Store.Refusal(); err != nil {
		return w.leave(err) // it came to hold in a store that lost its past
	}
	g := &Grant{
		Entry: w.entry, Held: true, Token: w.s.tokens.issue(w.entry), ExpiresAt: w.expires(),
		Waited: w.waited, Asked: w.s.view.AskedOf(w.entry),
	}
	if w.seen.waited() {
		w.linkFreed(ctx)
		w.handedOver(ctx)
	}
	return w.tell(g, nil)
}

// handedOver measures how long ago the view saw that the turn had come, if that was while this
// request waited.
func (w *wait) handedOver(ctx context.Context) {
	if seen, holds := w.s.view.HeldSince(w.entry.ID); holds && seen.After(w.began) {
		w.s.Metrics.HandedOver(ctx, time.Since(seen))
	}
}

// pause waits for something to happen or to be due.
func (w *wait) pause(ctx context.Context) stage {
	if happened, err := w.happened(ctx); err != nil {
		return w.leave(err)
	} else if happened {
		return (*wait).watch
	}
	next, act := w.nextDue(time.Now())
	w.setTimer(time.Until(next))
	select {
	case <-w.news.Changed:
		return (*wait).watch
	case <-ctx.Done():
		return w.leave(ctx.Err())
	case <-w.s.draining:
		return w.leave(errDraining())
	case <-w.timer.C:
		return act(w, ctx)
	}
}

// end gives back what a pause needs.
func (w *wait) end() {
	if w.news != nil {
		w.news.End()
	}
	if w.timer != nil {
		w.timer.Stop()
	}
}

func (w *wait) setTimer(d time.Duration) {
	if w.timer == nil {
		w.timer = time.NewTimer(d)
	} else {
		w.timer.Reset(d)
	}
}

// happened tells what happened while the request did not wait, if anything did. Of
// several things a select would take any: what the view saw comes first, because it
// may be the grant.
func (w *wait) happened(ctx context.Context) (bool, error) {
	select {
	case <-w.news.Changed:
		return true, nil
	default:
	}
	if ctx.Err() == nil && w.s.Draining() {
		return true, errDraining()
	}
	return ctx.Err() != nil, ctx.Err()
}

// nextDue returns what is due first, and when.
func (w *wait) nextDue(now time.Time) (time.Time, stage) {
	limit := w.limit
	if limit == 0 {
		limit = w.s.MaxHold
	}
	at, act := w.began.Add(limit), stage((*wait).stillWaits)
	if until := w.entry.WaitUntil; !until.IsZero() {
		if end := now.Add(until.Sub(w.s.Now())); end.Before(at) {
			at, act = end, (*wait).timeOut
		}
	}
	if look := now.Add(w.s.FeedTimeout); look.Before(at) && !w.s.view.Reached(w.doubted) {
		at, act = look, (*wait).watch
	}
	keep, due := w.nextChore(now)
	if w.due = due; keep.Before(at) {
		at, act = keep, (*wait).keep
	}
	return at, act
}

// keep does what keeps the entry, and goes on unless that says why not to.
func (w *wait) keep(ctx context.Context) (next stage) {
	next = (*wait).watch
	aside(func() {
		if err, over := w.due(&w.keeper, ctx); over {
			next = w.leave(err)
		}
	})
	return next
}

// aside runs task on another goroutine, because a call of the store doubles the stack, which each
// waiting request would keep. A panic of task is one of the caller, which recovers from it.
func aside(task func()) {
	var done sync.WaitGroup
	var failed any
	done.Go(func() {
		defer func() {
			if p := recover(); p != nil {
				failed = fmt.Sprintf("%v\n%s", p, debug.Stack())
			}
		}()
		task()
	})
	if done.Wait(); failed != nil {
		panic(failed)
	}
}

// leave ends a wait that was not granted.
func (w *wait) leave(why error) stage {
	var ended *lock.Error
	switch {
	case errors.As(why, &ended) && ended.Code == lock.Lost:
		return lost(ended.Reason)
	case errors.Is(why, lock.Draining):
		return handOver(why)
	}
	return w.tell(w.resumable(), why)
}

// stillWaits answers that the entry waits, unless the store knows better than a late
// view, or the entry cannot stay: nobody attends it after the answer.
func (w *wait) stillWaits(ctx context.Context) stage {
	ask, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	// a view without the entry cannot say that it cannot stay
	w.s.catchUp(ask, w.entry.ID, w.entry.Number)
	st, err := w.s.stateOf(ask, w.entry)
	if err != nil {
		return w.leave(err)
	}
	if st.State == view.Waiting && st.Refused != nil {
		return reject(st.Refused)
	}
	g, err := w.s.describeAs(ask, w.entry, st, w.expires())
	switch {
	case err != nil:
		return w.leave(err)
	case g.Held:
		return w.grantShown()
	}
	return w.tell(g, nil)
}

// timeOut looks a last time, unless the entry came to hold at the last moment.
func (w *wait) timeOut(context.Context) stage {
	w.undecided = (*wait).takeBack
	return (*wait).look
}

// takeBack leaves the queue after a wait that is over. If another request has ended the
// same wait, that is told of an entry that was there during this one; otherwise the wait
// was over before.
func (w *wait) takeBack(ctx context.Context) stage {
	holds, err := w.s.giveWay(context.WithoutCancel(ctx), w.entry, lock.WaitTimeout)
	switch {
	case holds:
		return w.grantShown()
	case errors.Is(err, lock.Lost): // it may have expired, and the lock be free
		var gone *lock.Error
		if errors.As(
			w.s.whyLost(ctx, w.entry, err), &gone,
		) && (gone.Reason != lock.WaitTimeout || !w.shown) {
			return lost(gone.Reason)
		}
	case err != nil:
		return w.tell(w.resumable(), err)
	}
	return w.tell(w.s.refusal(ctx, w.entry, errTimedOut()))
}

// handOver starts the lease again, so that the client has one TTL to go on waiting
// at another replica.
func handOver(why error) stage {
	return func(w *wait, ctx context.Context) stage {
		if err := w.refreshInTime(ctx, renewTimeout); errors.Is(err, lock.Lost) {
			return w.leave(w.s.whyLost(ctx, w.entry, err))
		}
		return w.tell(w.resumable(), why)
	}
}
