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

// upkeep mends what somebody deleted, and looks who else is there, until the store is
// closed. All replicas do it; what they do is idempotent.
func (s *Store) upkeep() {
	tick := time.NewTicker(upkeepInterval)
	defer tick.Stop()
	for {
		select {
		case <-s.closing.Done():
			return
		case why := <-s.mending:
			s.attend("mend the log", operationTimeout, func(ctx context.Context) error { return s.mendLog(ctx, why) })
			_ = store.Pause(s.closing, firstPause) // at most so often; the loop sees whether it is over
		case <-tick.C:
			s.attend("look after the store's own nodes", operationTimeout, s.keepNodes)
			s.attend("look for other replicas", operationTimeout, s.meetOthers)
			s.attend("delete notices of entries that went", operationTimeout, s.deleteSpent)
		}
	}
}

// tidy folds old records and forgets old reasons until the store is closed. It may
// take long, and nobody waits for it.
func (s *Store) tidy() {
	const timeout = time.Minute
	tick := time.NewTicker(upkeepInterval)
	defer tick.Stop()
	forgot := time.Now()
	for {
		select {
		case <-s.closing.Done():
			return
		case <-tick.C:
			s.attend("fold the log", timeout, func(ctx context.Context) error { return s.archive.fold(ctx, 0) })
			if time.Since(forgot) >= forgetInterval {
				forgot = time.Now()
				s.attend("forget old reasons", timeout, func(ctx context.Context) error { return s.archive.forget(ctx, 0) })
			}
		}
	}
}

// attend does a part of the upkeep. That ZooKeeper does not answer is told by the
// connections, and need not be told again every few seconds.
func (s *Store) attend(what string, timeout time.Duration, work func(context.Context) error) {
	ctx, cancel := context.WithTimeout(s.closing, timeout)
	defer cancel()
	err := work(ctx)
	switch {
	case err == nil, s.closing.Err() != nil:
	case answered(err), errors.Is(err, errNoChroot):
		s.log.Warn("upkeep failed and is tried again", "what", what, "error", err)
	default:
		s.log.Debug("upkeep could not be done and is tried again", "what", what, "error", err)
	}
}

// meetOthers looks which connections write, and so which replicas there are.
func (s *Store) meetOthers(ctx context.Context) error {
	l, err := s.chores.get(ctx)
	if err != nil {
		return err
	}
	names, err := children(ctx, l, s.root.links())
	if err != nil {
		return err
	}
	own, err := s.calls.get(ctx)
	if err != nil {
		return err
	}
	s.leases.share(names, path.Base(own.node))
	return nil
}
