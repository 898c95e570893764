package drive_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store/zookeeper"
	"github.com/fencepost/fencepost/test/faults/drive"
	"github.com/fencepost/fencepost/test/faults/history"
	"github.com/fencepost/fencepost/test/rig"
)

// TestStoreInZooKeeper holds what is observed, and the removal that looks like an
// expiry, against the adapter itself.
func TestStoreInZooKeeper(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	z, adapter := zooKeeper(ctx, t)
	placed := map[lock.ID]*lock.Entry{}
	for _, e := range []*lock.Entry{entry("acme", "e1", "l"), entry("other", "e2", "l"), entry("acme", "e3", "l", "k"), entry("acme", "e4", "m")} {
		p, _, err := adapter.Enqueue(ctx, e)
		if err != nil {
			t.Fatal(err)
		}
		placed[e.ID] = p
	}
	store, err := drive.ZooKeeper{ZooKeeper: z}.Observe(ctx, "acme", history.NewRecorder().Now)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	for name, want := range map[string][]string{"l": {"e1", "e3"}, "k": {"e3"}} {
		queue, err := store.AwaitQueue(ctx, name, len(want))
		if diff := cmp.Diff(want, queue); err != nil || diff != "" {
			t.Fatalf("AwaitQueue(%s): %v (-want +got):\n%s", name, err, diff)
		}
	}
	if _, err := store.Expire(ctx, "e3"); err != nil {
		t.Fatal(err)
	}
	if _, err := store.AwaitLeft(ctx, "e3"); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Expire(ctx, "e3"); !errors.Is(err, drive.ErrNotThere) {
		t.Errorf("Expire(e3) again = %v, want ErrNotThere", err)
	}
	if queue, _, err := adapter.Queue(ctx, lock.Ref{Tenant: "acme", Name: "l"}); err != nil || len(queue) != 1 || queue[0].ID != "e1" {
		t.Errorf("the adapter sees %d entries in l, %v, want e1", len(queue), err)
	}
	if err := adapter.Renew(ctx, placed["e3"]); !errors.Is(err, lock.Lost) {
		t.Errorf("Renew(e3) = %v, want Lost", err)
	}
	if err := adapter.Remove(ctx, placed["e1"], lock.Released); err != nil {
		t.Fatal(err)
	}
	truth, err := store.Truth(ctx)
	if err != nil {
		t.Fatal(err)
	}
	var ends []string
	for _, life := range truth.Entries("l") {
		ends = append(ends, life.Entry+" "+life.Reason)
		if want := placed[lock.ID(life.Entry)].Number; uint64(life.Joined) != want {
			t.Errorf("%s joined at %d, the adapter says %d", life.Entry, life.Joined, want)
		}
	}
	if diff := cmp.Diff([]string{"e1 released", "e3 expired"}, ends); diff != "" {
		t.Errorf("Entries(l) (-want +got):\n%s", diff)
	}
	if err := truth.Orphans(); !errors.Is(err, history.ErrOrphan) {
		t.Errorf("Orphans() = %v, want e4", err)
	}
}

func entry(tenant, id string, names ...string) *lock.Entry {
	e := &lock.Entry{ID: lock.ID(id), Tenant: tenant, Holder: "worker", TTL: time.Minute, EnqueuedAt: time.Now(), Set: len(names) > 1}
	for _, name := range names {
		e.Claims = append(e.Claims, lock.Claim{Name: name, Mode: lock.Exclusive})
	}
	return e
}

// zooKeeper starts one server and the adapter on it.
func zooKeeper(ctx context.Context, t *testing.T) (*rig.ZooKeeper, *zookeeper.Store) {
	t.Helper()
	cache, err := rig.ZooKeeperCache()
	if err != nil {
		t.Fatal(err)
	}
	java, err := rig.FetchZooKeeper(ctx, cache)
	if err != nil {
		t.Fatal(err)
	}
	z, err := rig.StartZooKeeper(ctx, rig.ZooKeeperConfig{Dir: t.TempDir(), Java: java})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := z.Close(); err != nil {
			t.Error(err)
		}
	})
	adapter, err := zookeeper.Open(ctx, zookeeper.Config{Servers: z.Endpoints()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := adapter.Close(); err != nil {
			t.Error(err)
		}
	})
	return z, adapter
}
