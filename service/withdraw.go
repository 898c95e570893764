package service

import (
	"context"
	"errors"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
)

// removalTimeout bounds the attempts to remove an entry from its queues.
const removalTimeout = 10 * time.Second

// withdrawals remove entries from their queues, also after the request has ended.
type withdrawals struct {
	*base
	reads *queueReads
}

// leaveQueue removes an entry that no client knows, after its client has gone.
func (w *withdrawals) leaveQueue(e *lock.Entry) {
	w.inBackground(func(ctx context.Context) {
		w.unlessGone(e, w.Store.Remove(ctx, e, lock.Withdrawn))
	})
}

// unlessGone keeps trying to remove an entry after a failed removal. Its client has learnt that
// the wait is over, and until the lease ends the entry would block others.
func (w *withdrawals) unlessGone(e *lock.Entry, err error) {
	if err == nil || errors.Is(err, lock.Lost) {
		return
	}
	w.tasks.Go(func() { w.removeAtLast(e, err) })
}

func (w *withdrawals) removeAtLast(e *lock.Entry, err error) {
	ctx, cancel := context.WithTimeout(w.closing, e.TTL)
	defer cancel()
	for store.Pause(ctx, w.spread(recheck)) == nil {
		if e.Resumable() {
			_, err = w.giveWay(ctx, e, lock.Withdrawn, false) // it may have been granted to another request
		} else {
			err = w.Store.Remove(ctx, e, lock.Withdrawn)
		}
		if err == nil || errors.Is(err, lock.Lost) {
			return
		}
	}
	w.Logger.Warn("an entry could not be removed and lapses by its lease",
		"tenant", e.Tenant, "lock", e.Name(), "entry", string(e.ID), "error", err)
}

// giveWay removes an entry from its queues because earlier entries block it. The entry may hold
// by now, and another replica may have granted it, so the removal is conditional: it happens only
// if the blocking entries still exist. giveWay returns the entry if it holds, or nil.
//
// A choosing entry is removed only if no replica has granted it. With grants, giveWay looks a last
// time, and grants it if it can choose by now: in the view if that has every write so far, because
// reading all the queues takes long, otherwise in the store.
func (w *withdrawals) giveWay(
	ctx context.Context, e *lock.Entry, why lock.Reason, grants bool,
) (held *lock.Entry, err error) {
	ctx, cancel := context.WithTimeout(ctx, removalTimeout)
	defer cancel()
	blockers, known := w.view.Queues.Blockers(e)
	since := uint64(0)
	if e.Choosing() && grants {
		since = w.reads.moment()
		if known = w.settled(ctx); known {
			if st := w.view.Status(e.ID, e.Number); st.Choice != nil {
				return w.Store.Narrow(ctx, e, st.Choice)
			}
			blockers, known = w.view.Queues.Blockers(e)
		}
	}
	for {
		if !known {
			st, err := w.reads.placeInStore(ctx, e, since)
			switch {
			case err != nil:
				return nil, err
			case st.holds:
				return st.entry, nil
			case st.choice != nil && grants:
				return w.Store.Narrow(ctx, e, st.choice)
			case st.entry == nil:
				return nil, lock.LostBecause(lock.Unknown)
			}
			blockers = st.blockers
		}
		err := w.Store.Remove(ctx, e, why, blockers...)
		if !errors.Is(err, lock.Changed) {
			return nil, err
		}
		known = false
	}
}

// inBackground runs a clean-up that must outlive its request. Close waits for it.
func (w *withdrawals) inBackground(task func(context.Context)) {
	w.tasks.Go(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(w.closing), removalTimeout)
		defer cancel()
		task(ctx)
	})
}

// endWait removes a waiting entry that may not wait any longer, because of refused, or, if that is
// nil, because its wait is over. It returns false if it has no reason to: the entry can stay, or
// held, the entry itself, holds although its wait is over. As for giveWay, the removal is
// conditional in the store. The error [lock.Changed] means that the view was stale about the
// reason.
func (w *withdrawals) endWait(
	ctx context.Context, e *lock.Entry, refused error,
) (held *lock.Entry, ended bool, err error) {
	if refused == nil {
		held, err = w.giveWay(ctx, e, lock.WaitTimeout, true)
		return held, err == nil && held == nil, err
	}
	while, ok := w.view.Rejections.Grounds(e.ID)
	if !ok {
		return nil, false, nil
	}
	if err := w.Store.Remove(ctx, e, endOf(e, refused), while...); err != nil {
		return nil, false, err
	}
	if errors.Is(refused, lock.Deadlock) {
		w.Metrics.Deadlocked(ctx)
	}
	return nil, true, nil
}

// endOf returns the reason to store for an entry that cannot stay in its queues. The store keeps it
// only for async entries: of others, the request itself returns the error. A superseded entry uses
// up its idempotency key, or a retry would join as the newest.
func endOf(e *lock.Entry, why error) lock.Reason {
	switch {
	case errors.Is(why, lock.NotNewest):
		return lock.Superseded
	case !e.Async:
		return lock.Withdrawn
	case errors.Is(why, lock.Deadlock):
		return lock.Deadlocked
	}
	return lock.Mismatched
}
