package etcd_test

import (
	"errors"
	"testing"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store/batch"
	"github.com/fencepost/fencepost/store/etcd"
)

// TestPendingIsBounded: what waits to be written has the bounds that the store is opened with.
func TestPendingIsBounded(t *testing.T) {
	conn := startEmbedded(t, etcd.EmbeddedConfig{})
	s := openStore(
		t, conn, etcd.Config{Pending: batch.Backlog{InAll: batch.Size{Writes: 1, Bytes: 1}}},
	)
	if _, _, err := s.Enqueue(t.Context(), newEntry("a", "large")); !errors.Is(err, lock.Overloaded) {
		t.Errorf("Enqueue = %v, want that there is no room for it", err)
	}
}
