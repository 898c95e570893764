package etcd

import (
	"bytes"
	"context"
	"errors"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/store/engine"
	"github.com/fencepost/fencepost/store/storetest"
)

// TestFloorIsAddedBeforeItIsCompared: an entry is written after a replica has read a
// higher floor, and before it has taken that over. Either the write is refused, or its
// number is above the floor.
func TestFloorIsAddedBeforeItIsCompared(t *testing.T) {
	t.Parallel()
	conn, err := StartEmbedded(t.Context(), EmbeddedConfig{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	open := func(cfg Config) *Store {
		s, err := Open(t.Context(), conn, cfg)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		return s
	}
	refused := make(chan struct{}, 8)
	conn.Interfere(func(_ context.Context, r *pb.TxnRequest, do Do) (*pb.TxnResponse, error) {
		resp, err := do()
		if err == nil && puts(r) && !resp.Succeeded {
			refused <- struct{}{}
		}
		return resp, err
	})
	s := open(Config{})
	const floor = 1_000_000
	open(Config{FenceFloor: floor})
	written := make(chan struct{})
	var e *lock.Entry
	var joined error
	_, err = s.trust.Reread(t.Context(), 0, func(ctx context.Context) (store.Records, error) {
		r, err := s.meta.Ask(ctx)
		go func() {
			defer close(written)
			e, _, joined = s.Enqueue(t.Context(), lateEntry())
		}()
		select {
		case <-written:
		case <-refused:
		}
		return r, err
	})
	if err != nil {
		t.Fatal(err)
	}
	if <-written; joined != nil || e.Number <= floor {
		t.Errorf("an entry was handed out at %+v, %v, and the floor is %d", e, joined, floor)
	}
}

// TestExpiryIsRecordedLate: a key that was taken again before the expiry of its entry was
// recorded stays in use. A retry joins the entry that is there.
func TestExpiryIsRecordedLate(t *testing.T) {
	t.Parallel()
	s, _ := startLate(t, 0)
	keyed := reusable("keyed", true)
	e, _, err := s.Enqueue(t.Context(), keyed)
	if err != nil {
		t.Fatal(err)
	}
	// of an entry before it
	s.feed.unrecorded.saw(
		store.Key{Tenant: e.Tenant, Lock: e.Name(), ID: e.ID}, s.revision(e.Number), lock.Expired, true,
	)
	s.ends.recordEnds()
	if open := s.feed.unrecorded.ends(); len(open) > 0 {
		t.Fatalf("not recorded: %v", open)
	}
	if again := s.mustJoin(t, keyed); again.Number != e.Number {
		t.Errorf("a retry is answered %+v, and the entry is at %d", again, e.Number)
	}
}

// TestTokenKeyByHand: a replica keeps the key with which it gives out tokens when a person
// replaces or deletes it in the store.
func TestTokenKeyByHand(t *testing.T) {
	t.Parallel()
	s, _ := startLate(t, 0)
	ours := s.TokenKey()
	for _, key := range []string{"somebody else's", ""} {
		put := storetest.WithOwn(s.meta.Known().Data, "token_key", []byte(key))
		op := putOp([]byte(s.prefix+engine.MetaKey().Name), put, 0)
		if _, err := s.kv.Txn(t.Context(), &pb.TxnRequest{Success: []*pb.RequestOp{op}}); err != nil {
			t.Fatal(err)
		}
		if err := s.meta.Reread(t.Context()); !errors.Is(err, store.ErrRecords) {
			t.Errorf("with the key %q: %v", key, err)
		}
		if got := s.TokenKey(); !bytes.Equal(got, ours) {
			t.Errorf("the key is %x, want %x", got, ours)
		}
	}
}
