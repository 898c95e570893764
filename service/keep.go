package service

import (
	"context"
	"errors"
	"time"

	"github.com/fencepost/fencepost/lock"
)

// freshEnough is how old the last refresh of a lease may be at a grant after a wait, before the
// replica refreshes it again. The answer states how long the lease lasts, so it stays true. This
// saves a store call in the hand-over of a busy lock.
const freshEnough = 250 * time.Millisecond

// While the feed is interrupted or catching up, waiting requests ask the store themselves. They
// ask every recheck to twice recheck, each time for at most askTimeout. If that fails too and the
// feed has been gone for giveUp, they return an error. So a client learns of a lost store within
// 5 s: the feed takes 2.5 s to notice, and the rest is giveUp, the longest pause and one more
// question.
const (
	recheck    = 300 * time.Millisecond
	askTimeout = 700 * time.Millisecond
	// readTimeout bounds a shared read. It is shorter than askTimeout, so that the request that
	// began it hears of its end.
	readTimeout = askTimeout - 50*time.Millisecond
	giveUp      = 1200 * time.Millisecond
)

// keeper keeps a waiting entry alive for its request: it renews the lease, and asks the store
// about the entry when the view cannot answer.
type keeper struct {
	s         *Service
	entry     *lock.Entry
	began     time.Time // start of the request, or of its wait if that is unknown
	refreshed time.Time // no later than the last proof of a full lease; zero if unknown
	again     time.Time // earliest time to repeat a failed keepalive
	doubted   uint64    // the view's rejections count only once it has reached this number
	seen      seen
	choice    []lock.Claim // what a choosing entry may keep, as the store itself showed
	turn      turn

	// shown reports whether the store has shown the entry since the request began. It is separate
	// from what was seen. A renewal shows that the entry exists and not whether it holds, and a view
	// that shows it waiting may be older than the request.
	shown bool
}

// doubt ignores a rejection until the view is newer than now.
func (k *keeper) doubt(ctx context.Context) error {
	number, err := k.s.Store.Newest(context.WithoutCancel(ctx))
	k.doubted = number
	return err
}

// resumable returns what a client needs to resume the entry, as far as this replica knows.
func (k *keeper) resumable() *Grant {
	return &Grant{
		Entry: k.entry, Token: k.s.tokens.issue(k.entry), ExpiresAt: k.expires(),
		Position: k.s.view.Queues.Position(k.entry.ID),
	}
}

// expires returns until when the lease lasts at least: now, if nothing is known of it.
func (k *keeper) expires() time.Time {
	if k.refreshed.IsZero() {
		return k.s.Now()
	}
	return k.s.wall(k.refreshed.Add(k.entry.TTL))
}

func (k *keeper) refresh(ctx context.Context) error {
	start := time.Now()
	err := k.s.Store.Renew(ctx, k.entry)
	if err == nil {
		k.refreshed, k.shown = start, true
	}
	return err
}

// chore is one task for the entry. It returns over, with the reason, when the entry cannot be
// kept any longer.
type chore func(*keeper, context.Context) (err error, over bool)

// nextChore returns what the entry needs next, and when.
func (k *keeper) nextChore(now time.Time) (at time.Time, next chore) {
	at, next = later(k.nextRenewal(), k.again), (*keeper).keepAlive
	if k.turn == soon && now.Sub(k.refreshed) > freshEnough/2 && now.Before(at) {
		at, next = now, (*keeper).getReady
	}
	if late := k.s.view.Progress.LateFor() > 0; late || !k.s.view.Progress.Reached(k.entry.Number) {
		if ask := now.Add(k.recheckAfter(late)); ask.Before(at) {
			at, next = ask, (*keeper).askStore
		}
	}
	return at, next
}

// nextRenewal is after a third of the TTL, or up to a quarter of that sooner. The difference
// varies by entry. Otherwise many entries that arrive together, as when another replica stops,
// would always be renewed together.
func (k *keeper) nextRenewal() time.Time {
	if k.refreshed.IsZero() {
		return k.refreshed
	}
	third := k.entry.TTL / 3
	part := k.entry.Number * goldenRatio >> (64 - partBits)
	return k.refreshed.Add(third - third/4*time.Duration(part)>>partBits)
}

