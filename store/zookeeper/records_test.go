package zookeeper_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/store/engine"
	"github.com/fencepost/fencepost/store/storetest"
	"github.com/fencepost/fencepost/store/zookeeper"
	"github.com/fencepost/fencepost/test/rig"
)

// TestRecords runs the suite of small records on a server that is a process.
func TestRecords(t *testing.T) {
	z := startZooKeeper(t, rig.ZooKeeperConfig{})
	var cases atomic.Int32
	storetest.RunRecords(t, storetest.RecordHarness{
		OpenAlone: func(t *testing.T) storetest.RecordClients {
			alone := openAlone(t)
			return storetest.RecordClients{
				A: alone.A.(*zookeeper.Store).Records(), B: alone.B.(*zookeeper.Store).Records(),
				Backup: alone.Backup,
			}
		},
		Open: func(t *testing.T) storetest.RecordClients {
			prefix := fmt.Sprintf("/records-%d", cases.Add(1))
			proxy := startProxy(t, z.Server(0))
			a := open(t, zookeeper.Config{Servers: z.Endpoints(), Prefix: prefix})
			b, err := zookeeper.Open(
				t.Context(), zookeeper.Config{Servers: []string{proxy.Address()}, Prefix: prefix},
			)
			if err != nil {
				t.Fatal(err)
			}
			end := sync.OnceFunc(func() { closing(t, "a store", b.Close) })
			t.Cleanup(end)
			return storetest.RecordClients{
				A: a.Records(), B: b.Records(), CloseB: end,
				CutB: func(_ *testing.T, how storetest.Fault) func() { return cut(proxy, how) },
			}
		},
	})
}

// TestRecordRules checks what the suite cannot see: a write that is late, and a
// replica that is taken for dead although it lives.
func TestRecordRules(t *testing.T) {
	t.Parallel()
	z := startZooKeeper(t, rig.ZooKeeperConfig{})
	s := open(t, zookeeper.Config{Servers: z.Endpoints()})
	r, key := s.Records(), store.RecordKey{Kind: "note", Tenant: "acme", ID: "r"}
	t.Run("a join reads the closures within its own deadline", func(t *testing.T) {
		late, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
		defer cancel()
		if err := s.Admit(late, "acme"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("after the deadline of the join: %v", err)
		}
		if err := s.Admit(t.Context(), "acme"); err != nil {
			t.Error(err)
		}
	})
	t.Run("a late write does not bring back what was deleted", func(t *testing.T) {
		before, err := s.Small().Look(t.Context(), key, true)
		if err != nil {
			t.Fatal(err)
		}
		version, err := r.Put(t.Context(), store.RecordPut{RecordKey: key})
		if err == nil {
			err = r.Delete(t.Context(), key, version)
		}
		if err != nil {
			t.Fatal(err)
		}
		late := &engine.RecordWrite{RecordKey: key, Form: engine.Form{Mark: "LATE"}}
		if _, err := s.Small().Swap(t.Context(), before, late); !errors.Is(err, engine.ErrRaced) {
			t.Errorf("the late write = %v", err)
		}
		if _, err := r.Get(t.Context(), key); !errors.Is(err, lock.NotFound) {
			t.Errorf("Get = %v, want %s", err, lock.NotFound)
		}
	})
	t.Run("who counts up lives", func(t *testing.T) {
		key := store.RecordKey{Kind: "note", Tenant: "acme", ID: "bound"}
		if _, err := r.Put(t.Context(), store.RecordPut{RecordKey: key, Bound: true}); err != nil {
			t.Fatal(err)
		}
		within(t, 20*time.Second, "the life is counted up", func() bool {
			n, err := s.Heartbeats(t.Context())
			return err == nil && n > 0
		})
		if err := s.EndLife(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
		if _, err := r.Get(t.Context(), key); err != nil {
			t.Errorf("the record of a replica that lives: %v", err)
		}
	})
}

// TestRecordsAreListedSlowly: a list that does not fit into the deadline of one call ends after
// several pages. Each page has what was read by then.
func TestRecordsAreListedSlowly(t *testing.T) {
	t.Parallel()
	const records = 200
	z := startZooKeeper(t, rig.ZooKeeperConfig{})
	near := open(t, zookeeper.Config{Servers: z.Endpoints()}).Records()
	for i := range records {
		key := store.RecordKey{Kind: "note", Tenant: "acme", ID: fmt.Sprint(i)}
		if _, err := near.Put(t.Context(), store.RecordPut{RecordKey: key}); err != nil {
			t.Fatal(err)
		}
	}
	proxy := startProxy(t, z.Server(0))
	far := open(t, zookeeper.Config{Servers: []string{proxy.Address()}}).Records()
	proxy.Delay(rig.Both, 150*time.Millisecond)
	q, listed := store.RecordQuery{Kind: "note"}, map[string]bool{}
	for more := true; more; more = q.After != "" {
		page, err := far.List(t.Context(), q)
		if err != nil {
			t.Fatalf("after %d records: %v", len(listed), err)
		}
		for _, r := range page.Records {
			listed[r.ID] = true
		}
		q.After = page.Next
	}
	if len(listed) != records {
		t.Errorf("%d of %d records are listed", len(listed), records)
	}
}
