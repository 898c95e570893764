package zookeeper_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/fencepost/fencepost/lock"
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

// TestReplicasShareLeases: each lease is looked at by two replicas, however many there
// are, and by others when one of them goes.
func TestReplicasShareLeases(t *testing.T) {
	t.Parallel()
	const replicas, entries = 5, 300
	z := startZooKeeper(t, rig.ZooKeeperConfig{})
	var stores []*zookeeper.Store
	for range replicas {
		s := open(t, zookeeper.Config{Servers: z.Endpoints()})
		follow(t, s)
		stores = append(stores, s)
	}
	parallel(16, entries, func(i int) {
		e := draft("a")
		e.ID = lock.ID(fmt.Sprintf("ENTRY%020d", i))
		if _, _, err := stores[0].Enqueue(t.Context(), e); err != nil {
			t.Errorf("Enqueue: %v", err)
		}
	})
	shared := func(among []*zookeeper.Store) func() bool {
		return func() bool {
			sum := 0
			for _, s := range among {
				n := s.Watched()
				if n > entries*2/3 || n < entries/len(among) {
					return false
				}
				sum += n
			}
			return sum == 2*entries
		}
	}
	within(t, 30*time.Second, "two replicas watch each lease", shared(stores))
	if err := stores[0].Close(); err != nil {
		t.Fatal(err)
	}
	within(t, 30*time.Second, "others have taken over", shared(stores[1:]))
}
