package replicas_test

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencepost/fencepost/service/replicas"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/store/memory"
	"github.com/fencepost/fencepost/test/bubble"
)

// TestBlindReplica: a replica that does not see what happens in the store leaves the list, and does
// nothing that others do. One that cannot find out does not know the list, and does everything.
func TestBlindReplica(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		server := memory.NewServer(memory.Config{})
		defer server.Close()
		var all sync.WaitGroup
		defer all.Wait()
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		start := func(id string, current func(context.Context) (bool, error)) *replicas.List {
			c := server.Connect(nil)
			t.Cleanup(c.Close)
			r := replicas.New(c.Records(), replicas.Replica{ID: id}, slog.New(slog.DiscardHandler))
			all.Go(func() { r.Run(ctx, current) })
			return r
		}
		var sees, hangs atomic.Bool
		sees.Store(true)
		a := start("a", follows)
		b := start("b", func(ctx context.Context) (bool, error) {
			if hangs.Load() {
				<-ctx.Done()
			}
			return sees.Load(), ctx.Err()
		})
		share := func(what string, ofA, ofB []string) {
			t.Helper()
			<-time.After(2*replicas.CurrentTimeout + store.RecordLife)
			synctest.Wait()
			if live := a.Sharing().Live; !slices.Equal(live, ofA) {
				t.Errorf("%s: the other replica shares with %v, want %v", what, live, ofA)
			}
			if live := b.Sharing().Live; !slices.Equal(live, ofB) {
				t.Errorf("%s: it shares with %v, want %v", what, live, ofB)
			}
		}
		both := []string{"a", "b"}
		share("it sees", both, both)
		sees.Store(false)
		share("it is blind", []string{"a"}, []string{"a"})
		if s := b.Sharing(); s.Does("one") || s.Does("two") || s.Does("three") {
			t.Error("a blind replica does what others do")
		}
		sees.Store(true)
		share("it sees again", both, both)
		hangs.Store(true)
		share("it cannot find out", both, nil)
		if s := b.Sharing(); !s.Does("one") || !s.Does("two") || !s.Does("three") {
			t.Error("a replica that does not know the others leaves work to them")
		}
	})
}
