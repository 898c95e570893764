package zookeeper_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/store/zookeeper"
	"github.com/fencepost/fencepost/test/rig"
)

// TestRenewedElsewhereAtTheLastMoment has a replica come to the end of a lease
// which, unknown to it, another one has just renewed.
func TestRenewedElsewhereAtTheLastMoment(t *testing.T) {
	t.Parallel()
	z := startZooKeeper(t, rig.ZooKeeperConfig{})
	here, elsewhere := open(t, zookeeper.Config{Servers: z.Endpoints()}), open(
		t, zookeeper.Config{Servers: z.Endpoints()},
	)
	for name, e := range map[string]*lock.Entry{
		"first renewal": draft("a"), "one of many": draft("b"), "repeatable": draft("c"),
	} {
		if name == "repeatable" {
			e.Request = "the same"
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e.TTL = 15 * time.Second // a busy machine renews it within the last fifth
			start := time.Now()
			e = enqueue(t, here, e)
			if name == "one of many" {
				if err := here.Renew(t.Context(), e); err != nil {
					t.Fatalf("Renew: %v", err)
				}
			}
			within(
				t, e.TTL, "the last look at the lease is over",
				func() bool { return time.Since(start) > e.TTL*8/10 },
			)
			if err := elsewhere.Renew(t.Context(), e); err != nil {
				t.Fatalf("Renew: %v", err)
			}
			renewed := time.Now()
			within(
				t, e.TTL, "the old lease is long over", func() bool { return time.Since(renewed) > e.TTL*6/10 },
			)
			if err := here.Renew(t.Context(), e); err != nil {
				t.Errorf("Renew after a renewal elsewhere: %v", err)
			}
		})
	}
}

// TestLeaseOfTheFirstRenewal has an entry get a node for its lease when it is first
// renewed, and a replica that knows nothing of that remove it all the same.
func TestLeaseOfTheFirstRenewal(t *testing.T) {
	t.Parallel()
	z := startZooKeeper(t, rig.ZooKeeperConfig{})
	client := hand(t, z)
	log, logged := journal(t)
	cfg := zookeeper.Config{Servers: z.Endpoints(), Logger: log}
	here, elsewhere := open(t, cfg), open(t, cfg)
	nodes := func() (n int) {
		walk(t, client, "/fencepost/v1/entries", func(path string) {
			if strings.Contains(path, ",") {
				n++
			}
		})
		return n
	}
	e := enqueue(t, here, draft("a"))
	if n := nodes(); n != 1 {
		t.Errorf("%d nodes for an entry, want 1", n)
	}
	for range 2 {
		if err := elsewhere.Renew(t.Context(), e); err != nil {
			t.Fatalf("Renew: %v", err)
		}
		if n := nodes(); n != 2 {
			t.Errorf("%d nodes for an entry that was renewed, want 2", n)
		}
	}
	if err := here.Remove(t.Context(), e, lock.Released); err != nil {
		t.Errorf("Remove: %v", err)
	}
	for _, s := range []*zookeeper.Store{here, elsewhere} {
		if err := s.Renew(t.Context(), e); !errors.Is(err, lock.Lost) {
			t.Errorf("Renew after the removal = %v, want lock_lost", err)
		}
	}
	if n := nodes(); n != 0 || strings.Contains(logged.String(), "level=ERROR") {
		t.Errorf("%d nodes are left, or something was reported", n)
	}
}

// TestRemoveTogether has two replicas remove an entry at once; one does not know that the entry
// has a lease: one removes it, and the other learns that it is gone.
func TestRemoveTogether(t *testing.T) {
	t.Parallel()
	z := startZooKeeper(t, rig.ZooKeeperConfig{})
	cfg := zookeeper.Config{Servers: z.Endpoints()}
	here, elsewhere := open(t, cfg), open(t, cfg)
	for range 200 {
		e := enqueue(t, here, draft("a"))
		if err := elsewhere.Renew(t.Context(), e); err != nil {
			t.Fatalf("Renew: %v", err)
		}
		var failed [2]error
		var both sync.WaitGroup
		for i, s := range []*zookeeper.Store{here, elsewhere} {
			both.Go(func() { failed[i] = s.Remove(t.Context(), e, lock.Released) })
		}
		both.Wait()
		lost := slices.DeleteFunc(failed[:], func(err error) bool { return err == nil })
		if len(lost) != 1 || !errors.Is(lost[0], lock.Lost) {
			t.Fatalf("two removals end with %v, want one lock_lost", lost)
		}
	}
}

