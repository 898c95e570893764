package etcd

import (
	"context"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
)

// begins is a follower that says when it has its first view.
type begins struct{ begun chan struct{} }

func (f begins) Reset(store.Snapshot)         { close(f.begun) }
func (f begins) Recall([]store.Ended, bool)   {}
func (f begins) Apply(uint64, []store.Change) {}
func (f begins) Lost(error)                   {}

// TestNoticesOfEntriesThatWent: what belonged to an entry is deleted when that went, though
// its lease goes on for other entries: what a feed saw go, and what it listed.
func TestNoticesOfEntriesThatWent(t *testing.T) {
	t.Parallel()
	s, _ := testStore(t, EmbeddedConfig{}, func(*Conn) {})
	left := func() int64 {
		resp, err := s.kv.Range(t.Context(), &pb.RangeRequest{
			Key: []byte(s.prefix + attachedDir), RangeEnd: prefixEnd(s.prefix + attachedDir), CountOnly: true,
		})
		if err != nil {
			t.Fatal(err)
		}
		return resp.Count
	}
	notified := func(id lock.ID) *lock.Entry {
		e, _, err := s.Enqueue(t.Context(), reusable(id, false))
		if err != nil {
			t.Fatal(err)
		}
		n := &lock.Notice{ID: string(id), Tenant: e.Tenant, Kind: "lock.something", Locks: []string{e.Name()}, Of: e.ID}
		if err := s.Notify(t.Context(), n, e); err != nil {
			t.Fatal(err)
		}
		return e
	}
	before := notified("before")
	if err := s.Remove(t.Context(), before, lock.Released); err != nil {
		t.Fatal(err)
	}
	after := notified("after")
	if n := left(); n != 2 {
		t.Fatalf("%d notices are there, want 2", n)
	}
	f := begins{make(chan struct{})}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	s.tasks.Go(func() { s.Watch(ctx, f) })
	<-f.begun
	awaitCount(t, left, 1)
	if err := s.Remove(t.Context(), after, lock.Released); err != nil {
		t.Fatal(err)
	}
	awaitCount(t, left, 0)
}

func awaitCount(t *testing.T, count func() int64, want int64) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); count() != want; <-time.After(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("there are %d notices, want %d", count(), want)
		}
	}
}
