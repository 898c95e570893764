package service

import (
	"context"
	"errors"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
)

// removalTimeout is for how long an entry is tried to be taken out of its queues.
const removalTimeout = 10 * time.Second

// withdrawals take entries out of their queues, also after the request that asked for it.
type withdrawals struct{ *queueReads }

// leaveQueue takes back an entry that nobody was told of and whose client is gone.
func (w *withdrawals) leaveQueue(ctx context.Context, e *lock.Entry) {
	w.unlessGone(e, w.Store.Remove(ctx, e, lock.Withdrawn))
}

// unlessGone goes on to take back an entry that could not be removed: whoever was told
// that the wait is over would otherwise still block others, until the lease ends.
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
			_, err = w.giveWay(ctx, e, lock.Withdrawn) // it may have been granted to another request
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

// giveWay takes an entry out of its queues that others are in the way of. It is not
// taken out if it holds: this replica may be the last to learn that, and another one
// may have granted it. So the removal is decided by those in the way: it happens only
// if they are there still.
func (w *withdrawals) giveWay(
	ctx context.Context, e *lock.Entry, why lock.Reason,
) (holds bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, removalTimeout)
	defer cancel()
	blockers, known := w.view.Blockers(e)
	for {
		if !known {
			st, err := w.placeInStore(ctx, e, 0)
			if err != nil || st.holds {
				return st.holds, err
			}
			if blockers = st.blockers; st.entry == nil {
				return false, lock.LostBecause(lock.Unknown)
			}
		}
		err := w.Store.Remove(ctx, e, why, blockers...)
		if !errors.Is(err, lock.Changed) {
			return false, err
		}
		known = false
	}
}

// inBackground runs a clean-up that must not die with its request. Close waits.
func (w *withdrawals) inBackground(task func(context.Context)) {
	w.tasks.Go(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(w.closing), 10*time.Second)
		defer cancel()
		task(ctx)
	})
}

// carryOut takes an entry back that cannot stay in its queues, and returns why. If
// the view is late about that, or the entry is gone, a renewal goes on.
func (w *withdrawals) carryOut(ctx context.Context, e *lock.Entry, refused error) error {
	while, ok := w.view.Grounds(e.ID)
	if !ok {
		return nil
	}
	err := w.Store.Remove(context.WithoutCancel(ctx), e, endOf(e, refused), while...)
	switch {
	case errors.Is(err, lock.Changed), errors.Is(err, lock.Lost):
		return nil
	case err != nil:
		return err
	}
	return refused
}
