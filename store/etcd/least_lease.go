package etcd

import (
	"context"
	"math/rand/v2"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/fencepost/fencepost/store"
)

// checkLeases warns of servers that keep leases for longer than they are asked to: etcd silently
// gives none under one and a half election timeouts. What a holder or a replica that died had is
// then kept for longer than is promised, and others take it over later. It looks once, when the
// servers first answer.
func (s *Store) checkLeases() {
	least, err := s.leastLease()
	for err != nil {
		if store.Pause(s.closing, time.Second) != nil {
			return
		}
		least, err = s.leastLease()
	}
	if least > MinTTL {
		s.log.Warn("etcd keeps leases for longer than asked: who dies is noticed late, and async entries and webhooks are taken over late; lower --election-timeout of the etcd servers",
			"least_lease", least.String(), "needed", MinTTL.String(), "election_timeout", "1333 ms at most, etcd's default is 1000 ms")
	}
}

// leastLease returns for how long a lease is given that is asked for as short as can be.
func (s *Store) leastLease() (time.Duration, error) {
	ctx, cancel := context.WithTimeout(s.closing, operationTimeout)
	defer cancel()
	id := rand.Int64() | 1
	given, err := s.conn.leases.LeaseGrant(ctx, &pb.LeaseGrantRequest{ID: id, TTL: int64(MinTTL / time.Second)})
	if err != nil {
		return 0, err
	}
	_, _ = s.conn.leases.LeaseRevoke(ctx, &pb.LeaseRevokeRequest{ID: id}) // or it ends by itself
	return time.Duration(given.TTL) * time.Second, nil
}
