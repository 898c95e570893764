package etcd_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/store/etcd"
	"github.com/fencepost/fencepost/store/storetest"
)

// TestNoLagWithoutAFeed: a store whose feed cannot start says nothing of its lag,
// which so grows.
func TestNoLagWithoutAFeed(t *testing.T) {
	t.Parallel()
	proxies := startProxies(t, startCluster(t, 1))
	conn := connect(t, proxies.addresses())
	var restarts, reports atomic.Int32
	s := openStore(t, conn, etcd.Config{Observer: store.Observer{
		FeedLag: func(time.Duration) { reports.Add(1) }, Restarted: func() { restarts.Add(1) },
	}})
	restore := proxies.cut(storetest.Broken)
	go s.Watch(t.Context(), silent{})
	eventually(
		t, "the feed fails to start, again and again", func() bool { return restarts.Load() > 2 },
	)
	if n := reports.Load(); n > 0 {
		t.Errorf("a feed that never started told its lag %d times", n)
	}
	restore()
	eventually(t, "the feed is there and tells its lag", func() bool { return reports.Load() > 0 })
}
