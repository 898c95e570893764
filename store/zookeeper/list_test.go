package zookeeper_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/store/zookeeper"
	"github.com/fencepost/fencepost/test/rig"
)

// TestListUnderLoad has a replica list many entries, slowly, while others come and go
// and the records of that are folded, as soon as it has read them, before the list is
// over. It has its view all the same, and that is right.
func TestListUnderLoad(t *testing.T) {
	t.Parallel()
	z := startZooKeeper(t, rig.ZooKeeperConfig{})
	s := open(t, zookeeper.Config{Servers: z.Endpoints()})
	early := follow(t, s)
	var mu sync.Mutex
	var held []*lock.Entry
	parallel(32, 1500, func(i int) {
		e := draft(fmt.Sprint("held-", i))
		e.ID = lock.ID(fmt.Sprintf("HELD%022d", i))
		placed, _, err := s.Enqueue(t.Context(), e)
		if err != nil {
			t.Logf("Enqueue: %v", err) // a slow machine; there are enough others
			return
		}
		mu.Lock()
		defer mu.Unlock()
		held = append(held, placed)
	})
	var cycles atomic.Int64
	leaving := func() (e *lock.Entry) { // a listed one, unless half of them have left
		mu.Lock()
		defer mu.Unlock()
		if len(held) > 750 {
			e, held = held[0], held[1:]
		}
		return e
	}
	var lister atomic.Pointer[zookeeper.Store]
	tooFast := func() bool { // it reads some 300 records a second, and would never be there
		l := lister.Load()
		return l != nil && s.Ahead(l) > 200
	}
	working, rest := context.WithCancel(t.Context())
	var all sync.WaitGroup
	defer all.Wait()
	defer rest()
	for w := range 4 {
		all.Go(func() {
			for i := 0; working.Err() == nil; i++ {
				for tooFast() && working.Err() == nil {
					_ = store.Pause(working, 10*time.Millisecond)
				}
				e := draft("busy")
				e.ID = lock.ID(fmt.Sprintf("BUSY%dX%020d", w, i))
				placed, _, err := s.Enqueue(t.Context(), e)
				if err == nil {
					err = s.Remove(t.Context(), placed, lock.Released)
				}
				if err == nil {
					cycles.Add(1)
				}
				if i%8 != 0 {
					continue
				}
				if e := leaving(); e != nil {
					if err := s.Remove(t.Context(), e, lock.Released); err != nil {
						t.Logf("Remove: %v", err)
					}
				}
			}
		})
	}
	proxy := startProxy(t, z.Server(0))
	proxy.Delay(rig.Both, 100*time.Millisecond)
	log, _ := journal(t)
	slow := open(t, zookeeper.Config{Servers: []string{proxy.Address()}, Logger: log})
	lister.Store(slow)
	var folded atomic.Int64
	all.Go(func() {
		for working.Err() == nil {
			if n, err := s.FoldReadBy(working, slow); err == nil {
				folded.Add(int64(n))
			}
			_ = store.Pause(working, 10*time.Millisecond)
		}
	})
	start := cycles.Load()
	late := followFor(t, slow, 2*time.Minute)
	t.Logf("%d cycles during the list, %d records folded", cycles.Load()-start, folded.Load())
	if folded.Load() == 0 {
		t.Error("no record was folded while the entries were listed")
	}
	rest()
	all.Wait()
	last := enqueue(t, s, draft("last"))
	within(t, 2*time.Minute, "both feeds have everything", func() bool {
		return early.first("last") == last.ID && late.first("last") == last.ID
	})
	if diff := cmp.Diff(early.all(), late.all()); diff != "" {
		t.Errorf("the views differ (-early +late):\n%.2000s", diff)
	}
	if n := early.ghosts(late); n != 0 { // the next view would be right
		t.Errorf("%d entries were in the first view that had gone before", n)
	}
	if n := len(late.all()); n < 500 {
		t.Errorf("%d entries are left of 1500", n)
	}
}

// TestNoReasonsAfterLoss: a view that was lost before its reasons were read has none.
func TestNoReasonsAfterLoss(t *testing.T) {
	r := &recalls{ends: ends{reasons: map[lock.ID]lock.Reason{}}}
	if err := zookeeper.RecallAfterLoss(r); err == nil || r.complete.Load() {
		t.Errorf("it was told, %v", err)
	}
}

// TestReasonsComeLater has many reasons that cannot be read for a while. The view does not wait
// for them, and they are reported in parts.
func TestReasonsComeLater(t *testing.T) {
	t.Parallel()
	z := startZooKeeper(t, rig.ZooKeeperConfig{})
	s := open(t, zookeeper.Config{Servers: z.Endpoints()})
	follow(t, s)
	client := hand(t, z)
	want := writeEnds(t, client, 100, 64)
	folded(t, s, client)
	access := func(permissions int32) {
		t.Helper()
		if _, err := client.SetACL("/fencepost/v1/ended", zk.WorldACL(permissions), -1); err != nil {
			t.Fatal(err)
		}
	}
	access(zk.PermAll &^ zk.PermRead)
	r := &recalls{ends: ends{reasons: map[lock.ID]lock.Reason{}}}
	ctx, cancel := context.WithCancel(t.Context())
	var following sync.WaitGroup
	defer following.Wait()
	defer cancel()
	late := open(t, zookeeper.Config{Servers: z.Endpoints()})
	following.Go(func() { late.Watch(ctx, r) })
	within(t, 30*time.Second, "there is a view", func() bool { return r.begun.Load() })
	if r.complete.Load() {
		t.Error("all reasons were told, although they cannot be read")
	}
	access(zk.PermAll)
	within(t, 30*time.Second, "all reasons are told", func() bool { return r.complete.Load() })
	if !r.know(want) {
		t.Error("some reasons were not told")
	}
	if n := r.most.Load(); n > 5000 {
		t.Errorf("%d reasons were told at once", n)
	}
}

// recalls records how reasons are reported.
type recalls struct {
	ends
	begun, complete atomic.Bool
	most            atomic.Int64
}

func (r *recalls) Reset(store.Snapshot) { r.begun.Store(true) }

func (r *recalls) Recall(ended []store.Ended, complete bool) {
	r.ends.Recall(ended, complete)
	r.most.Store(max(r.most.Load(), int64(len(ended))))
	if complete {
		r.complete.Store(true)
	}
}
