package rig_test

import (
	"context"
	"testing"
	"time"

	"github.com/fencepost/fencepost/test/rig"
)

func TestEtcdSurvivesTheLossOfItsLeader(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	dir := t.TempDir()
	binary, err := rig.BuildEtcd(ctx)
	if err != nil {
		t.Fatal(err)
	}
	etcd, err := rig.StartEtcd(ctx, rig.EtcdConfig{Members: 3, Dir: dir, Binary: binary})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := etcd.Close(); err != nil {
			t.Error(err)
		}
	}()
	client, err := etcd.Client()
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if _, err := client.Put(ctx, "key", "value"); err != nil {
		t.Fatal(err)
	}
	first := leader(ctx, t, etcd)
	if err := etcd.Member(first).Kill(); err != nil {
		t.Fatal(err)
	}
	if second := leader(ctx, t, etcd); second == first {
		t.Errorf("Leader() = %d, the member that was killed", second)
	}
	if err := etcd.Member(first).Restart(ctx); err != nil {
		t.Fatal(err)
	}
	got, err := client.Get(ctx, "key")
	if err != nil || len(got.Kvs) != 1 {
		t.Fatalf("Get(key) = %v, %v, want the value written before the kill", got, err)
	}
	pauseLeader(ctx, t, etcd)
}

// pauseLeader stops the leader, sees another one elected, and wakes it.
func pauseLeader(ctx context.Context, t *testing.T, etcd *rig.Etcd) {
	t.Helper()
	first := leader(ctx, t, etcd)
	if err := etcd.Member(first).Stop(); err != nil {
		t.Fatal(err)
	}
	if second := leader(ctx, t, etcd); second == first {
		t.Errorf("Leader() = %d, the member that was stopped", second)
	}
	if err := etcd.Member(first).Continue(); err != nil {
		t.Fatal(err)
	}
}

func leader(ctx context.Context, t *testing.T, etcd *rig.Etcd) int {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	i, err := etcd.Leader(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return i
}
