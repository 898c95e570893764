package service

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service/figures"
)

// lostTo notes a genuine token whose entry had expired: its holder still worked.
func (x *entries) lostTo(req TokenRequest, kind figures.SignKind, err error) {
	lost, is := errors.AsType[*lock.Error](err)
	if !is || lost.Code != lock.Lost || lost.Reason != lock.Expired {
		return
	}
	id, number, err := x.tokens.find(req)
	if err != nil {
		return
	}
	names := []string{req.Name}
	if req.Set {
		names = x.figures.SetOf(id, number)
	}
	for _, name := range names {
		x.figures.Sign(
			lock.Ref{Tenant: req.Tenant, Name: name},
			figures.Sign{Kind: kind, Entry: id, Number: number, At: x.Now()},
		)
	}
}

// renewedAt notes the renewal of an entry that holds, and whether it came late. Another replica
// may have renewed it in between, of which this one does not know.
func (x *entries) renewedAt(e *lock.Entry, at time.Time) {
	since, holds := x.view.HeldSince(e.ID)
	last := x.figures.Renewed(e.ID, at)
	if !holds {
		return
	}
	if since.After(last) {
		last = since
	}
	gap := at.Sub(last)
	if gap <= e.TTL*2/3 {
		return
	}
	for _, c := range e.Claims {
		x.figures.Sign(lock.Ref{Tenant: e.Tenant, Name: c.Name}, figures.Sign{
			Kind: figures.RenewedLate, Entry: e.ID, Number: e.Number, Holder: e.Holder, At: x.Now(),
			After: gap, TTL: e.TTL,
		})
	}
}

// How much of a lease is left when it is renewed only the store knows: another replica may have
// renewed it last. It is asked beside few renewals, and not while it is in trouble: a renewal
// must not come too late for that.
const (
	slackEvery   = 100 * time.Millisecond // between two that are measured
	slackTimeout = 50 * time.Millisecond  // for which the store is waited for
	slackPause   = 10 * time.Second       // after it could not tell
)

// slackSamples says which renewals are measured.
type slackSamples struct{ next atomic.Int64 } // in ns since 1970

// take reports whether one is to be measured now, and keeps others from that for a while. The next
// is never far off, unless the clock was set back: then it is now.
func (x *slackSamples) take(now time.Time) bool {
	next := x.next.Load()
	left := time.Duration(next - now.UnixNano())
	return (left <= 0 || left > slackPause) && x.next.CompareAndSwap(
		next, now.Add(slackEvery).UnixNano(),
	)
}

func (x *slackSamples) rest(now time.Time) { x.next.Store(now.Add(slackPause).UnixNano()) }

// measureSlack measures what is left of a lease that a client is about to renew.
func (x *entries) measureSlack(ctx context.Context, e *lock.Entry) {
	if _, off := x.Metrics.(silent); off || e.Tenant == lock.OwnTenant || x.view.LostFor() > 0 ||
		!x.slack.take(time.Now()) {
		return
	}
	soon, cancel := context.WithTimeout(ctx, slackTimeout)
	defer cancel()
	left, err := x.Store.Remaining(soon, e)
	switch {
	case err == nil:
		x.Metrics.RenewedWith(ctx, min(1, max(0, left.Seconds()/e.TTL.Seconds())))
	// who has gone away has not waited for the store
	case ctx.Err() == nil && !errors.Is(err, lock.Lost):
		x.slack.rest(time.Now())
	}
}

// lostOrLate is the word for a renewal of an entry that is gone.
func lostOrLate(err error) string {
	var lost *lock.Error
	if errors.As(err, &lost) && lost.Reason == lock.Expired {
		return "late"
	}
	return "lost"
}
