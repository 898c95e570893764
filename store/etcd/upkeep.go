package etcd

import "time"

const upkeepInterval = time.Second

// upkeep renews idle leases and records ends until the store is closed.
// All replicas do it; what they do is idempotent.
func (s *Store) upkeep() {
	tick := time.NewTicker(upkeepInterval)
	defer tick.Stop()
	for {
		select {
		case <-s.closing.Done():
			return
		case <-tick.C:
			s.leases.maintain(s.closing)
			s.memory.prepare(s.closing)
			s.recordEnds()
		}
	}
}
