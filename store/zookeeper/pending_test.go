package zookeeper_test

import (
	"errors"
	"testing"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store/batch"
	"github.com/fencepost/fencepost/store/zookeeper"
	"github.com/fencepost/fencepost/test/rig"
)

// TestPendingIsBounded: what waits to be written has the bounds that the store is opened with.
func TestPendingIsBounded(t *testing.T) {
	t.Parallel()
	z := startZooKeeper(t, rig.ZooKeeperConfig{})
	s := open(t, zookeeper.Config{
		Servers: z.Endpoints(), Pending: batch.Backlog{InAll: batch.Size{Writes: 1, Bytes: 1}},
	})
	if _, _, err := s.Enqueue(t.Context(), draft("a")); !errors.Is(err, lock.Overloaded) {
		t.Errorf("Enqueue = %v, want that there is no room for it", err)
	}
}
