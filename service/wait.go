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

// wait is one request that waits on an entry and keeps it alive meanwhile. It goes from stage to
// stage until there is an answer:
//
//	watch      looks, and pauses until something happens or is due
//	look       decides by what the view shows
//	choose     the entry can leave queues, and then holds
//	grant      the entry holds
//	reject     the entry cannot stay in its queues
//	giveWay    earlier entries block a request that does not queue
//	timeOut    the wait is over: a last look, and then takeBack
//	handOver   the request continues at another replica
//	gone, lost the entry has ended
//	stillWaits the request was held open for as long as it may be
type wait struct {
	keeper
	origin origin
	news   *view.Watch   // nil until the request that wrote the entry has to wait
	limit  time.Duration // bounds how long the request is held open; 0 is MaxHold

	// the stage after a look that decides nothing: pause, or takeBack when the wait is over
	undecided stage
	waited    time.Duration // for the grant, if the entry holds
	due       chore         // the next task for the entry
	timer     *time.Timer   // of the pauses; nil before the first

	blocker lock.ID // the entry to whose request the span links
	links   int

	answer *Grant
	err    error
}

// stage does the work of one state and returns the next, or nil when there is an answer. Method
// expressions, unlike method values, do not allocate.
type stage func(*wait, context.Context) stage

// run waits until the entry holds or ends, its wait is over, or the request ends. It keeps the
// lease alive meanwhile. If the client is gone and cannot resume the entry, run removes it,
// whatever the answer.
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

// finish ends the wait with an answer.
func (w *wait) finish(g *Grant, err error) stage {
	w.answer, w.err = g, err
	return nil
}

func (w *wait) watch(ctx context.Context) stage {
	if err := w.s.outdated(); err != nil {
		return handOver(err)
	}
	if w.news == nil {
		if time.Since(w.refreshed) <= freshEnough && w.s.view.Quotas.Written(w.entry) {
			w.seen, w.waited = holds, w.s.view.Status(w.entry.ID, w.entry.Number).Waited
			return (*wait).grant
		}
		w.news = w.s.view.Waits.Watch(w.entry.ID)
	}
	return w.look(ctx)
}

// look decides by what the view shows, and by what the store itself has shown.
func (w *wait) look(ctx context.Context) stage {
	st := w.s.view.Status(w.entry.ID, w.entry.Number)
	if w.seen.proven() && (st.State == view.Waiting || st.State == view.Unseen) {
		if st.State = view.Held; w.seen.waited() {
			st.Waited = w.s.view.Queues.WaitedFor(w.entry)
		}
	}
	switch {
	case st.State == view.Gone && st.Refused != nil && w.shown:
		// another request with the same key has removed it, after this one began
		return w.finish(nil, st.Refused)
	case st.State == view.Gone:
		return (*wait).gone
	case st.Refused != nil && !w.seen.proven() && w.s.view.Progress.Reached(w.doubted):
		return reject(st.Refused)
	case st.State == view.Held:
		if w.waited = st.Waited; w.entry.Choosing() { // until another request narrowed it
			w.entry = st.Entry
		}
		return (*wait).grant
	case st.Choice != nil:
		return choose(st.Choice)
	case w.choice != nil:
		return choose(w.choice)
	case st.State == view.Waiting || w.seen == waits: // as the view sees it, or the store itself
		if w.seen = waits; w.tries() {
			return (*wait).giveWay
		}
		w.linkBlocker(ctx)
		w.turn = w.turn.announced(st.Soon)
	}
	return w.undecided
}

// reject removes an entry that cannot stay in its queues. If the reason has changed by then, the
// next look decides again from a newer view.
func reject(why error) stage {
	return func(w *wait, ctx context.Context) stage {
		if w.goneForGood(ctx) {
			return w.finish(nil, why)
		}
		_, ended, err := w.s.withdrawals.endWait(context.WithoutCancel(ctx), w.entry, why)
		switch {
		case err == nil && !ended:
			return w.undecided // it can stay now, and the view has notified this request
		case errors.Is(err, lock.Changed):
			if err = w.doubt(ctx); err != nil {
				return w.leave(err)
			}
			return w.undecided
		// perhaps from before the request, for a reason that no longer holds
		case errors.Is(err, lock.Lost) && !w.shown:
			return lost(lock.Unknown)
		// the view may be older than the request
		case err != nil && !errors.Is(err, lock.Lost) && w.origin != wrote:
			return w.leave(err)
		}
		w.s.withdrawals.unlessGone(w.entry, err)
		return w.finish(w.s.refusal(ctx, w.entry, why))
	}
}

