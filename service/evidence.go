package service

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service/figures"
)

// lostTo notes a genuine token whose entry had expired: its holder was still working.
func (x *Entries) lostTo(req TokenRequest, kind figures.SignKind, err error) {
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

// renewedAt notes the renewal of a held entry, and whether it came late. This replica does not
// see renewals that another replica made in between.
func (x *Entries) renewedAt(e *lock.Entry, at time.Time) {
	since, holds := x.view.Queues.HeldSince(e.ID)
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

// Only the store knows how much of a lease is left at a renewal, because another replica may have
// renewed last. The replica asks it for a few renewals only, and pauses after a failure: the
// question must not delay renewals.
const (
	slackEvery   = 100 * time.Millisecond // between two measured renewals
	slackTimeout = 50 * time.Millisecond  // bounds one question to the store
	slackPause   = 10 * time.Second       // after a question that failed
)

// slackSamples chooses which renewals are measured.
type slackSamples struct{ next atomic.Int64 } // in ns since 1970

// take reports whether to measure a renewal now, and if so defers the next one. The next one is
// never far off. If the clock was set back, it is now.
func (x *slackSamples) take(now time.Time) bool {
	next := x.next.Load()
	left := time.Duration(next - now.UnixNano())
	return (left <= 0 || left > slackPause) &&
		x.next.CompareAndSwap(next, now.Add(slackEvery).UnixNano())
}

func (x *slackSamples) rest(now time.Time) { x.next.Store(now.Add(slackPause).UnixNano()) }

// measureSlack measures what is left of a lease just before its renewal.
func (x *Entries) measureSlack(ctx context.Context, e *lock.Entry) {
	_, off := x.Metrics.(silent)
	if off || e.Tenant == lock.OwnTenant || x.view.Progress.LostFor() > 0 ||
		!x.slack.take(time.Now()) {
		return
	}
	soon, cancel := context.WithTimeout(ctx, slackTimeout)
	defer cancel()
	left, err := x.Store.Remaining(soon, e)
	switch {
	case err == nil:
		x.Metrics.RenewedWith(ctx, min(1, max(0, left.Seconds()/e.TTL.Seconds())))
	// a client that disconnected did not wait for the store
	case ctx.Err() == nil && !errors.Is(err, lock.Lost):
		x.slack.rest(time.Now())
	}
}

// lostOrLate returns the metric's word for a renewal of an entry that is gone.
func lostOrLate(err error) string {
	var lost *lock.Error
	if errors.As(err, &lost) && lost.Reason == lock.Expired {
		return "late"
	}
	return "lost"
}
