package etcd_test

import (
	"fmt"
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

// TestDamagedSet: of an entry of several locks, a spoilt value keeps the position at its home
// alone. It is in no queue that it does not claim, where nothing could be said about it.
func TestDamagedSet(t *testing.T) {
	cluster := startCluster(t, 1)
	s := dial(t, cluster.Endpoints(), "/damaged/")
	client, err := cluster.Client()
	if err != nil {
		t.Fatal(err)
	}
	defer closing(t, "the client", client.Close)
	for home, any := range map[string]int{"a": 0, lock.PoolHome: 2} {
		e := newEntry("a", fmt.Sprint("set-", any))
		e.Set, e.Any = true, any
		e.Claims = append(e.Claims, lock.Claim{Name: "b", Mode: lock.Exclusive})
		mustEnqueue(t, s, e)
		key := "/damaged/entries/acme/" + home + "/" + string(e.ID)
		_, err := client.Put(t.Context(), key, "{spoiled", clientv3.WithIgnoreLease())
		if err != nil {
			t.Fatal(err)
		}
	}
	next := mustEnqueue(t, s, newEntry("b", "next"))
	other := dial(t, cluster.Endpoints(), "/damaged/")
	got, _, err := other.Queue(t.Context(), lock.Ref{Tenant: "acme", Name: "b"})
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 1 || got[0].ID != next.ID {
		t.Errorf("the queue is %v, want the entry that claims the lock", got)
	}
	if _, waits := lock.BlockersIn(got, next, "b", true); waits {
		t.Error("it waits for what claims another lock")
	}
}