// giveWay removes the entry of a request that does not want to queue, or reports its grant if it
// holds by now.
func (w *wait) giveWay(ctx context.Context) stage {
	switch {
	case w.goneForGood(ctx):
	case ctx.Err() != nil:
		w.s.withdrawals.inBackground(func(ctx context.Context) {
			_, err := w.s.withdrawals.giveWay(ctx, w.entry, lock.Withdrawn, false)
			w.s.withdrawals.unlessGone(w.entry, err)
		})
	default:
		held, err := w.s.withdrawals.giveWay(
			context.WithoutCancel(ctx), w.entry, lock.Withdrawn, true,
		)
		switch {
		case held != nil:
			return w.grantShown(held)
		case errors.Is(err, lock.Lost):
			return lost(lock.Unknown)
		}
		w.s.withdrawals.unlessGone(w.entry, err)
		if err != nil && (w.origin != wrote || w.entry.Choosing() && w.comesBack()) {
			// earlier entries were in front in a view that may be older than the request, or a write that
			// grants the entry may have happened, and its client comes back
			return w.finish(nil, tookEffect(err))
		}
		w.awaitOthers(ctx)
	}
	return w.finish(w.s.refusal(ctx, w.entry, lock.ErrHeld()))
}

// othersTimeout bounds how long a rejected try waits to learn the holders.
const othersTimeout = 250 * time.Millisecond

// awaitOthers waits for the view to show the entries that the store reported in front. It gives
// up after othersTimeout, or at once if the feed is known to be interrupted; the refusal then
// names no holders.
func (w *wait) awaitOthers(ctx context.Context) {
	if w.s.view.Progress.LostFor() > 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, othersTimeout)
	defer cancel()
	_ = w.s.view.Progress.Await(ctx, w.entry.Number)
}

// grantShown answers for the entry, which the store itself showed as a holder.
func (w *wait) grantShown(held *lock.Entry) stage {
	w.entry = held
	w.seen, w.waited = cameToHold, w.s.view.Queues.WaitedFor(w.entry)
	return (*wait).grant
}

// choose takes a choosing entry out of all queues but those of kept.
func choose(kept []lock.Claim) stage {
	return func(w *wait, ctx context.Context) stage {
		if err := w.narrow(ctx, kept); err != nil {
			return w.leave(w.s.whyLost(ctx, w.entry, err))
		}
		if w.seen.waited() {
			w.waited = w.s.view.Queues.WaitedFor(w.entry)
		}
		return (*wait).grant
	}
}

// goneForGood removes the entry, whether it holds or not, if the client is gone and cannot come
// back to it.
func (w *wait) goneForGood(ctx context.Context) bool {
	if ctx.Err() == nil || w.comesBack() {
		return false
	}
	w.s.withdrawals.leaveQueue(w.entry)
	return true
}

// gone finds out why the entry ended. After an interruption of the feed, the reasons arrive later
// than the entries.
func (w *wait) gone(ctx context.Context) stage {
	return w.leave(w.s.lostBecause(ctx, w.entry.ID, w.entry.Number))
}

// lost answers that the entry ended. If it did not want to queue, and no other request can have
// removed it, an earlier entry blocked it when it was seen.
func lost(why lock.Reason) stage {
	return func(w *wait, ctx context.Context) stage {
		if w.tries() && !w.comesBack() && why == lock.Unknown {
			return w.finish(w.s.refusal(ctx, w.entry, lock.ErrHeld()))
		}
		return w.finish(nil, w.s.ended(w.entry.ID, why))
	}
}

