package etcd

import "time"

const upkeepInterval = time.Second

// upkeep renews idle leases, records ends and forgets old reasons until the store is closed.
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
			s.recordEnds()
			if time.Since(forgot) >= forgetInterval {
				forgot = time.Now()
				s.forgetEnds(forgot.Add(-endedRetention))
			}
		}
	}
}
