package etcd

import (
	"time"

	"github.com/fencepost/fencepost/store"
)

const upkeepInterval = time.Second

// upkeep records ends until the store is closed. All replicas do it; what they do is idempotent.
func (s *Store) upkeep() {
	for store.Pause(s.closing, upkeepInterval) == nil {
		s.recordEnds()
	}
}

// renewIdle renews idle leases until the store is closed. Ends do not wait for it: there
// may be many, and one that is not answered takes its time.
func (s *Store) renewIdle() {
	for store.Pause(s.closing, idleInterval) == nil {
		s.leases.maintain(s.closing)
	}
}
