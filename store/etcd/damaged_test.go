package etcd_test

import (
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store/etcd"
)

// TestDamagedEntry: an entry with a spoilt value keeps its position, because its holder may not
// know, and leaves like any other. A key that is not Fencepost's blocks nothing.
func TestDamagedEntry(t *testing.T) {
	cluster := startCluster(t, 1)
	s := dial(t, cluster.Endpoints(), "/damaged/")
	client, err := cluster.Client()
	if err != nil {
		t.Fatal(err)
	}
	defer closing(t, "the client", client.Close)
	spoil := func(key string, opts ...clientv3.OpOption) {
		t.Helper()
		if _, err := client.Put(
			t.Context(), "/damaged/entries/acme/a/"+key, "{spoiled", opts...,
		); err != nil {
			t.Fatal(err)
		}
	}
	queue := func(s *etcd.Store) []*lock.Entry {
		t.Helper()
		entries, _, err := s.Queue(t.Context(), lock.Ref{Tenant: "acme", Name: "a"})
		if err != nil {
			t.Fatal(err)
		}
		return entries
	}
	spoil("stray")
	held := mustEnqueue(t, s, newEntry("a", "held"))
	next := mustEnqueue(t, s, newEntry("a", "next"))
	spoil("held", clientv3.WithIgnoreLease())

	other := dial(t, cluster.Endpoints(), "/damaged/")
	got := queue(other)
	if len(got) != 2 || got[0].ID != held.ID || got[0].Number != held.Number || got[1].ID != next.ID {
		t.Fatalf("the queue is %v, want the spoiled entry in its place and the next behind it", got)
	}
	if err := s.Renew(t.Context(), held); err != nil {
		t.Errorf("the holder renews: %v", err)
	}
	if err := other.Remove(t.Context(), got[0], lock.Released); err != nil {
		t.Errorf("the spoiled entry is removed: %v", err)
	}
	if got := queue(s); len(got) != 1 || got[0].ID != next.ID {
		t.Errorf("the queue is then %v, want the next one alone", got)
	}
}
