package zookeeper_test

import (
	"testing"
	"time"

	"github.com/fencepost/fencepost/store/zookeeper"
	"github.com/fencepost/fencepost/test/rig"
)

// TestExpiresOnABadConnection cuts the feed's connection again and again, sooner than
// a lease is over. What is known of leases outlives that, so that the entry goes.
func TestExpiresOnABadConnection(t *testing.T) {
	t.Parallel()
	z := startZooKeeper(t, rig.ZooKeeperConfig{})
	proxy := startProxy(t, z.Server(0))
	s := open(t, zookeeper.Config{Servers: []string{proxy.Address()}})
	m := follow(t, s)
	e := draft("a")
	e.TTL = 5 * time.Second
	e = enqueue(t, s, e)
	start, cuts := time.Now(), 0
	within(t, time.Minute, "the entry is gone", func() bool {
		if !m.isCurrent() {
			return false
		}
		if m.first("a") == "" {
			return true
		}
		proxy.CutAll()
		cuts++
		within(t, time.Minute, "the feed has noticed", func() bool { return !m.isCurrent() })
		return false
	})
	t.Logf("%s is gone after %v and %d cuts", e.ID, time.Since(start), cuts)
}
