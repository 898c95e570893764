package etcd

import (
	"testing"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
)

func openInside(t *testing.T) *Store {
	t.Helper()
	conn, err := StartEmbedded(t.Context(), EmbeddedConfig{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	s, err := Open(t.Context(), conn, Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// TestLeaseOfARevokedEntry: it is free for the next entry, or ended, and in use no more.
func TestLeaseOfARevokedEntry(t *testing.T) {
	s := openInside(t)
	e, _, err := s.Enqueue(t.Context(), testEntry("a", "held"))
	if err != nil {
		t.Fatal(err)
	}
	put := store.RecordPut{RecordKey: store.RecordKey{Kind: "note", Tenant: "acme", ID: "r"}}
	if err := s.RemoveAndPut(t.Context(), e, lock.Revoked, nil, put); err != nil {
		t.Fatal(err)
	}
	s.leases.mu.Lock()
	defer s.leases.mu.Unlock()
	if _, used := s.leases.inUse[e.Handle]; used {
		t.Error("the lease of an entry that was revoked is kept for it")
	}
}
