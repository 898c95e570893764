package etcd_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/store/etcd"
	"github.com/fencepost/fencepost/store/storetest"
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
	for name, damage := range map[string]func(own []byte) []byte{
		"deleted":       func([]byte) []byte { return nil },
		"spoiled":       func([]byte) []byte { return []byte("x") },
		"floor-lowered": func(own []byte) []byte { return storetest.WithOwn(own, "floor", 1) },
		"key-emptied":   func(own []byte) []byte { return storetest.WithOwn(own, "token_key", "") },
		"form-made-up":  func(own []byte) []byte { return storetest.WithOwn(own, "form", "two") },
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

// spoil changes the store's own record by hand.
func spoil(t *testing.T, client *clientv3.Client, prefix string, damage func([]byte) []byte) {
	t.Helper()
	own, err := client.Get(t.Context(), prefix+"meta")
	if err != nil {
		t.Fatal(err)
	}
	if spoiled := damage(own.Kvs[0].Value); spoiled == nil {
		_, err = client.Delete(t.Context(), prefix+"meta")
	} else {
		_, err = client.Put(t.Context(), prefix+"meta", string(spoiled))
	}
	if err != nil {
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

// TestMetaGone deletes it, or the floor in it, while no replica runs. The floor is then unknown,
// and with it whether the store would issue fences a second time.
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
	gone := func([]byte) []byte { return nil }
	withoutFloor := func(own []byte) []byte { return storetest.WithOwn(own, "floor", nil) }
	after := before
	for i, damage := range []func([]byte) []byte{withoutFloor, gone} {
		spoil(t, client, prefix, damage)
		_, err = etcd.Open(t.Context(), conn, etcd.Config{Prefix: prefix})
		wantRemedy(t, "Open", err)
		after = mustEnqueue(
			t, openStore(t, conn, etcd.Config{Prefix: prefix, FenceFloor: before.Number}),
			newEntry("b", fmt.Sprint("after-", i)),
		)
		if after.Number <= before.Number {
			t.Errorf("fence %d after %d", after.Number, before.Number)
		}
		before = after
	}
	spoil(t, client, prefix, func(own []byte) []byte {
		return storetest.WithOwn(storetest.WithForm(own, 1000), "token_key", "")
	})
	_, err = etcd.Open(t.Context(), conn, etcd.Config{Prefix: prefix, FenceFloor: 2 * after.Number})
	if !errors.Is(err, store.ErrNewerForm) {
		t.Errorf("Open of what is left of a newer version's = %v", err)
	}
	spoil(t, client, prefix, gone)
	if _, err := client.Put(t.Context(), prefix+"meta/form", "5"); err != nil {
		t.Fatal(err)
	}
	_, err = etcd.Open(t.Context(), conn, etcd.Config{Prefix: prefix, FenceFloor: 2 * after.Number})
	if !errors.Is(err, store.ErrOlderForm) {
		t.Errorf("Open of an earlier version's = %v", err)
	}
}
