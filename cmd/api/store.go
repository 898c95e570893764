package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/store/etcd"
	"github.com/fencepost/fencepost/store/zookeeper"
	"github.com/fencepost/fencepost/telemetry"
)

// openedStore is what the server needs of either adapter.
type openedStore interface {
	store.Store

	// TokenKey is the secret behind the lock tokens that the store keeps.
	TokenKey() []byte
	Close() error

	// smallRecords are the store's small records.
	smallRecords() store.RecordStore
}

// minTTL is the shortest lease that the store keeps to.
func (c *config) minTTL() time.Duration { //nolint:unparam // equal in both stores today
	if c.backend == storeZooKeeper {
		return zookeeper.MinTTL
	}
	return etcd.MinTTL
}

// reasonOf is why nothing is granted, as the metric has it.
func reasonOf(refusal error) string {
	switch {
	case refusal == nil:
		return ""
	case errors.Is(refusal, store.ErrNewerForm):
		return telemetry.RefusedNewerVersion
	}
	return telemetry.RefusedLostPast
}

// openStore starts or reaches the store and opens it.
func openStore(ctx context.Context, c *config, t *telemetry.Telemetry) (openedStore, error) {
	open := openEtcd
	if c.backend == storeZooKeeper {
		open = openZooKeeper
	}
	s, err := open(ctx, c, t)
	if unavailable, ok := errors.AsType[*lock.Error](err); ok &&
		unavailable.Code == lock.StoreUnavailable {
		// The detail is for clients of the API: they have another remedy.
		err = fmt.Errorf("the store %s cannot be used; check that it runs, its addresses in --store "+
			"and the access to it: %w", c.store, cmp.Or(unavailable.Cause, error(unavailable)))
	}
	return s, err
}

func openZooKeeper(ctx context.Context, c *config, t *telemetry.Telemetry) (openedStore, error) {
	s, err := zookeeper.Open(ctx, zookeeperConfig(c, t))
	if err != nil {
		return nil, err
	}
	return zookeeperStore{s}, nil
}

func zookeeperConfig(c *config, t *telemetry.Telemetry) zookeeper.Config {
	return zookeeper.Config{
		Servers: c.endpoints, Chroot: c.chroot, TLS: c.tls, Username: c.storeUsername,
		Password: c.storePass, Logger: t.Logger(), FenceFloor: c.fenceFloor, Observer: observeStore(t),
	}
}

type zookeeperStore struct{ *zookeeper.Store }

func (s zookeeperStore) smallRecords() store.RecordStore { return s.Records() }

func openEtcd(ctx context.Context, c *config, t *telemetry.Telemetry) (openedStore, error) {
	conn, err := connectEtcd(ctx, c, t.Logger())
	if err != nil {
		return nil, err
	}
	s, err := etcd.Open(ctx, conn, etcdConfig(c, t))
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	if _, inside := conn.Size(); inside {
		t.Metrics().ObserveStoreSize(func() (used, quota int64) {
			now, _ := conn.Size()
			return now.Used, now.Quota
		})
	}
	return etcdStore{s, conn}, nil
}

func etcdConfig(c *config, t *telemetry.Telemetry) etcd.Config {
	return etcd.Config{Logger: t.Logger(), FenceFloor: c.fenceFloor, Observer: observeStore(t)}
}

// etcdStore closes its connection with it.
type etcdStore struct {
	*etcd.Store
	conn *etcd.Conn
}

func (s etcdStore) smallRecords() store.RecordStore { return s.Records() }

func (s etcdStore) Close() error { return errors.Join(s.Store.Close(), s.conn.Close()) }

func connectEtcd(ctx context.Context, c *config, log *slog.Logger) (*etcd.Conn, error) {
	if c.backend == storeEmbedded {
		return etcd.StartEmbedded(
			ctx, etcd.EmbeddedConfig{Dir: c.dataDir, Quota: c.quotaMB << 20, Logger: log},
		)
	}
	return etcd.Dial(etcd.RemoteConfig{
		Endpoints: c.endpoints, TLS: c.tls, Username: c.storeUsername, Password: c.storePass,
	})
}

// observeStore leads what the store tells into the metrics and traces. From here on the feed
// falls behind until it says otherwise, so that one that never starts is seen too.
func observeStore(t *telemetry.Telemetry) store.Observer {
	ctx, m := context.Background(), t.Metrics()
	m.FeedLag(0)
	return store.Observer{
		Operation: func(name string, took time.Duration, err error) {
			outcome := telemetry.OutcomeOK
			if err != nil {
				outcome = telemetry.OutcomeError
			}
			m.StoreOperation(ctx, name, outcome, took)
		},
		Batch:     func(writes int) { m.Batched(ctx, writes) },
		Sending:   telemetry.BatchSpans(t.Tracer()),
		FeedLag:   m.FeedLag,
		Restarted: func() { m.FeedRestarted(ctx) },
	}
}
