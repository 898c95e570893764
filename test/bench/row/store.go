package row

import (
	"context"
	"fmt"
)

// Store is a kind of store. The zero value is etcd.
type Store struct{ zooKeeper bool }

func (s *Store) String() string {
	if s.zooKeeper {
		return "ZooKeeper"
	}
	return "etcd"
}

// Set implements [flag.Value].
func (s *Store) Set(name string) error {
	switch name {
	case "etcd":
		s.zooKeeper = false
	case "zookeeper":
		s.zooKeeper = true
	default:
		return fmt.Errorf("must be etcd or zookeeper")
	}
	return nil
}

// started is a store outside of the servers.
type started struct {
	address string
	login   []string // flags of servers
	pids    []int
	// renewals returns how many leases were renewed up to now, by the store's own figures or
	// by those of the servers, all of which have to run.
	renewals func(context.Context, []*replica) (float64, error)
}

// startStore starts the store that the run is on, for several servers.
func (b *bench) startStore(ctx context.Context, cs *closers) (*started, error) {
	if b.Store.zooKeeper {
		z, err := b.startZooKeeper(ctx, "store", cs)
		if err != nil {
			return nil, err
		}
		login, err := b.zooKeeperLogin()
		return &started{z.Store(), login, []int{z.Server(0).PID()}, renewalsOfServers}, err
	}
	etcd, err := b.startEtcd(ctx, "store", 1, cs)
	if err != nil {
		return nil, err
	}
	return &started{etcd.Store(), nil, etcd.pids(), func(ctx context.Context, _ []*replica) (float64, error) {
		families, err := metricsAt(ctx, "http://"+etcd.Endpoints()[0])
		return sum(families["etcd_debugging_lease_renewed_total"]), err
	}}, nil
}

// renewalsOfServers is how many renewals servers have sent to their store.
func renewalsOfServers(ctx context.Context, servers []*replica) (all float64, err error) {
	for _, r := range servers {
		families, err := metricsAt(ctx, r.URL())
		if err != nil {
			return 0, err
		}
		for _, m := range families["fencepost_store_operation_duration_seconds"].GetMetric() {
			for _, l := range m.GetLabel() {
				if l.GetName() == "operation" && l.GetValue() == "renew" {
					all += float64(m.GetHistogram().GetSampleCount())
				}
			}
		}
	}
	return all, nil
}

// serveOne starts one server on the store that the run is on, with its profiler.
func (b *bench) serveOne(ctx context.Context, cs *closers, args ...string) (*served, error) {
	s, store := &served{}, ""
	if b.Store.zooKeeper {
		z, err := b.startStore(ctx, cs)
		if err != nil {
			return nil, err
		}
		store, args, s.pids = z.address, append(z.login, args...), z.pids
	}
	var err error
	if s.replica, err = b.launch(ctx, true, store, cs, args...); err != nil {
		return nil, err
	}
	s.pids = append(s.pids, s.PID())
	s.load, err = clients(s.replica, cs)
	return s, err
}
