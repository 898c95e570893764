package drive

import (
	"context"
	"errors"
	"time"

	"github.com/fencepost/fencepost/test/rig"
)

// Cluster is the store behind the service, of whatever kind.
type Cluster interface {
	Store() string // the value of the server's --store
	Size() int
	Member(i int) Member // counted from 0
	Leader(ctx context.Context) (int, error)
	// Observe starts observing what the service keeps of the tenant.
	Observe(ctx context.Context, tenant string, now func() time.Duration) (*Store, error)
	// Forget has the store lose what it knows of the past.
	Forget(ctx context.Context) error
	Close() error
}

// Member is one server of a cluster.
type Member interface {
	Kill() error
	Restart(ctx context.Context) error
	Stop() error
	Continue() error
	Data() string // the folder with what it has stored
}

// Etcd is a cluster of etcd.
type Etcd struct{ *rig.Etcd }

// Member returns member i.
func (e Etcd) Member(i int) Member { return e.Etcd.Member(i) }

// Observe watches.
func (e Etcd) Observe(
	ctx context.Context,
	tenant string,
	now func() time.Duration,
) (*Store, error) {
	client, err := e.Client()
	if err != nil {
		return nil, err
	}
	return ObserveEtcd(ctx, client, tenant, now)
}

// Forget compacts.
func (e Etcd) Forget(ctx context.Context) error {
	client, err := e.Client()
	if err != nil {
		return err
	}
	newest, err := client.Get(ctx, "nothing")
	if err == nil {
		_, err = client.Compact(ctx, newest.Header.Revision)
	}
	return errors.Join(err, client.Close())
}

// ZooKeeper is an ensemble of ZooKeeper.
type ZooKeeper struct{ *rig.ZooKeeper }

// Member returns server i.
func (z ZooKeeper) Member(i int) Member { return z.Server(i) }

// Observe reads the log of changes.
func (z ZooKeeper) Observe(
	ctx context.Context,
	tenant string,
	now func() time.Duration,
) (*Store, error) {
	return ObserveZooKeeper(ctx, z.Endpoints(), tenant, now)
}

// Forget does nothing: a replica that starts reads nothing of the past.
func (z ZooKeeper) Forget(context.Context) error { return nil }
