package zookeeper_test

import (
	"errors"
	"testing"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/store/zookeeper"
	"github.com/fencepost/fencepost/test/rig"
)

// TestFormOfAnEntryAlone has an entry in a future form that meta does not require, as after a
// restore. It is not taken for a damaged one, which would be removed after a minute.
func TestFormOfAnEntryAlone(t *testing.T) {
	t.Parallel()
	z := startZooKeeper(t, rig.ZooKeeperConfig{})
	client := hand(t, z)
	s := open(t, zookeeper.Config{Servers: z.Endpoints()})
	e := enqueue(t, s, draft("a"))
	overwriteEntries(t, client, `{"form":99,"mode":"of the future"}`)
	late := open(t, zookeeper.Config{Servers: z.Endpoints()})
	entries, _, err := late.Queue(t.Context(), lock.Ref{Tenant: "acme", Name: "a"})
	if err != nil || len(entries) != 1 || entries[0].ID != e.ID || entries[0].Number != e.Number ||
		entries[0].TTL != lock.MaxTTL {
		t.Fatalf("the queue is %v, %v", entries, err)
	}
	if !errors.Is(late.Refusal(), store.ErrNewerForm) {
		t.Errorf("it grants: %v", late.Refusal())
	}
	if _, _, err := late.Enqueue(t.Context(), draft("b")); !errors.Is(err, store.ErrNewerForm) {
		t.Errorf("Enqueue = %v", err)
	}
	if err := s.Refusal(); err != nil {
		t.Errorf("one that has not read it refuses: %v", err)
	}
}
