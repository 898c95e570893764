package etcd_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
)

// TestFormOfAnEntryAlone has an entry in a future form that the store's own records do not
// require, as after a restore. It is not taken for a damaged one.
func TestFormOfAnEntryAlone(t *testing.T) {
	cluster := startCluster(t, 1)
	s := dial(t, cluster.Endpoints(), "/form/")
	client, err := cluster.Client()
	if err != nil {
		t.Fatal(err)
	}
	defer closing(t, "the client", client.Close)
	e := mustEnqueue(t, dial(t, cluster.Endpoints(), "/form/"), newEntry("a", "new"))
	if _, err := client.Put(
		t.Context(), "/form/entries/acme/a/new", `{"form":99,"mode":"of the future"}`,
		clientv3.WithIgnoreLease(),
	); err != nil {
		t.Fatal(err)
	}
	if s.Refusal() != nil {
		t.Error("it refuses what it has not seen yet")
	}
	entries, _, err := s.Queue(t.Context(), lock.Ref{Tenant: "acme", Name: "a"})
	if err != nil || len(
		entries,
	) != 1 || entries[0].ID != e.ID || entries[0].TTL != lock.MaxTTL || entries[0].Handle != e.Handle {
		t.Fatalf("the queue is %v, %v", entries, err)
	}
	if !errors.Is(s.Refusal(), store.ErrNewerForm) {
		t.Errorf("it grants: %v", s.Refusal())
	}
	if _, _, err := s.Enqueue(t.Context(), newEntry("b", "other")); !errors.Is(
		err, store.ErrNewerForm,
	) {
		t.Errorf("Enqueue = %v", err)
	}
	if err := s.Distrust(t.Context(), 1); err != nil { // reads the records again
		t.Fatal(err)
	}
	if !errors.Is(s.Refusal(), store.ErrNewerForm) {
		t.Errorf("the store's records undo it: %v", s.Refusal())
	}
}

// TestFormByHand: a form that was lowered or deleted by hand is raised again, as a server that
// needs it raises it.
func TestFormByHand(t *testing.T) {
	cluster := startCluster(t, 1)
	s := dial(t, cluster.Endpoints(), "/form/")
	client, err := cluster.Client()
	if err != nil {
		t.Fatal(err)
	}
	defer closing(t, "the client", client.Close)
	ctx, cancel := context.WithCancel(t.Context())
	var feed sync.WaitGroup
	defer feed.Wait()
	defer cancel()
	feed.Go(func() { s.Watch(ctx, silent{}) })
	kept := newEntry("a", "kept")
	kept.Async = true
	mustEnqueue(t, s, kept)
	const key = "/form/meta/form"
	value := func() string {
		resp, err := client.Get(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		if len(resp.Kvs) == 0 {
			return ""
		}
		return string(resp.Kvs[0].Value)
	}
	if got := value(); got != "2" {
		t.Errorf("the form is %q", got)
	}
	for _, damage := range []func() error{
		func() error { _, err := client.Delete(t.Context(), key); return err },
		func() error { _, err := client.Put(t.Context(), key, "1"); return err },
	} {
		if err := damage(); err != nil {
			t.Fatal(err)
		}
		eventually(t, "it is raised again", func() bool { return value() == "2" })
	}
}
