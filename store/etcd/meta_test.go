package etcd_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/store/etcd"
)

// TestMetaByHand deletes and damages what the store knows of itself: nothing is granted, holders go
// on, and a server that is started with a floor makes it again.
func TestMetaByHand(t *testing.T) {
	t.Parallel()
	cluster := startCluster(t, 1)
	client, err := cluster.Client()
	if err != nil {
		t.Fatal(err)
	}
	defer closing(t, "the client", client.Close)
	conn := connect(t, cluster.Endpoints())
	for name, damage := range map[string]clientv3.Op{
		"all-deleted":   clientv3.OpDelete("meta/", clientv3.WithPrefix()),
		"floor-deleted": clientv3.OpDelete("meta/floor"),
		"floor-damaged": clientv3.OpPut("meta/floor", "x"),
		"floor-lowered": clientv3.OpPut("meta/floor", "1"),
		"key-emptied":   clientv3.OpPut("meta/tokenkey", ""),
		"form-made-up":  clientv3.OpPut("meta/form", "two"),
	} {
		t.Run(name, func(t *testing.T) {
			prefix := "/" + name + "/"
			s := openStore(t, conn, etcd.Config{Prefix: prefix, FenceFloor: 1_000_000})
			ctx, cancel := context.WithCancel(t.Context())
			var feed sync.WaitGroup
			defer feed.Wait()
			defer cancel()
			feed.Go(func() { s.Watch(ctx, silent{}) })
			held := mustEnqueue(t, s, newEntry("a", "held"))
			spoil(t, client, prefix, damage)
			eventually(t, "it grants nothing", func() bool { return s.Refusal() != nil })
			_, _, err := s.Enqueue(t.Context(), newEntry("a", "next"))
			wantRemedy(t, "Enqueue", err)
			if err := s.Renew(t.Context(), held); err != nil {
				t.Errorf("Renew: %v", err)
			}
			fixed := openStore(t, conn, etcd.Config{Prefix: prefix, FenceFloor: held.Number})
			if next := mustEnqueue(t, fixed, newEntry("a", "fixed")); next.Number <= held.Number {
				t.Errorf("fence %d after %d", next.Number, held.Number)
			}
		})
	}
}

// spoil does an operation on a key below a prefix.
func spoil(t *testing.T, client *clientv3.Client, prefix string, op clientv3.Op) {
	t.Helper()
	op.WithKeyBytes([]byte(prefix + string(op.KeyBytes())))
	if op.IsDelete() && op.RangeBytes() != nil {
		op.WithRangeBytes([]byte(clientv3.GetPrefixRangeEnd(string(op.KeyBytes()))))
	}
	if _, err := client.Do(t.Context(), op); err != nil {
		t.Fatal(err)
	}
}

// wantRemedy checks that an error says how records that were changed by hand are fixed.
func wantRemedy(t *testing.T, doing string, err error) {
	t.Helper()
	if !errors.Is(err, lock.StoreUnavailable) && !errors.Is(err, store.ErrRecords) ||
		!strings.Contains(err.Error(), "--fence-floor") {
		t.Errorf("%s = %v, want an error that asks for a floor", doing, err)
	}
}

// TestMetaGone deletes it while no replica runs. The floor is then unknown, and with it whether
// the store would issue fences a second time.
func TestMetaGone(t *testing.T) {
	const prefix = "/gone/"
	cluster := startCluster(t, 1)
	client, err := cluster.Client()
	if err != nil {
		t.Fatal(err)
	}
	defer closing(t, "the client", client.Close)
	conn := connect(t, cluster.Endpoints())
	before := mustEnqueue(
		t, openStore(t, conn, etcd.Config{Prefix: prefix, FenceFloor: 1_000_000}), newEntry("a", "held"),
	)
	for _, key := range []string{"floor", ""} {
		if _, err := client.Delete(t.Context(), prefix+"meta/"+key, clientv3.WithPrefix()); err != nil {
			t.Fatal(err)
		}
		_, err := etcd.Open(t.Context(), conn, etcd.Config{Prefix: prefix})
		wantRemedy(t, "Open", err)
		after := mustEnqueue(
			t, openStore(t, conn, etcd.Config{Prefix: prefix, FenceFloor: before.Number}),
			newEntry("b", "after"+key),
		)
		if after.Number <= before.Number {
			t.Errorf("fence %d after %d", after.Number, before.Number)
		}
		before = after
	}
	if _, err := client.Put(t.Context(), prefix+"meta/form", "1000"); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Delete(t.Context(), prefix+"meta/floor"); err != nil {
		t.Fatal(err)
	}
	_, err = etcd.Open(t.Context(), conn, etcd.Config{Prefix: prefix, FenceFloor: 2 * before.Number})
	if !errors.Is(err, store.ErrNewerForm) {
		t.Errorf("Open of what is left of a newer version's = %v", err)
	}
}
