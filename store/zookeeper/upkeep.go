package zookeeper

import (
	"context"
	"errors"
	"path"
	"time"

	"github.com/fencepost/fencepost/store"
)

const (
	upkeepInterval = time.Second

	// endedRetention is how long reasons stay in the store. The contract says 10
	// minutes; the rest allows for clocks that differ between replicas.
	endedRetention = 11 * time.Minute
	forgetInterval = 30 * time.Second
)

// upkeep looks after what is stored. All replicas do it; what they do is idempotent.
type upkeep struct {
	*journal
	calls   *connector // of which it is told which one is this replica's
	chores  *connector
	meta    *metaKeeper
	feed    *feed
	leases  *leases
	archive *archive
}

// mendAll mends what somebody deleted, and looks who else is there, until ctx ends.
func (u *upkeep) mendAll(ctx context.Context) {
	tick := time.NewTicker(upkeepInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case why := <-u.mending:
			u.attend(ctx, "mend the log", operationTimeout, func(ctx context.Context) error { return u.mendLog(ctx, why) })
			_ = store.Pause(ctx, firstPause) // at most so often; the loop sees whether it is over
		case <-tick.C:
			u.attend(ctx, "look after the store's own nodes", operationTimeout, u.keepNodes)
			u.attend(ctx, "look for other replicas", operationTimeout, u.meetOthers)
			u.attend(ctx, "delete notices of entries that went", operationTimeout, u.deleteSpent)
		}
	}
}

// tidy folds old records and forgets old reasons until ctx ends. It may
// take long, and nobody waits for it.
func (u *upkeep) tidy(ctx context.Context) {
	const timeout = time.Minute
	tick := time.NewTicker(upkeepInterval)
	defer tick.Stop()
	forgot := time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			u.attend(ctx, "fold the log", timeout, func(ctx context.Context) error { return u.archive.fold(ctx, 0) })
			if time.Since(forgot) >= forgetInterval {
				forgot = time.Now()
				u.attend(ctx, "forget old reasons", timeout, func(ctx context.Context) error { return u.archive.forget(ctx, 0) })
			}
		}
	}
}

// attend does a part of the upkeep. That ZooKeeper does not answer is told by the
// connections, and need not be told again every few seconds.
func (t *tree) attend(ctx context.Context, what string, timeout time.Duration, work func(context.Context) error) {
	soon, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err := work(soon)
	switch {
	case err == nil, ctx.Err() != nil:
	case answered(err), errors.Is(err, errNoChroot):
		t.log.Warn("upkeep failed and is tried again", "what", what, "error", err)
	default:
		t.log.Debug("upkeep could not be done and is tried again", "what", what, "error", err)
	}
}

// meetOthers looks which connections write, and so which replicas there are.
func (u *upkeep) meetOthers(ctx context.Context) error {
	l, err := u.chores.get(ctx)
	if err != nil {
		return err
	}
	names, err := children(ctx, l, u.root.links())
	if err != nil {
		return err
	}
	own, err := u.calls.get(ctx)
	if err != nil {
		return err
	}
	u.leases.share(names, path.Base(own.node))
	return nil
}