const (
	// goldenRatio times consecutive numbers are spread over all 64-bit numbers (Knuth, The Art of
	// Computer Programming, 6.4).
	goldenRatio = 0x9e3779b97f4a7c15
	partBits    = 10
)

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// recheckAfter is shortly after joining. While the feed is down or catching up it is spread, so
// that waiters do not all ask at once.
func (k *keeper) recheckAfter(late bool) time.Duration {
	if !late {
		return k.s.FeedTimeout
	}
	return k.s.spread(recheck)
}

// keepAlive renews the lease while the client waits here. If the store does not answer, keepAlive
// retries until a third of the lease is left, so that the client can still resume, or until the
// feed is given up too.
func (k *keeper) keepAlive(ctx context.Context) (error, bool) {
	limit := k.attempt()
	ask, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	start := time.Now()
	err := k.refresh(ask)
	switch {
	case err == nil:
		return nil, false
	case errors.Is(err, lock.Lost):
		return k.s.whyLost(ctx, k.entry, err), true
	case time.Since(start) > 2*limit:
		return nil, false // this process was paused, which shows nothing about the store
	}
	k.again = time.Now().Add(min(k.recheckAfter(true), time.Until(k.until())))
	return err, k.tooLate()
}

// until is when a waiting request reports that renewals fail: a third of the lease before its
// end, so that the client can still resume.
func (k *keeper) until() time.Time {
	return later(k.refreshed, k.began).Add(k.entry.TTL * 2 / 3)
}

// tooLate reports whether the request must now report that the store does not answer.
func (k *keeper) tooLate() bool {
	return time.Until(k.until()) <= 0 || k.s.view.Progress.LostFor() > giveUp
}

// attempt bounds one renewal that is repeated if it fails. While the feed shows that the store is
// up, a slow store gets more time instead of a second call.
func (k *keeper) attempt() time.Duration {
	if k.s.view.Progress.LostFor() > 0 {
		return k.inTime(askTimeout)
	}
	return k.inTime(renewTimeout)
}

// inTime bounds a question to the store, so that the client gets its answer before the lease is
// over. A question that begins late has a sixth of the lease, because the store may just have
// come back. If the process was paused and the lease is over, the question has askTimeout: the
// answer reports whether the entry expired.
func (k *keeper) inTime(most time.Duration) time.Duration {
	least := min(askTimeout, k.entry.TTL/6)
	if time.Since(later(k.refreshed, k.began)) > k.entry.TTL {
		least = askTimeout
	}
	return min(most, max(least, time.Until(k.until())))
}

// refreshInTime renews the lease again for an answer that is due. It does not end with the
// request.
func (k *keeper) refreshInTime(ctx context.Context, most time.Duration) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), k.inTime(most))
	defer cancel()
	return k.refresh(ctx)
}

// getReady renews the lease shortly before the grant instead of at the grant.
func (k *keeper) getReady(ctx context.Context) (error, bool) {
	k.turn = ready
	return k.keepAlive(ctx)
}

// askStore reads the queues themselves because the view is stale or cut off. Any consistent view
// with the entry and nothing before it grants the lock.
func (k *keeper) askStore(ctx context.Context) (error, bool) {
	ctx, cancel := context.WithTimeout(ctx, k.inTime(askTimeout))
	defer cancel()
	st, err := k.s.reads.placeInStore(ctx, k.entry, 0)
	switch {
	case err != nil:
		return err, k.tooLate()
	case st.entry == nil:
		return k.s.whyLost(ctx, k.entry, lock.LostBecause(lock.Unknown)), true
	}
	k.seen, k.shown, k.choice = k.seen.inStore(st.holds), true, st.choice
	if st.holds {
		k.entry = st.entry // of a pool, it has other claims now
	}
	return nil, false
}

// narrow takes a choosing entry out of all queues but those of kept. From then on it holds.
func (k *keeper) narrow(ctx context.Context, kept []lock.Claim) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), k.inTime(k.entry.TTL))
	defer cancel()
	now, err := k.s.Store.Narrow(ctx, k.entry, kept)
	if err == nil {
		k.entry, k.seen, k.shown = now, k.seen.inStore(true), true
	}
	return err
}
