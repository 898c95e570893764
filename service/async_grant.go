package service

import (
	"context"
	"time"

	"github.com/fencepost/fencepost/service/replicas"
	"github.com/fencepost/fencepost/service/view"
)

// Each async entry that waited gets a full lease once, when it is granted. Its replica starts
// that lease when it sees the grant. If the replica has stopped, the replica that takes over its
// share starts the lease. So all replicas keep a list of recent grants. They cannot know whether
// the lease was started, so they start it again. They leave out old grants, because a stopped
// replica would have been replaced before.

// hold handles an entry that the view shows as a holder. A replica that has just handed the entry
// to another replica also begins its lease. The other replica may have started since, and may not
// know that the entry waited.
func (a *asyncKeeper) hold(e *asyncEntry, st view.Status) {
	if e.granted.IsZero() && a.s.mayGrant(st) {
		e.granted = time.Now()
	}
	if e.mine || !e.left.IsZero() && time.Since(e.left) < replicas.TakeOverTime {
		a.dueAt(e, time.Now())
	}
}

// takeOver handles an entry that has become part of this replica's share.
func (a *asyncKeeper) takeOver(e *asyncEntry) {
	switch {
	case e.begun:
	case !e.granted.IsZero() && time.Since(e.granted) >= replicas.TakeOverTime:
		e.begun = true // by the replica that kept it then
	default:
		a.dueAt(e, time.Now())
	}
}

// begin starts the full lease of an entry that now holds; from then on its client renews. If the
// store does not answer for long, the client has what is left of the old lease.
func (e *asyncEntry) begin(ctx context.Context, waited time.Duration) (over bool, err error) {
	if e.began.IsZero() {
		e.began = time.Now()
		e.s.Metrics.Waited(ctx, "granted", true, waited)
	}
	if time.Since(e.refreshed) <= freshEnough || time.Since(e.began) > e.entry.TTL/3 {
		return true, nil
	}
	err = e.renew(ctx)
	return err == nil, err
}
