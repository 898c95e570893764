package zookeeper

import (
	"context"
	"time"

	"github.com/fencepost/fencepost/store"
)

const (
	upkeepInterval = time.Second

	// endedRetention is how long the store keeps reasons. The contract requires 10 minutes; the rest
	// allows for differing clocks of replicas.
	endedRetention = 11 * time.Minute
	forgetInterval = 30 * time.Second
)

// upkeep maintains what is stored. All replicas do so; each action is idempotent.
type upkeep struct {
	*journal
	archive *archive
}

// follow finds the log in use after a write or the feed has missed it, until ctx ends.
func (u *upkeep) follow(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-u.moved:
			u.attend(ctx, "find the log", operationTimeout, u.followEpoch)
			_ = store.Pause(ctx, firstPause) // limits the rate; the loop checks whether it is over
		}
	}
}

// tidy folds old records and deletes old reasons until ctx ends. It may take long.
func (u *upkeep) tidy(ctx context.Context) {
	const timeout = time.Minute
	fold := func(ctx context.Context) error { return u.archive.fold(ctx, 0) }
	forget := func(ctx context.Context) error { return u.archive.forget(ctx, 0) }
	tick := time.NewTicker(upkeepInterval)
	defer tick.Stop()
	forgot := time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			u.attend(ctx, "fold the log", timeout, fold)
			if time.Since(forgot) >= forgetInterval {
				forgot = time.Now()
				u.attend(ctx, "delete old reasons", timeout, forget)
			}
		}
	}
}

// attend does a part of the upkeep. The connections report that ZooKeeper does not answer.
func (t *tree) attend(
	ctx context.Context, what string, timeout time.Duration, work func(context.Context) error,
) {
	soon, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err := work(soon)
	switch {
	case err == nil, ctx.Err() != nil:
	case answered(err):
		t.log.Warn("upkeep failed and is tried again", "what", what, "error", err)
	default:
		t.log.Debug("upkeep could not be done and is tried again", "what", what, "error", err)
	}
}
