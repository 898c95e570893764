package etcd

import (
	"time"

	"github.com/fencepost/fencepost/store"
)

const upkeepInterval = time.Second

// upkeep records ends until the store is closed. All replicas do so; each action is idempotent.
func (s *Store) upkeep() {
	for store.Pause(s.closing, upkeepInterval) == nil {
		s.recordEnds()
	}
}

// renewIdle renews idle leases until the store is closed. It runs apart from upkeep, because
// there may be many leases, and an unanswered renewal takes its full timeout.
func (s *Store) renewIdle() {
	for store.Pause(s.closing, idleInterval) == nil {
		s.leases.maintain(s.closing)
	}
}
