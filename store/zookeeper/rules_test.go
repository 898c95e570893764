package zookeeper_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store/zookeeper"
	"github.com/fencepost/fencepost/test/rig"
)

// TestRenewedElsewhereAtTheLastMoment has a replica come to the end of a lease
// which, unknown to it, another one has just renewed.
func TestRenewedElsewhereAtTheLastMoment(t *testing.T) {
	z := startZooKeeper(t, rig.ZooKeeperConfig{})
	here, elsewhere := open(t, zookeeper.Config{Servers: z.Endpoints()}), open(t, zookeeper.Config{Servers: z.Endpoints()})
	e := draft("a")
	e.TTL = 3 * time.Second
	start := time.Now()
	e = enqueue(t, here, e)
	within(t, e.TTL, "the lease is almost over", func() bool { return time.Since(start) > e.TTL*9/10 })
	if err := elsewhere.Refresh(t.Context(), e); err != nil {
		t.Fatalf("Refresh: %v", err)
	}
	renewed := time.Now()
	within(t, e.TTL, "the old lease is long over", func() bool { return time.Since(renewed) > e.TTL*8/10 })
	if err := here.Refresh(t.Context(), e); err != nil {
		t.Errorf("Refresh after a renewal elsewhere: %v", err)
	}
}

// moments remembers what was in a lock after each call of the feed.
type moments struct {
	mu    sync.Mutex
	table *lock.Table
	ids   map[uint64][]lock.ID
	at    uint64
}

func (m *moments) Reset(s lock.Snapshot) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.table = lock.NewTable()
	for _, e := range s.Entries {
		_, _ = m.table.Insert(e) // the order is the suite's matter
	}
	m.note(s.Number)
}

func (m *moments) Apply(upTo uint64, changes []lock.Change) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range changes {
		if c.Joined != nil {
			_, _ = m.table.Insert(c.Joined)
		} else {
			m.table.Remove(c.Left)
		}
	}
	m.note(upTo)
}

func (m *moments) note(number uint64) {
	var ids []lock.ID
	if q := m.table.Queue(lock.Ref{Tenant: "acme", Name: "a"}); q != nil {
		for e := range q.Entries() {
			ids = append(ids, e.ID)
		}
	}
	m.ids[number], m.at = ids, number
}

func (m *moments) Lost(error) {}

// TestQueueIsOfOneMoment reads a queue, node by node, while entries come and go,
// and holds each answer against what was in the queue at its number.
func TestQueueIsOfOneMoment(t *testing.T) {
	z := startZooKeeper(t, rig.ZooKeeperConfig{})
	s := open(t, zookeeper.Config{Servers: z.Endpoints()})
	m := &moments{ids: map[uint64][]lock.ID{}}
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	all.Go(func() { s.Follow(ctx, m) })
	working, rest := context.WithTimeout(ctx, 4*time.Second)
	defer rest()
	var workers sync.WaitGroup
	for worker := range 12 {
		workers.Go(func() {
			for i := 0; working.Err() == nil; i++ {
				e := draft("a")
				e.ID = lock.ID(fmt.Sprintf("W%dC%d", worker, i))
				placed, err := s.Enqueue(ctx, e)
				if err == nil {
					err = s.Remove(ctx, placed, lock.Released)
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	read := map[uint64][]lock.ID{}
	for working.Err() == nil {
		entries, number, err := s.ReadQueue(ctx, lock.Ref{Tenant: "acme", Name: "a"})
		if err != nil {
			t.Fatal(err)
		}
		read[number] = nil
		for _, e := range entries {
			read[number] = append(read[number], e.ID)
		}
	}
	workers.Wait()
	newest, err := s.Newest(ctx)
	if err != nil {
		t.Fatal(err)
	}
	within(t, 10*time.Second, "the feed has everything", func() bool {
		m.mu.Lock()
		defer m.mu.Unlock()
		return m.at >= newest
	})
	checked := 0
	for number, ids := range read {
		want, known := m.ids[number]
		if !known {
			continue // the feed told of this moment together with the next
		}
		checked++
		if !slices.Equal(ids, want) {
			t.Fatalf("at %d the queue was read as %v, and was %v", number, ids, want)
		}
	}
	if t.Logf("%d of %d answers checked", checked, len(read)); checked < 5 {
		t.Error("too few to mean anything")
	}
}

// TestJoinSharesARelease has waiters join a lock that is passed on: each is written
// in the transaction of the release, which so need not wait for a flush of theirs,
// and one for which no release comes is written all the same.
func TestJoinSharesARelease(t *testing.T) {
	z := startZooKeeper(t, rig.ZooKeeperConfig{})
	var shared atomic.Int64
	s := open(t, zookeeper.Config{Servers: z.Endpoints(), Observer: zookeeper.Observer{Batch: func(writes int) {
		if writes == 2 {
			shared.Add(1)
		}
	}}})
	f := follow(t, s)
	const rounds = 40
	holder := enqueue(t, s, draft("a"))
	for range rounds {
		within(t, 10*time.Second, "the feed knows the holder", func() bool { return f.first("a") == holder.ID })
		next := draft("a")
		joined := make(chan *lock.Entry, 1)
		go func() {
			placed, err := s.Enqueue(t.Context(), next)
			if err != nil {
				t.Error(err)
			}
			joined <- placed
		}()
		if err := s.Remove(t.Context(), holder, lock.Released); err != nil {
			t.Fatal(err)
		}
		if holder = <-joined; holder == nil {
			t.FailNow()
		}
	}
	if t.Logf("%d of %d joined with a release", shared.Load(), rounds); shared.Load() < rounds/4 {
		t.Error("too few")
	}
	waiter := enqueue(t, s, draft("a"))
	if waiter.Number <= holder.Number {
		t.Errorf("number %d after %d", waiter.Number, holder.Number)
	}
}
