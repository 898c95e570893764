package zookeeper_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/store/zookeeper"
	"github.com/fencepost/fencepost/test/rig"
)

// TestWriteOfAnEarlierConnection has a create be held back on its way, until it was
// repeated over another connection and the entry is gone again. It arrives then, in a
// session that is still alive, and nothing is made of it: the node that it checks was
// deleted by the connection that came after.
func TestWriteOfAnEarlierConnection(t *testing.T) {
	t.Parallel()
	z := startZooKeeper(t, rig.ZooKeeperConfig{})
	proxies := map[string]*rig.Proxy{}
	var servers []string
	for range 2 {
		p := startProxy(t, z.Server(0))
		proxies[p.Address()] = p
		servers = append(servers, p.Address())
	}
	s, other := open(t, zookeeper.Config{Servers: servers}), open(
		t, zookeeper.Config{Servers: z.Endpoints()},
	)
	m := follow(t, other)
	held := proxies[s.CallsThrough(t.Context())]
	if held == nil {
		t.Fatal("there is no connection for calls")
	}
	held.Blackhole(rig.ToServer)
	sent := held.Stats().BytesToServer
	var placed *lock.Entry
	within(t, 30*time.Second, "the entry is written over the other connection", func() bool {
		e := draft("a") // an id for each call: one that gives up takes its entry back
		err := other.Remove(t.Context(), take(t, other, e), lock.Withdrawn)
		if err == nil { // and its shard is made
			placed, _, err = s.Enqueue(t.Context(), e)
		}
		return err == nil
	})
	if err := other.Remove(t.Context(), placed, lock.Released); err != nil {
		t.Fatal(err)
	}
	held.Blackhole(0)
	within(
		t, 10*time.Second, "what was held back has arrived",
		func() bool { return held.Stats().BytesToServer > sent+100 },
	)
	for i := range 5 {
		last := take(t, other, draft(fmt.Sprint("last-", i)))
		within(
			t, 10*time.Second, "the feed has what came later",
			func() bool { return m.first(fmt.Sprint("last-", i)) == last.ID },
		)
		if m.first("a") != "" {
			t.Fatalf("there is an entry at %d again, which was released", placed.Number)
		}
	}
}

// TestFloorWithoutAFeed gives another replica a floor while one has no connection for its
// feed, and so is not told. It puts no entry below the floor all the same.
func TestFloorWithoutAFeed(t *testing.T) {
	t.Parallel()
	z := startZooKeeper(t, rig.ZooKeeperConfig{})
	s := open(t, zookeeper.Config{Servers: z.Endpoints()})
	before := take(t, s, draft("a"))
	if err := s.Remove(t.Context(), before, lock.Released); err != nil {
		t.Fatal(err)
	}
	defer s.HoldFeed()()
	raised := open(t, zookeeper.Config{Servers: z.Endpoints(), FenceFloor: before.Number + 1<<40})
	last := take(t, raised, draft("a"))
	if err := raised.Remove(t.Context(), last, lock.Released); err != nil {
		t.Fatal(err)
	}
	if e := take(t, s, draft("a")); e.Number <= last.Number {
		t.Errorf("fence %d of a lock after %d", e.Number, last.Number)
	}
}

// TestReleaseWhileTheFloorRises releases an entry, by its number from before a new floor, through
// a replica that has adopted the floor and has no feed. All other feeds report that the entry
// left.
func TestReleaseWhileTheFloorRises(t *testing.T) {
	t.Parallel()
	z := startZooKeeper(t, rig.ZooKeeperConfig{})
	for name, e := range map[string]*lock.Entry{"fresh": draft("a"), "keyed": keyed("a")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := zookeeper.Config{Servers: z.Endpoints(), Prefix: "/" + name}
			s, prompt := open(t, cfg), open(t, cfg)
			m, n := follow(t, s), follow(t, prompt)
			held := take(t, s, e)
			within(
				t, 30*time.Second, "both have the entry",
				func() bool { return m.first("a") == held.ID && n.first("a") == held.ID },
			)
			defer s.HoldFeed()()
			within(t, 30*time.Second, "one feed is cut off", func() bool { return !m.isCurrent() })
			cfg.FenceFloor = 1 << 40
			raised := follow(t, open(t, cfg))
			take(t, s, draft("b")) // is refused at first, as the floor is another one
			within(t, 30*time.Second, "the others have listed with the floor", func() bool {
				return n.isCurrent() && n.reached(cfg.FenceFloor) && raised.first("a") == held.ID
			})
			if err := s.Remove(t.Context(), held, lock.Released); err != nil {
				t.Fatal(err)
			}
			within(
				t, 30*time.Second, "the others have seen the release",
				func() bool { return n.first("a") == "" && raised.first("a") == "" },
			)
		})
	}
}

