package etcd

import "time"

const upkeepInterval = time.Second

// upkeep records ends, and deletes what went with them, until the store is closed. All replicas
// do it; what they do is idempotent.
func (s *Store) upkeep() {
	s.each(upkeepInterval, func() {
		s.recordEnds()
	})
}

// renewIdle renews idle leases until the store is closed. Ends do not wait for it: there
// may be many, and one that is not answered takes its time.
func (s *Store) renewIdle() {
	s.each(idleInterval, func() { s.leases.maintain(s.closing) })
}

func (s *Store) each(interval time.Duration, do func()) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-s.closing.Done():
			return
		case <-tick.C:
			do()
		}
	}
}
