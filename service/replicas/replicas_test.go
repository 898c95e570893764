package replicas_test

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/fencepost/fencepost/service/replicas"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/store/memory"
	"github.com/fencepost/fencepost/test/bubble"
)

// TestReplicas lets replicas come, be cut off, come back and go.
func TestReplicas(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		server := memory.NewServer(memory.Config{})
		defer server.Close()
		var all sync.WaitGroup
		defer all.Wait()
		start := func(id string, cable *memory.Cable) (replicas.Replica, *replicas.List, func()) {
			self := replicas.Replica{ID: id, Host: "pod-" + id, Version: "v1", Started: time.Now().UTC()}
			c := server.Connect(cable)
			r := replicas.New(c.Records(), self, slog.New(slog.DiscardHandler))
			if live, ok := r.Live(); ok {
				t.Errorf("before it runs the list is %v", live)
			}
			ctx, stop := context.WithCancel(t.Context())
			all.Go(func() { r.Run(ctx, follows) })
			return self, r, func() {
				stop()
				c.Close()
			}
		}
		cable := memory.NewCable()
		a, listA, stopA := start("a", memory.NewCable())
		b, listB, stopB := start("b", cable)
		defer stopA()
		want := func(r *replicas.List, want ...replicas.Replica) {
			t.Helper()
			synctest.Wait()
			live, ok := r.Live()
			if diff := cmp.Diff(want, live); !ok || diff != "" {
				t.Errorf("the list, %t (-want +got):\n%s", ok, diff)
			}
		}
		want(listA, a, b)
		want(listB, a, b)
		<-time.After(time.Hour)
		a.Settled, b.Settled = true, true
		want(listA, a, b)
		cable.Cut(memory.Silent)
		<-time.After(1500 * time.Millisecond) // after at most one more since it renewed
		want(listA, a, b)
		cable.Cut("")
		<-time.After(store.RecordLife)
		cable.Cut(memory.Silent)
		<-time.After(store.RecordLife + store.RecordLifeLate)
		want(listA, a)
		want(listB, a, b) // as it was listed last
		cable.Cut("")
		<-time.After(store.RecordLife)
		want(listA, a, b)
		want(listB, a, b)
		stopB()
		want(listA, a)
	})
}

// TestSettledByNoClock: which replicas are settled does not depend on the difference of two wall
// clocks, so all replicas divide the work in the same way.
func TestSettledByNoClock(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		server := memory.NewServer(memory.Config{})
		defer server.Close()
		var all sync.WaitGroup
		defer all.Wait()
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		start := func(id string, ahead time.Duration) *replicas.List {
			c := server.Connect(nil)
			t.Cleanup(c.Close)
			self := replicas.Replica{ID: id, Started: time.Now().Add(ahead)}
			r := replicas.New(c.Records(), self, slog.New(slog.DiscardHandler))
			all.Go(func() { r.Run(ctx, follows) })
			return r
		}
		lists := []*replicas.List{start("a", time.Hour), start("b", -time.Hour)}
		want := func(want ...string) {
			t.Helper()
			for i, r := range lists {
				if s := r.Settled(); !slices.Equal(s.Live, want) {
					t.Errorf("replica %d shares with %v, want %v", i, s.Live, want)
				}
			}
		}
		<-time.After(time.Second)
		want("a", "b") // none is settled
		<-time.After(replicas.SettledAfter + 3*time.Second)
		lists = append(lists, start("c", -2*time.Hour))
		<-time.After(3 * time.Second)
		want("a", "b")
		<-time.After(replicas.SettledAfter)
		want("a", "b", "c")
	})
}

// TestLeavesTheList: a replica that ends leaves the list at once, although its store is still open.
func TestLeavesTheList(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		server := memory.NewServer(memory.Config{})
		defer server.Close()
		var all sync.WaitGroup
		defer all.Wait()
		start := func(id string) (*replicas.List, func()) {
			c := server.Connect(nil)
			t.Cleanup(c.Close)
			r := replicas.New(c.Records(), replicas.Replica{ID: id}, slog.New(slog.DiscardHandler))
			ctx, stop := context.WithCancel(t.Context())
			all.Go(func() { r.Run(ctx, follows) })
			return r, stop
		}
		a, stopA := start("a")
		defer stopA()
		_, stopB := start("b")
		<-time.After(time.Second)
		stopB()
		synctest.Wait()
		if s := a.Sharing(); !slices.Equal(s.Live, []string{"a"}) {
			t.Errorf("the list is %v", s.Live)
		}
	})
}

// TestReplicaRecordOfAnother has a record that cannot be read, as by a later version.
func TestReplicaRecordOfAnother(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		server := memory.NewServer(memory.Config{})
		defer server.Close()
		c := server.Connect(nil)
		defer c.Close()
		foreign := store.RecordKey{Kind: "replica", Tenant: store.NoTenant, ID: "z"}
		if _, err := c.Records().Put(
			t.Context(), store.RecordPut{RecordKey: foreign, Value: []byte(`{"started":1}`)},
		); err != nil {
			t.Fatal(err)
		}
		r := replicas.New(c.Records(), replicas.Replica{ID: "a"}, slog.New(slog.DiscardHandler))
		var all sync.WaitGroup
		defer all.Wait()
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		all.Go(func() { r.Run(ctx, follows) })
		synctest.Wait()
		live, _ := r.Live()
		if len(live) != 2 || live[0].ID != "a" || live[1] != (replicas.Replica{ID: "z"}) {
			t.Errorf("the list is %+v", live)
		}
	})
}

// TestSharing: replicas share work by the list, and each does all of it while it cannot
// read that.
func TestSharing(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		server := memory.NewServer(memory.Config{})
		defer server.Close()
		var all sync.WaitGroup
		defer all.Wait()
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		start := func(id string, cable *memory.Cable) *replicas.List {
			c := server.Connect(cable)
			t.Cleanup(c.Close)
			r := replicas.New(c.Records(), replicas.Replica{ID: id}, slog.New(slog.DiscardHandler))
			all.Go(func() { r.Run(ctx, follows) })
			return r
		}
		cable := memory.NewCable()
		b := start("b", cable)
		synctest.Wait()
		before := b.Sharing()
		start("a", memory.NewCable())
		synctest.Wait()
		select {
		case <-before.Changed:
		default:
			t.Error("nobody is told that another replica came")
		}
		if s := b.Sharing(); s.Self != "b" || !slices.Equal(s.Live, []string{"a", "b"}) {
			t.Errorf("shared by %+v", s)
		}
		cable.Cut(memory.Broken)
		<-time.After(3 * time.Minute) // the list is read again each minute
		if s := b.Sharing(); s.Live != nil {
			t.Errorf("cut off, it is shared by %v", s.Live)
		}
		cable.Cut("")
		<-time.After(time.Minute)
		if s := b.Sharing(); !slices.Equal(s.Live, []string{"a", "b"}) {
			t.Errorf("back, it is shared by %v", s.Live)
		}
	})
}

// TestAsyncBesideALateReplica: a replica that runs, but does not see what happens, keeps
// nothing that others would keep: it does not know of it.
// listed returns a replica that shares its work by a list of its own.
// follows is a replica that sees all that happens.
func follows(context.Context) (bool, error) { return true, nil }

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
