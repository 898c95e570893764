package etcd_test

import (
	"bytes"
	"context"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/store/etcd"
)

// TestTimedOutIsNotRefused: etcd answers "request timed out" to a proposal that it
// may still commit, and here has committed.
func TestTimedOutIsNotRefused(t *testing.T) {
	conn := startEmbedded(t, etcd.EmbeddedConfig{})
	var timedOut atomic.Bool
	conn.Interfere(func(_ context.Context, r *pb.TxnRequest, do etcd.Do) (*pb.TxnResponse, error) {
		resp, err := do()
		if len(etcd.PutsIn(r)) > 0 && timedOut.CompareAndSwap(false, true) {
			return nil, rpctypes.ErrGRPCTimeout
		}
		return resp, err
	})
	s := openStore(t, conn, etcd.Config{})
	e, _, err := s.Enqueue(t.Context(), newEntry("orders:1", "only"))
	if err != nil {
		t.Fatalf("Enqueue() = %v, want the entry that was written", err)
	}
	entries, _, err := s.Queue(t.Context(), lock.Ref{Tenant: e.Tenant, Name: "orders:1"})
	if err != nil || len(entries) != 1 || entries[0].Number != e.Number {
		t.Errorf("the queue is %v, %v, want the one entry with number %d", entries, err, e.Number)
	}
}

// TestLeaseOfAnUnknownOutcome: a write that may still commit keeps its lease. Under
// another entry's renewals it would never expire.
func TestLeaseOfAnUnknownOutcome(t *testing.T) {
	conn := startEmbedded(t, etcd.EmbeddedConfig{})
	var mu sync.Mutex
	var leases []int64
	conn.Interfere(func(_ context.Context, r *pb.TxnRequest, do etcd.Do) (*pb.TxnResponse, error) {
		mu.Lock()
		first := len(leases) == 0
		for _, p := range etcd.PutsIn(r) {
			leases = append(leases, p.Lease)
		}
		first = first && len(leases) > 0
		mu.Unlock()
		if first {
			return nil, rpctypes.ErrGRPCTimeout
		}
		return do()
	})
	s := openStore(t, conn, etcd.Config{})
	for _, id := range []string{"one", "two", "three"} {
		e := newEntry("lock:"+id, id)
		e.Request = "the parameters"
		if _, _, err := s.Enqueue(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if len(leases) < 4 || slices.Contains(leases[1:], leases[0]) {
		t.Errorf("entries were written under the leases %d, want the first one never again", leases)
	}
}

// TestFloorThatComesLate: a replica starts with a floor, and while its write is on its
// way another one starts with a higher one.
func TestFloorThatComesLate(t *testing.T) {
	conn := startEmbedded(t, etcd.EmbeddedConfig{})
	openStore(t, conn, etcd.Config{})
	var high atomic.Pointer[etcd.Store]
	var late atomic.Bool
	conn.Interfere(func(_ context.Context, r *pb.TxnRequest, do etcd.Do) (*pb.TxnResponse, error) {
		floors := func(op *pb.RequestOp) bool {
			return bytes.HasSuffix(op.GetRequestPut().GetKey(), []byte("/meta"))
		}
		if slices.ContainsFunc(r.Success, floors) && late.CompareAndSwap(false, true) {
			high.Store(openStore(t, conn, etcd.Config{FenceFloor: 2_000_000}))
		}
		return do()
	})
	if s, err := etcd.Open(t.Context(), conn, etcd.Config{FenceFloor: 1_000_000}); err == nil {
		t.Errorf("a floor that is lower than the store's is taken; close: %v", s.Close())
	}
	if high.Load() == nil {
		t.Fatal("no floor was written")
	}
	before, _, err := high.Load().Enqueue(t.Context(), newEntry("orders:1", "before"))
	if err != nil {
		t.Fatal(err)
	}
	after, _, err := openStore(t, conn, etcd.Config{}).Enqueue(
		t.Context(), newEntry("orders:1", "after"),
	)
	if err != nil || after.Number <= before.Number {
		t.Errorf("an entry behind number %d got %v, %v", before.Number, after, err)
	}
}

// counting is a follower that counts its calls.
type counting struct {
	store.Watcher
	resets, losses atomic.Int32
}

func (c *counting) Reset(store.Snapshot)         { c.resets.Add(1) }
func (c *counting) Apply(uint64, []store.Change) {}
func (c *counting) Recall([]store.Ended, bool)   {}
func (c *counting) Lost(error)                   { c.losses.Add(1) }

// TestSilentWatch: the store's position reveals a watch that stays open and reports nothing, and
// the feed restarts.
func TestSilentWatch(t *testing.T) {
	t.Parallel()
	conn := startEmbedded(t, etcd.EmbeddedConfig{})
	var muted atomic.Bool
	conn.Mute(muted.Load)
	s := openStore(t, conn, etcd.Config{})
	var f counting
	ctx, cancel := context.WithCancel(t.Context())
	var feed sync.WaitGroup
	feed.Go(func() { s.Watch(ctx, &f) })
	defer feed.Wait()
	defer cancel()
	eventually(t, "the feed is there", func() bool { return f.resets.Load() == 1 })
	muted.Store(true)
	if _, _, err := s.Enqueue(t.Context(), newEntry("orders:1", "unheard")); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the feed is given up", func() bool { return f.losses.Load() > 0 })
	muted.Store(false)
	eventually(t, "the feed is there again", func() bool { return f.resets.Load() > 1 })
}

// watched is an etcd that only notes with which headers a watch comes.
type watched struct {
	pb.UnimplementedWatchServer
	headers chan metadata.MD
}

func (w watched) Watch(stream pb.Watch_WatchServer) error {
	header, _ := metadata.FromIncomingContext(stream.Context())
	select {
	case w.headers <- header:
	default:
	}
	<-stream.Context().Done()
	return nil
}

// TestFeedRequiresALeader: a member that is cut off from the others would tell a
// watch that does not insist on a leader nothing, and not end it.
func TestFeedRequiresALeader(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := watched{headers: make(chan metadata.MD, 1)}
	server := grpc.NewServer()
	pb.RegisterWatchServer(server, w)
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := server.Serve(listener); err != nil {
			t.Errorf("the server: %v", err)
		}
	})
	t.Cleanup(func() { server.Stop(); serving.Wait() })
	ctx, cancel := context.WithCancel(t.Context())
	conn := connect(t, []string{listener.Addr().String()})
	serving.Go(func() { conn.Watch(ctx) }) // it waits for etcd's answer, which does not come
	defer cancel()
	select {
	case header := <-w.headers:
		if got := header.Get(rpctypes.MetadataRequireLeaderKey); !slices.Equal(
			got, []string{rpctypes.MetadataHasLeader},
		) {
			t.Errorf("the watch came with %s %q", rpctypes.MetadataRequireLeaderKey, got)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("no watch came")
	}
}
