package handlers_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/store/etcd"
	"github.com/fencepost/fencepost/store/zookeeper"
	"github.com/fencepost/fencepost/test/rig"
)

// minTTL is that of either store.
const minTTL = max(etcd.MinTTL, zookeeper.MinTTL)

// callTimeout bounds calls of the store. A busy machine needs longer than production allows.
const callTimeout = 20 * time.Second

// backing is a store with what the server needs of it besides.
type backing interface {
	store.Store
	TokenKey() []byte
	Close() error
}

// startStore starts etcd in this process, or with STORE=zookeeper a server of
// ZooKeeper's.
func (w *world) startStore(ctx context.Context, log *slog.Logger) error {
	switch kind := os.Getenv("STORE"); kind {
	case "", "etcd":
		return w.startEtcd(ctx, log)
	case "zookeeper":
		return w.startZooKeeper(ctx, log)
	default:
		return fmt.Errorf("STORE=%s: there are etcd and zookeeper", kind)
	}
}

func (w *world) startEtcd(ctx context.Context, log *slog.Logger) error {
	conn, err := etcd.StartEmbedded(
		ctx, etcd.EmbeddedConfig{Dir: filepath.Join(w.dir, "store"), Logger: log},
	)
	if err != nil {
		return err
	}
	w.servers = conn.Close
	store, err := etcd.Open(ctx, conn, etcd.Config{Logger: log, Timeout: callTimeout})
	if err != nil {
		return err
	}
	w.store, w.records = store, store.Records()
	return nil
}

func (w *world) startZooKeeper(ctx context.Context, log *slog.Logger) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	cache, err := rig.ZooKeeperCache()
	if err != nil {
		return err
	}
	java, err := rig.FetchZooKeeper(ctx, cache)
	if err != nil {
		return err
	}
	z, err := rig.StartZooKeeper(ctx, rig.ZooKeeperConfig{Dir: w.dir, Java: java})
	if err != nil {
		return err
	}
	w.servers = z.Close
	store, err := zookeeper.Open(
		ctx, zookeeper.Config{Servers: z.Endpoints(), Logger: log, Timeout: callTimeout},
	)
	if err != nil {
		return err
	}
	w.store, w.records = store, store.Records()
	return nil
}
