package rig_test

import (
	"context"
	"testing"
	"time"

	"github.com/fencepost/fencepost/test/rig"
)

// TestZooKeeper starts an ensemble, freezes and kills its leader, and has it
// come back.
func TestZooKeeper(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	cache, err := rig.ZooKeeperCache()
	if err != nil {
		t.Fatal(err)
	}
	java, err := rig.FetchZooKeeper(ctx, cache)
	if err != nil {
		t.Fatal(err)
	}
	z, err := rig.StartZooKeeper(ctx, rig.ZooKeeperConfig{Servers: 3, Dir: t.TempDir(), Java: java})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := z.Close(); err != nil {
			t.Error(err)
		}
	}()
	first, err := z.Leader(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := z.Server(first).Kill(); err != nil {
		t.Fatal(err)
	}
	second, err := z.Leader(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if second == first {
		t.Errorf("server %d still leads after it was killed", first)
	}
	if err := z.Server(first).Restart(ctx); err != nil {
		t.Fatal(err)
	}
}