// TestFloorIsAddedBeforeItIsCompared writes an entry after a replica has read a higher
// floor, and before it has taken that over. Either the write is refused, or its number is
// above the floor.
func TestFloorIsAddedBeforeItIsCompared(t *testing.T) {
	t.Parallel()
	z := startZooKeeper(t, rig.ZooKeeperConfig{})
	refused := make(chan struct{}, 1)
	s := open(t, zookeeper.Config{Servers: z.Endpoints(), Observer: store.Observer{
		Operation: func(name string, _ time.Duration, err error) {
			if name != "commit" || err == nil {
				return
			}
			select {
			case refused <- struct{}{}:
			default:
			}
		},
	}})
	again := draft("a")
	if err := s.Remove(t.Context(), take(t, s, again), lock.Withdrawn); err != nil {
		t.Fatal(err) // its shard is made, or the write would be refused because of that
	}
	for len(refused) > 0 {
		<-refused
	}
	defer s.HoldFeed()()
	const floor = 1 << 40
	open(t, zookeeper.Config{Servers: z.Endpoints(), FenceFloor: floor})
	written := make(chan struct{})
	var e *lock.Entry
	var joined error
	err := s.ReadAnew(t.Context(), func() {
		go func() {
			defer close(written)
			e, _, joined = s.Enqueue(t.Context(), again)
		}()
		select {
		case <-written:
		case <-refused:
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if <-written; joined != nil || e.Number <= floor {
		t.Errorf("an entry was handed out at %+v, %v, and the floor is %d", e, joined, floor)
	}
}

// TestWriteShowsALostPast puts an older copy of its data under a server. The first to hear
// a lower number is a write, as the feed has no connection: its entry is not handed out.
func TestWriteShowsALostPast(t *testing.T) {
	t.Parallel()
	z := startZooKeeper(t, rig.ZooKeeperConfig{})
	s := open(t, zookeeper.Config{Servers: z.Endpoints()})
	first := take(t, s, draft("a"))
	server, copied := z.Server(0), t.TempDir()
	replaced(t, server, server.Data(), copied)
	for i := range 30 {
		within(t, time.Minute, "the store is there again", func() bool {
			_, _, err := s.Enqueue(t.Context(), draft(fmt.Sprint("b-", i)))
			return err == nil
		})
	}
	defer s.HoldFeed()()
	replaced(t, server, copied, server.Data())
	within(t, time.Minute, "the store is refused", func() bool {
		e, _, err := s.Enqueue(t.Context(), draft("c"))
		if err == nil {
			t.Fatalf("fence %d was handed out of a store that went back to %d", e.Number, first.Number)
		}
		var refusal *lock.Error
		return errors.As(err, &refusal) && strings.Contains(refusal.Detail, "--fence-floor")
	})
}

// TestQueueOfALateFollower reads a queue from a server that was stopped while much was
// written elsewhere. What it answers right after is no older than the question.
func TestQueueOfALateFollower(t *testing.T) {
	t.Parallel()
	z := startZooKeeper(t, rig.ZooKeeperConfig{Servers: 3, TickTime: 2 * time.Second})
	leader, err := z.Leader(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	late := z.Server((leader + 1) % 3)
	s, other := open(t, zookeeper.Config{Servers: []string{late.Address()}}), open(
		t, zookeeper.Config{Servers: []string{z.Server(leader).Address()}},
	)
	follow(t, s)
	for round := range 5 {
		if err := late.Stop(); err != nil {
			t.Fatal(err)
		}
		parallel(16, 60, func(i int) {
			e := draft("busy")
			e.ID = lock.ID(fmt.Sprintf("BUSY%dX%020d", round, i))
			if _, _, err := other.Enqueue(t.Context(), e); err != nil {
				t.Errorf("Enqueue: %v", err)
			}
		})
		last := draft("a")
		last.ID = lock.ID(fmt.Sprintf("LAST%022d", round))
		last = take(t, other, last)
		type answer struct {
			entries []*lock.Entry
			number  uint64
			err     error
		}
		read := make(chan answer, 1)
		go func() {
			entries, number, err := s.ReadQueue(t.Context(), lock.Ref{Tenant: "acme", Name: "a"})
			read <- answer{entries, number, err}
		}()
		within(t, 10*time.Second, "the question is on its way", func() bool { return s.Asking() })
		if err := late.Continue(); err != nil {
			t.Fatal(err)
		}
		a := <-read
		if a.err != nil {
			t.Logf("round %d: %v", round, a.err) // it was stopped for too long
		} else if n := len(
			a.entries,
		); n != round+1 || a.entries[n-1].ID != last.ID || a.number < last.Number {
			t.Errorf(
				"round %d: %d entries as of %d, although the last was written at %d before", round, n, a.number,
				last.Number,
			)
		}
	}
}