// grant answers with the held entry. After a long wait, or if an earlier request wrote the entry,
// grant first restarts the lease. That also proves that the entry still exists.
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
		return w.leave(err) // the grant is in a store that lost its past
	}
	g := &Grant{
		Entry: w.entry, Held: true, Token: w.s.tokens.issue(w.entry), ExpiresAt: w.expires(),
		Waited: w.waited, Asked: w.s.view.AskedOf(w.entry),
	}
	if w.seen.waited() {
		w.linkFreed(ctx)
		w.handedOver(ctx)
	}
	return w.finish(g, nil)
}

// handedOver measures how long ago the view saw the grant, if this request waited then.
func (w *wait) handedOver(ctx context.Context) {
	if seen, holds := w.s.view.Queues.HeldSince(w.entry.ID); holds && seen.After(w.began) {
		w.s.Metrics.HandedOver(ctx, time.Since(seen))
	}
}

// pause waits for an event or a due time.
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

// end releases what the pauses used.
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

// happened reports whether anything happened since the last pause. A select would choose any of
// several events. The view comes first, because its news may be the grant.
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
	if look := now.Add(w.s.FeedTimeout); look.Before(at) && !w.s.view.Progress.Reached(w.doubted) {
		at, act = look, (*wait).watch
	}
	keep, due := w.nextChore(now)
	if w.due = due; keep.Before(at) {
		at, act = keep, (*wait).keep
	}
	return at, act
}

// keep runs the due task for the entry, and continues unless the task returns why it must not.
func (w *wait) keep(ctx context.Context) (next stage) {
	next = (*wait).watch
	aside(func() {
		if err, over := w.due(&w.keeper, ctx); over {
			next = w.leave(err)
		}
	})
	return next
}

// aside runs task on another goroutine, because a store call doubles the stack, which each
// waiting request would keep. A panic of task becomes a panic of the caller, which recovers from
// it.
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

// leave ends a wait without a grant.
func (w *wait) leave(why error) stage {
	var ended *lock.Error
	switch {
	case errors.As(why, &ended) && ended.Code == lock.Lost:
		return lost(ended.Reason)
	case errors.Is(why, lock.Draining):
		return handOver(why)
	}
	return w.finish(w.resumable(), why)
}

// stillWaits answers that the entry waits. It first checks a stale view against the store, and
// that the entry can stay, because no request attends the entry after the answer.
func (w *wait) stillWaits(ctx context.Context) stage {
	ask, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	// a view without the entry cannot show that it cannot stay
	w.s.catchUp(ask, w.entry.ID, w.entry.Number)
	st, err := w.s.Entries.stateOf(ask, w.entry)
	if err != nil {
		return w.leave(err)
	}
	if st.State == view.Waiting && st.Refused != nil {
		return reject(st.Refused)
	}
	g, err := w.s.Entries.describeAs(ask, w.entry, st, w.expires())
	switch {
	case err != nil:
		return w.leave(err)
	case g.Held:
		return w.grantShown(g.Entry)
	}
	return w.finish(g, nil)
}

// timeOut looks a last time, in case the entry was granted at the last moment.
func (w *wait) timeOut(context.Context) stage {
	w.undecided = (*wait).takeBack
	return (*wait).look
}

// takeBack leaves the queue after a wait that is over. If another request ended the wait,
// takeBack reports that only if the entry existed during this request; otherwise the wait was
// over before.
func (w *wait) takeBack(ctx context.Context) stage {
	held, _, err := w.s.withdrawals.endWait(context.WithoutCancel(ctx), w.entry, nil)
	switch {
	case held != nil:
		return w.grantShown(held)
	case errors.Is(err, lock.Lost): // it may have expired, and the lock be free
		gone, is := errors.AsType[*lock.Error](w.s.whyLost(ctx, w.entry, err))
		if is && (gone.Reason != lock.WaitTimeout || !w.shown) {
			return lost(gone.Reason)
		}
	case err != nil:
		return w.finish(w.resumable(), err)
	}
	return w.finish(w.s.refusal(ctx, w.entry, errTimedOut()))
}

// handOver restarts the lease, so that the client has one TTL to resume at another replica.
func handOver(why error) stage {
	return func(w *wait, ctx context.Context) stage {
		if err := w.refreshInTime(ctx, renewTimeout); errors.Is(err, lock.Lost) {
			return w.leave(w.s.whyLost(ctx, w.entry, err))
		}
		return w.finish(w.resumable(), why)
	}
}
