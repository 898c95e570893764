package zookeeper

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"path"
	"strconv"
	"time"

	"github.com/go-zookeeper/zk"

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
			s.attend("fold the log", timeout, func(ctx context.Context) error { return s.fold(ctx, 0) })
			if time.Since(forgot) >= forgetInterval {
				forgot = time.Now()
				s.attend("forget old reasons", timeout, func(ctx context.Context) error { return s.forget(ctx, 0) })
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

// oldLogs returns the logs before epoch that are not retired yet.
func (s *Store) oldLogs(ctx context.Context, l *link, epoch int32) (old []int32, err error) {
	names, err := children(ctx, l, s.root.logs())
	for _, name := range names {
		if n, bad := strconv.ParseInt(name, 10, 32); bad == nil && int32(n) < epoch {
			old = append(old, int32(n))
		}
	}
	return old, err
}

// forget deletes reasons that were moved long ago, and logs that are no longer in use.
// How long is told by the server's clock: by when the node was made, against one that
// is written now. ahead is added to that.
func (s *Store) forget(ctx context.Context, ahead time.Duration) error {
	l, err := s.chores.get(ctx)
	if err != nil {
		return err
	}
	now, err := s.barrierOn(ctx, l)
	if err != nil {
		return err
	}
	if err := s.forgetEnds(ctx, l, time.UnixMilli(now.Mtime).Add(ahead-endedRetention).UnixMilli()); err != nil {
		return err
	}
	old, err := s.oldLogs(ctx, l, s.epoch.Load())
	for _, epoch := range old {
		if err == nil {
			err = s.retire(ctx, l, epoch)
		}
	}
	return err
}

// forgetEnds deletes reasons that were moved before the time, in ms.
func (s *Store) forgetEnds(ctx context.Context, l *link, before int64) error {
	names, err := children(ctx, l, s.root.ended())
	if err != nil {
		return err
	}
	rand.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] }) // replicas share it so
	for _, name := range names {
		if err := s.forgetOne(ctx, l, s.root.ended()+"/"+name, before); err != nil {
			return err
		}
	}
	return nil
}

// forgetOne deletes a node of reasons that was made before the time, and the marks of
// the keys in it.
func (s *Store) forgetOne(ctx context.Context, l *link, node string, before int64) error {
	stat, err := do(ctx, l, func(c *zk.Conn) (*zk.Stat, error) {
		there, stat, err := c.Exists(node)
		if err == nil && !there {
			err = zk.ErrNoNode
		}
		return stat, err
	})
	if err == nil && stat.Ctime < before {
		var ends []end
		if ends, err = s.readMoved(ctx, l, node); err == nil {
			err = s.forgetMarks(ctx, l, ends, before)
		}
		if err == nil {
			err = s.deleteAll(ctx, l, []string{node})
		}
	}
	if errors.Is(err, zk.ErrNoNode) {
		return nil
	}
	return err
}

// retire moves what an old log says of ends, and deletes it.
func (s *Store) retire(ctx context.Context, l *link, epoch int32) error {
	all := kept{}
	err := s.eachPart(ctx, l, epoch, math.MaxInt32, func(records []folded) error {
		for i := range records {
			records[i].at = 0 // it is not in use, so that nothing is kept
		}
		all.records = append(all.records, records...)
		for len(all.records) > 0 {
			part := all.part(time.Now(), s.folding.limit())
			if err := s.move(ctx, epoch, part); err != nil {
				return err
			}
			all.records = all.records[len(part):]
		}
		return nil
	})
	if errors.Is(err, zk.ErrNoNode) {
		return nil // another replica does it
	}
	if err != nil {
		return err
	}
	names, err := children(ctx, l, s.root.log(epoch)) // which are no records
	if errors.Is(err, zk.ErrNoNode) {
		return nil
	}
	for i := range names {
		names[i] = s.root.log(epoch) + "/" + names[i]
	}
	if err != nil {
		return err
	}
	return s.deleteAll(ctx, l, append(names, s.root.log(epoch)))
}

// deleteAll deletes nodes one by one, which are few or nobody waits for.
func (s *Store) deleteAll(ctx context.Context, l *link, paths []string) error {
	for _, path := range paths {
		_, err := do(ctx, l, func(c *zk.Conn) (struct{}, error) { return struct{}{}, c.Delete(path, -1) })
		if err != nil && !errors.Is(err, zk.ErrNoNode) {
			return err
		}
	}
	return nil
}
