package etcd

import (
	"context"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

const (
	upkeepInterval = time.Second

	// endedRetention is how long reasons stay in the store. The contract says 10
	// minutes; the rest allows for clocks that differ between replicas.
	endedRetention = 11 * time.Minute
	forgetInterval = 30 * time.Second
)

// upkeep renews idle leases and forgets old reasons until the store is closed.
// All replicas do it; what they do is idempotent.
func (s *Store) upkeep() {
	tick := time.NewTicker(upkeepInterval)
	defer tick.Stop()
	forgot := time.Now()
	for {
		select {
		case <-s.closing.Done():
			return
		case <-tick.C:
			s.leases.maintain(s.closing)
			if time.Since(forgot) >= forgetInterval {
				forgot = time.Now()
				s.forgetEnds(forgot.Add(-endedRetention))
			}
		}
	}
}

// forgetEnds deletes the reasons recorded before the time. They are few unless
// the store was never tidied: one key for the removals of a whole transaction.
func (s *Store) forgetEnds(before time.Time) {
	ctx, cancel := context.WithTimeout(s.closing, operationTimeout)
	defer cancel()
	prefix := s.prefix + endedDir
	_, err := s.conn.kv.DeleteRange(ctx, &pb.DeleteRangeRequest{
		Key: []byte(prefix), RangeEnd: []byte(prefix + bucket(before)),
	})
	if err != nil && ctx.Err() == nil {
		s.log.Warn("old reasons could not be deleted", "error", err)
	}
}
