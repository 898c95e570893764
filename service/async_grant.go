package service

import (
	"context"
	"time"

	"github.com/fencepost/fencepost/service/replicas"
	"github.com/fencepost/fencepost/service/view"
)

// Each async entry that waited and comes to hold is given a full lease once. Its replica
// does that when it sees the grant. If that has stopped, whoever takes its share over does,
// so the others remember what came to hold. They cannot know whether it was done: it is
// done again, but not for what came to hold so long ago that its replica, if it had
// stopped, would have been replaced before.

// hold is for an entry that is seen to hold. A replica that has left it to another just now
// begins its lease too: that may have started since, and not know that it waited.
func (a *asyncKeeper) hold(e *asyncEntry, st view.Status) {
	if e.granted.IsZero() && a.s.mayBeTold(st) {
		e.granted = time.Now()
	}
	if e.mine || !e.left.IsZero() && time.Since(e.left) < replicas.TakeOverTime {
		a.dueAt(e, time.Now())
	}
}

// takeOver is for an entry that has become this replica's.
func (a *asyncKeeper) takeOver(e *asyncEntry) {
	switch {
	case e.begun:
	case !e.granted.IsZero() && time.Since(e.granted) >= replicas.TakeOverTime:
		e.begun = true // by whoever kept it then
	default:
		a.dueAt(e, time.Now())
	}
}

// begin starts a full lease for an entry that has come to hold, from which its client
// goes on. If the store cannot be asked for long, the client has what is left.
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
