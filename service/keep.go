package service

import (
	"context"
	"errors"
	"time"

	"github.com/fencepost/fencepost/lock"
)

// freshEnough is how old the last refresh of a lease may be when a waited grant
// is answered without another one. The answer tells until when the lease lasts,
// so nothing is claimed that is not so; this only keeps a store call out of the
// hand-over of a busy lock.
const freshEnough = 250 * time.Millisecond

// While the feed is interrupted, or is yet to tell what happened meanwhile, waiting requests ask
// the store themselves: after recheck, spread over as much again, each time for at most askTimeout.
// When that fails too and the feed has been gone for giveUp, they are told. A store that is lost is
// so made known within 5 s, of which the feed takes 2.5 to notice; the rest is giveUp, the longest
// pause and one more question.
const (
	recheck    = 300 * time.Millisecond
	askTimeout = 700 * time.Millisecond
	// readTimeout is that of a read that several share: who began it hears of its end
	// before it gives up itself.
	readTimeout = askTimeout - 50*time.Millisecond
	giveUp      = 1200 * time.Millisecond
)

// keeper is this replica's hold on an entry that waits: it keeps the lease alive, and asks
// the store about the entry where the view cannot tell.
type keeper struct {
	s         *Service
	entry     *lock.Entry
	began     time.Time // the request, or its wait if that is not known
	refreshed time.Time // before the last proof of a full lease; zero if unknown
	again     time.Time // not before then is a failed keepalive repeated
	doubted   uint64    // no rejection counts before the view has reached it
	seen      seen
	turn      turn

	// shown is that the store has shown the entry since the request began. It stands beside what was
	// seen: a renewal shows the entry and not whether it holds, and a view that shows it waiting may
	// be older than the request.
	shown bool
}

// doubt does not believe in a rejection before the view is newer than now.
func (k *keeper) doubt(ctx context.Context) error {
	number, err := k.s.Store.Newest(context.WithoutCancel(ctx))
	k.doubted = number
	return err
}

// resumable is what a client needs to come back to the entry, as far as this replica
// knows.
func (k *keeper) resumable() *Grant {
	return &Grant{
		Entry: k.entry, Token: k.s.tokens.issue(k.entry), ExpiresAt: k.expires(),
		Position: k.s.view.Position(k.entry.ID),
	}
}

// expires is until when the lease lasts at least: now, if nothing is known of it.
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

// chore is something that the entry needs. It returns over with the reason for which the entry
// cannot be kept any longer.
type chore func(*keeper, context.Context) (err error, over bool)

// nextChore returns what the entry needs next, and when.
func (k *keeper) nextChore(now time.Time) (at time.Time, next chore) {
	at, next = later(k.nextRenewal(), k.again), (*keeper).keepAlive
	if k.turn == soon && now.Sub(k.refreshed) > freshEnough/2 && now.Before(at) {
		at, next = now, (*keeper).getReady
	}
	if late := k.s.view.LateFor() > 0; late || !k.s.view.Reached(k.entry.Number) {
		if ask := now.Add(k.recheckAfter(late)); ask.Before(at) {
			at, next = ask, (*keeper).askStore
		}
	}
	return at, next
}

// nextRenewal is after a third of the TTL, or up to a quarter of that sooner. How much sooner
// differs from one entry to the next: a crowd that came here at once, as when another replica has
// ended, would else be renewed at once again and again.
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

// recheckAfter is soon after joining, and spread while the feed is down or tells of the past, so
// that waiters do not ask in step.
func (k *keeper) recheckAfter(late bool) time.Duration {
	if !late {
		return k.s.FeedTimeout
	}
	return k.s.spread(recheck)
}

// keepAlive renews the lease while the client waits here. A store that does not
// answer for a moment is asked again, for as long as the client has a third of the
// lease left to come back in, or until the feed is given up too.
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
		return nil, false // this process stood still, which says nothing of the store
	}
	k.again = time.Now().Add(min(k.recheckAfter(true), time.Until(k.until())))
	return err, k.tooLate()
}

// until is when who waits is told that renewals fail: with a third of the lease left to come back
// in.
func (k *keeper) until() time.Time {
	return later(k.refreshed, k.began).Add(k.entry.TTL * 2 / 3)
}

// tooLate reports whether who waits is told, after a store could not be asked.
func (k *keeper) tooLate() bool { return time.Until(k.until()) <= 0 || k.s.view.LostFor() > giveUp }

// attempt is for how long a renewal is waited for that is repeated if it fails. While the feed
// shows that the store is there, a store that is slow is not asked again in vain.
func (k *keeper) attempt() time.Duration {
	if k.s.view.LostFor() > 0 {
		return k.inTime(askTimeout)
	}
	return k.inTime(renewTimeout)
}

// inTime bounds how long the store is asked, so that the client is told before the lease is over. A
// question that begins late has a sixth of the lease: the store may have come back just then. One
// that begins when the lease is over, in a process that stood still, has askTimeout: the answer
// tells whether it expired, and there is nothing left to come back for.
func (k *keeper) inTime(most time.Duration) time.Duration {
	least := min(askTimeout, k.entry.TTL/6)
	if time.Since(later(k.refreshed, k.began)) > k.entry.TTL {
		least = askTimeout
	}
	return min(most, max(least, time.Until(k.until())))
}

// refreshInTime renews the lease once more, for an answer that is due and so does not end with the
// request.
func (k *keeper) refreshInTime(ctx context.Context, most time.Duration) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), k.inTime(most))
	defer cancel()
	return k.refresh(ctx)
}

// getReady renews the lease once before the grant, instead of at it.
func (k *keeper) getReady(ctx context.Context) (error, bool) {
	k.turn = ready
	return k.keepAlive(ctx)
}

// askStore looks at the queues themselves, because the view is late or cut off.
// A consistent view that has the entry and nothing before it grants, wherever it
// comes from.
func (k *keeper) askStore(ctx context.Context) (error, bool) {
	ctx, cancel := context.WithTimeout(ctx, k.inTime(askTimeout))
	defer cancel()
	st, err := k.s.placeInStore(ctx, k.entry, 0)
	switch {
	case err != nil:
		return err, k.tooLate()
	case st.entry == nil:
		return k.s.whyLost(ctx, k.entry, lock.LostBecause(lock.Unknown)), true
	}
	k.seen, k.shown = k.seen.inStore(st.holds), true
	return nil, false
}