// overwriteEntries writes data to the nodes of all entries.
func overwriteEntries(t *testing.T, client *zk.Conn, data string) {
	t.Helper()
	walk(t, client, "/fencepost/v1/entries", func(path string) {
		if strings.Contains(path, ",") {
			if _, err := client.Set(path, []byte(data), -1); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// TestDamagedEntryIsRenewed damages an entry before its first renewal. A replica that reads it
// then, and one that knew it before, both accept its holder's renewals. The TTL is long enough
// for a second replica to start on a busy machine.
func TestDamagedEntryIsRenewed(t *testing.T) {
	t.Parallel()
	z := startZooKeeper(t, rig.ZooKeeperConfig{})
	client := hand(t, z)
	here := open(t, zookeeper.Config{Servers: z.Endpoints()})
	e := draft("a")
	e.TTL = 8 * time.Second
	e = enqueue(t, here, e)
	overwriteEntries(t, client, "{")
	late := open(t, zookeeper.Config{Servers: z.Endpoints()})
	queue, _, err := late.Queue(t.Context(), lock.Ref{Tenant: "acme", Name: "a"})
	if err != nil || len(queue) != 1 {
		t.Fatalf("Queue: %d entries, %v", len(queue), err)
	}
	renewed := time.Now()
	within(t, 3*e.TTL, "the lease would have ended", func() bool {
		if err := late.Renew(t.Context(), queue[0]); err != nil {
			t.Fatalf("Renew after %v: %v", time.Since(renewed), err)
		}
		return time.Since(renewed) > e.TTL*3/2
	})
	if err := here.Renew(t.Context(), e); err != nil {
		t.Errorf("Renew at the replica that wrote it: %v", err)
	}
}

// TestRemoveByAnOldNumber has an entry be called by a number that it had before the
// fence floor was raised: nothing happens, rather than half of it.
func TestRemoveByAnOldNumber(t *testing.T) {
	t.Parallel()
	z := startZooKeeper(t, rig.ZooKeeperConfig{})
	s := open(t, zookeeper.Config{Servers: z.Endpoints()})
	f := follow(t, s)
	e := enqueue(t, s, draft("a"))
	within(t, 10*time.Second, "the feed has it", func() bool { return f.first("a") == e.ID })
	old := *e
	old.Number--
	if err := s.Remove(t.Context(), &old, lock.Released); !errors.Is(err, lock.Lost) {
		t.Errorf("Remove = %v, want lock_lost", err)
	}
	if err := s.Renew(t.Context(), e); err != nil {
		t.Errorf("Renew: %v", err)
	}
}

// moments remembers what was in a lock after each call of the feed.
type moments struct {
	mu    sync.Mutex
	table *lock.Table
	ids   map[uint64][]lock.ID
	at    uint64
}

func (m *moments) Reset(s store.Snapshot) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.table = lock.NewTable()
	for _, e := range s.Entries {
		_, _ = m.table.Insert(e) // the order is the suite's matter
	}
	m.note(s.Number)
}

func (m *moments) Apply(upTo uint64, changes []store.Change) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range changes {
		switch {
		case c.Joined != nil:
			_, _ = m.table.Insert(c.Joined)
		case c.Narrowed != nil:
			m.table.Narrow(c.Narrowed)
		default:
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

func (m *moments) Recall([]store.Ended, bool) {}
func (m *moments) Lost(error)                 {}

// TestQueueIsOfOneMoment reads a queue, node by node, while entries come, choose this lock or
// another one, and go. It holds each answer against what was in the queue at its number.
func TestQueueIsOfOneMoment(t *testing.T) {
	z := startZooKeeper(t, rig.ZooKeeperConfig{})
	s := open(t, zookeeper.Config{Servers: z.Endpoints()})
	m := &moments{ids: map[uint64][]lock.ID{}}
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	all.Go(func() { s.Watch(ctx, m) })
	working, rest := context.WithTimeout(ctx, 4*time.Second)
	defer rest()
	var workers sync.WaitGroup
	for worker := range 12 {
		workers.Go(func() {
			for i := 0; working.Err() == nil; i++ {
				e := draft("a")
				e.ID = lock.ID(fmt.Sprintf("W%dC%d", worker, i))
				e.Claims = append(e.Claims, lock.Claim{Name: "b", Mode: lock.Exclusive})
				e.Set, e.Any, e.Order = true, 1, []int{0, 1}
				placed, _, err := s.Enqueue(ctx, e)
				if err == nil {
					_, err = s.Narrow(ctx, placed, e.Claims[i%2:i%2+1])
				}
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
	within(t, time.Minute, "the feed has everything", func() bool {
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
	s := open(
		t,
		zookeeper.Config{Servers: z.Endpoints(), Observer: store.Observer{Batch: func(writes int) {
			if writes == 2 {
				shared.Add(1)
			}
		}}},
	)
	f := follow(t, s)
	const rounds = 40
	holder := enqueue(t, s, draft("a"))
	for range rounds {
		within(
			t, 10*time.Second, "the feed knows the holder", func() bool { return f.first("a") == holder.ID },
		)
		next := draft("a")
		next.Lingers = true
		joined, begins := make(chan *lock.Entry, 1), make(chan struct{})
		go func() {
			close(begins)
			placed, _, err := s.Enqueue(t.Context(), next)
			if err != nil {
				t.Error(err)
			}
			joined <- placed
		}()
		<-begins
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

// TestFloorRisesBeforeTheFeedBegins: another replica sets a floor after this one has read it, and
// before this one follows the log. So the log does not report it. The feed must not begin with
// the old floor, because a waiter here would be granted below issued fences.
func TestFloorRisesBeforeTheFeedBegins(t *testing.T) {
	t.Parallel()
	z := startZooKeeper(t, rig.ZooKeeperConfig{})
	s := open(t, zookeeper.Config{Servers: z.Endpoints()})
	if err := s.BeginBehind(t.Context(), func() {}); err != nil {
		t.Fatal(err)
	}
	release := s.HoldFeed() // which would tell it
	defer release()
	err := s.BeginBehind(t.Context(), func() {
		open(t, zookeeper.Config{Servers: z.Endpoints(), FenceFloor: 1 << 40})
	})
	if err == nil {
		t.Error("the feed begins")
	}
}

// atMessage calls a function when something is logged.
type atMessage struct {
	slog.Handler
	part string
	do   func()
}

func (h *atMessage) Enabled(context.Context, slog.Level) bool { return true }

func (h *atMessage) Handle(_ context.Context, r slog.Record) error {
	if strings.Contains(r.Message, h.part) {
		h.do()
	}
	return nil
}

// TestFloorRisesWhileAQueueIsRead: this replica learns of a greater floor after it has read the
// waiters and before it has read the first entry. That entry is still first.
func TestFloorRisesWhileAQueueIsRead(t *testing.T) {
	t.Parallel()
	z := startZooKeeper(t, rig.ZooKeeperConfig{})
	hook := &atMessage{Handler: slog.DiscardHandler, part: "an entry cannot be read"}
	s := open(t, zookeeper.Config{Servers: z.Endpoints(), Logger: slog.New(hook)})
	first, waits := take(t, s, draft("a")), take(t, s, draft("a"))
	client := hand(t, z)
	damaged := ""
	walk(t, client, "/fencepost/v1/entries", func(path string) {
		if strings.HasSuffix(path, string(first.ID)) {
			damaged = path
		}
	})
	if _, err := client.Set(damaged, []byte("{"), -1); err != nil {
		t.Fatal(err)
	}
	var once sync.Once
	hook.do = func() {
		once.Do(func() {
			<-time.After(time.Second) // the other is read meanwhile; otherwise this shows nothing
			if err := s.LearnFloor(t.Context(), 1<<40); err != nil {
				t.Error(err)
			}
		})
	}
	queue, _, err := s.ReadQueue(t.Context(), lock.Ref{Tenant: "acme", Name: "a"})
	if err != nil || len(queue) != 2 || queue[0].ID != first.ID || queue[1].ID != waits.ID {
		t.Errorf("the queue is %+v, %v", queue, err)
	}
}
