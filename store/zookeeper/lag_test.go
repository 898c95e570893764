package zookeeper_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/store/zookeeper"
	"github.com/fencepost/fencepost/test/rig"
)

// TestNoLagWithoutAFeed: a store whose feed cannot start says nothing of its lag,
// which so grows, however often it writes to the log to find out.
func TestNoLagWithoutAFeed(t *testing.T) {
	t.Parallel()
	z := startZooKeeper(t, rig.ZooKeeperConfig{})
	open(t, zookeeper.Config{Servers: z.Endpoints(), Prefix: "/lag"})
	client := hand(t, z)
	entries := func(permissions int32) {
		t.Helper()
		if _, err := client.SetACL("/lag/entries", zk.WorldACL(permissions), -1); err != nil {
			t.Fatal(err)
		}
	}
	entries(zk.PermAdmin)
	var restarts, reports atomic.Int32
	s := open(t, zookeeper.Config{Servers: z.Endpoints(), Prefix: "/lag", Observer: store.Observer{
		FeedLag: func(time.Duration) { reports.Add(1) }, Restarted: func() { restarts.Add(1) },
	}})
	f, ended := &mirror{table: lock.NewTable(), left: map[lock.ID]uint64{}}, make(chan struct{})
	ctx, end := context.WithCancel(t.Context())
	go func() { defer close(ended); s.Watch(ctx, f) }()
	defer func() { end(); <-ended }()
	within(
		t, 20*time.Second, "the feed fails to start, again and again",
		func() bool { return restarts.Load() > 7 },
	)
	if n := reports.Load(); n > 0 {
		t.Errorf("a feed that never started told its lag %d times", n)
	}
	entries(zk.PermAll)
	within(
		t, 20*time.Second, "the feed is there and tells its lag",
		func() bool { return f.isCurrent() && reports.Load() > 0 },
	)
}
