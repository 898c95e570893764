package etcd

import "time"

// LeastLease is for how long a lease is given that is asked for as short as can be.
func (s *Store) LeastLease() (time.Duration, error) { return s.leastLease() }
