package etcd

import (
	"context"
	"errors"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
)

// brokenTxn answers no transaction.
type brokenTxn struct{ kvClient }

var errBroken = errors.New("broken")

func (brokenTxn) Txn(_ context.Context, _ *pb.TxnRequest, _ ...grpc.CallOption) (*pb.TxnResponse, error) {
	return nil, errBroken
}

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

// TestSpentNotices: notices whose entries went are deleted later if that fails at first.
func TestSpentNotices(t *testing.T) {
	s := openInside(t)
	keys := [][]byte{[]byte(s.prefix + attachedDir + "acme/a"), []byte(s.prefix + attachedDir + "acme/b")}
	works := s.kv
	s.kv = trustedKV{brokenTxn{}, s.trust}
	s.spent.add(keys)
	s.deleteSpent()
	s.kv = works
	if left := s.spent.take(); len(left) != len(keys) {
		t.Errorf("%d are to be deleted later, want %d", len(left), len(keys))
	}
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
