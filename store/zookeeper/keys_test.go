package zookeeper_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/store/zookeeper"
	"github.com/fencepost/fencepost/test/rig"
)

// keyed returns an entry with an idempotency key, which is the same each time.
func keyed(name string) *lock.Entry {
	e := draft(name)
	e.ID, e.Request, e.TTL = "01JABCDEFG0000000000000000", "the same", 10*time.Minute
	return e
}

// take writes an entry, by its id as it is.
func take(t *testing.T, s *zookeeper.Store, e *lock.Entry) *lock.Entry {
	t.Helper()
	placed, _, err := s.Enqueue(t.Context(), e)
	if err != nil {
		t.Fatalf("Enqueue: %v", err)
	}
	return placed
}

// TestLateCreate has a replica's create be late, after its client went to another
// replica, where the same key was used up. Nothing is made of it then.
func TestLateCreate(t *testing.T) {
	t.Parallel()
	for _, why := range []lock.Reason{lock.Released, lock.Withdrawn} {
		t.Run(string(why), func(t *testing.T) {
			t.Parallel()
			z := startZooKeeper(t, rig.ZooKeeperConfig{})
			proxy := startProxy(t, z.Server(0))
			late, prompt := open(t, zookeeper.Config{Servers: []string{proxy.Address()}}), open(
				t, zookeeper.Config{Servers: z.Endpoints()},
			)
			warm := keyed("a") // its shards are made before
			warm.ID = "01JABCDEFG0000000000000020"
			if err := late.Remove(t.Context(), take(t, late, warm), lock.Released); err != nil {
				t.Fatal(err)
			}
			first := keyed("a")
			if err := prompt.Remove(t.Context(), take(t, prompt, first), lock.Withdrawn); err != nil {
				t.Fatal(err) // its shards are made too, and the key is free
			}
			proxy.Blackhole(rig.ToServer)
			sent := proxy.Stats().BytesToServer
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			if _, _, err := late.Enqueue(ctx, keyed("a")); !errors.Is(err, lock.StoreUnavailable) {
				t.Fatalf("Enqueue without an answer = %v", err)
			}
			used := take(t, prompt, keyed("a"))
			if err := prompt.Remove(t.Context(), used, why); err != nil {
				t.Fatal(err)
			}
			proxy.Blackhole(0)
			within(
				t, time.Minute, "what was late has arrived",
				func() bool { return proxy.Stats().BytesToServer > sent+100 },
			)
			for range 3 { // over the late connection too, behind the create
				if _, err := late.Newest(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			queue, _, err := prompt.Queue(t.Context(), lock.Ref{Tenant: "acme", Name: "a"})
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range queue {
				t.Errorf(
					"entry %s holds the lock at %d, after it was removed at %d", e.ID, e.Number, used.Number,
				)
			}
		})
	}
}

// TestUsedUpKey: a key is used once, on whatever lock, until it is forgotten.
func TestUsedUpKey(t *testing.T) {
	t.Parallel()
	z := startZooKeeper(t, rig.ZooKeeperConfig{})
	client := hand(t, z)
	s, other := open(t, zookeeper.Config{Servers: z.Endpoints()}), open(
		t, zookeeper.Config{Servers: z.Endpoints()},
	)
	follow(t, s)
	first := take(t, s, keyed("a"))
	for _, name := range []string{"a", "b"} {
		again, written, err := other.Enqueue(t.Context(), keyed(name))
		if err != nil || written || again.Number != first.Number || again.Name() != "a" {
			t.Errorf("the key on %s while it is in use: %+v, written %v, %v", name, again, written, err)
		}
	}
	if err := other.Remove(t.Context(), first, lock.Withdrawn); err != nil {
		t.Fatal(err)
	}
	second, written, err := s.Enqueue(t.Context(), keyed("b"))
	if err != nil || !written || second.Number <= first.Number {
		t.Fatalf("the key of a withdrawn entry: %+v, written %v, %v", second, written, err)
	}
	if err := s.Remove(t.Context(), second, lock.Revoked); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "b"} {
		var refused *lock.Error
		if _, _, err := other.Enqueue(
			t.Context(), keyed(name),
		); !errors.As(err, &refused) || refused.Code != lock.Lost || refused.Reason != lock.Revoked {
			t.Errorf("the used-up key on %s: %v, want lock_lost and revoked", name, err)
		}
	}
	held := keyed("c")
	held.ID = "01JABCDEFG0000000000000001"
	if err := s.Remove(t.Context(), take(t, s, held), lock.Withdrawn); err != nil {
		t.Fatal(err)
	}
	take(t, s, held) // in use, although an end with it is remembered
	marks := func() (n int) {
		walk(t, client, "/fencepost/v1/keys", func(path string) {
			if strings.Contains(path, ",") {
				n++
			}
		})
		return n
	}
	folded(t, s, client)
	if err := s.Forget(t.Context(), 10*time.Minute); err != nil || marks() != 2 {
		t.Errorf("%d keys are remembered after 10 minutes, want 2; %v", marks(), err)
	}
	if err := other.Forget(t.Context(), 12*time.Minute); err != nil || marks() != 1 {
		t.Errorf("%d keys are remembered after 12 minutes, want that in use; %v", marks(), err)
	}
	if third := take(t, other, keyed("a")); third.Number <= second.Number {
		t.Errorf("%d after %d", third.Number, second.Number)
	}
}

// TestOldEndOfAUsedUpKey: a key was withdrawn long ago, and used up since. That it was
// withdrawn is forgotten, and that it is used up is not.
func TestOldEndOfAUsedUpKey(t *testing.T) {
	t.Parallel()
	z := startZooKeeper(t, rig.ZooKeeperConfig{})
	client := hand(t, z)
	s := open(t, zookeeper.Config{Servers: z.Endpoints()})
	follow(t, s)
	if err := s.Remove(t.Context(), take(t, s, keyed("a")), lock.Withdrawn); err != nil {
		t.Fatal(err)
	}
	folded(t, s, client)
	moved := func() (nodes []string) {
		walk(t, client, "/fencepost/v1/ended", func(path string) {
			if path != "/fencepost/v1/ended" {
				nodes = append(nodes, path)
			}
		})
		return nodes
	}
	if n := len(moved()); n != 1 {
		t.Fatalf("%d nodes of ends, want 1", n)
	}
	_, old, err := client.Get(moved()[0])
	if err != nil {
		t.Fatal(err)
	}
	second := take(t, s, keyed("a"))
	within(t, 10*time.Second, "the server's clock goes on", func() bool {
		stat, err := client.Set("/fencepost/v1/ended", nil, -1)
		return err == nil && stat.Mtime > old.Ctime
	})
	if err := s.Remove(t.Context(), second, lock.Released); err != nil {
		t.Fatal(err)
	}
	if err := s.ForgetBefore(t.Context(), old.Ctime+1); err != nil || len(moved()) > 0 {
		t.Fatalf("%v is not forgotten, %v", moved(), err)
	}
	var refused *lock.Error
	if _, _, err := s.Enqueue(t.Context(), keyed("a")); !errors.As(err, &refused) ||
		refused.Reason != lock.Released {
		t.Errorf("the used-up key: %v, want lock_lost and released", err)
	}
}

// TestWrittenOnce: the answer to a create is lost, and another client removes the entry before
// the repetition. The call does not write it a second time.
func TestWrittenOnce(t *testing.T) {
	t.Parallel()
	z := startZooKeeper(t, rig.ZooKeeperConfig{})
	proxy := startProxy(t, z.Server(0))
	s, other := open(t, zookeeper.Config{Servers: []string{proxy.Address()}}), open(
		t, zookeeper.Config{Servers: z.Endpoints()},
	)
	m := follow(t, other)
	e := draft("a")
	warmed := take(t, other, e) // its shard is made before
	if err := other.Remove(t.Context(), warmed, lock.Withdrawn); err != nil {
		t.Fatal(err)
	}
	// The client that is cut off has read the closures of the tenant before.
	if err := s.Remove(t.Context(), take(t, s, draft("b")), lock.Withdrawn); err != nil {
		t.Fatal(err)
	}
	proxy.Blackhole(rig.ToClient)
	type answer struct {
		placed *lock.Entry
		err    error
	}
	done := make(chan answer, 1)
	go func() {
		placed, _, err := s.Enqueue(t.Context(), e)
		done <- answer{placed, err}
	}()
	within(t, 10*time.Second, "the entry is there", func() bool { return m.first("a") == e.ID })
	queue, _, err := other.Queue(t.Context(), lock.Ref{Tenant: "acme", Name: "a"})
	if err != nil || len(queue) != 1 {
		t.Fatalf("%d entries, %v", len(queue), err)
	}
	if err := other.Remove(t.Context(), queue[0], lock.Revoked); err != nil {
		t.Fatal(err)
	}
	proxy.CutAll()
	proxy.Blackhole(0)
	if a := <-done; !errors.Is(a.err, store.ErrNotWritten) {
		t.Errorf("Enqueue of an entry that was revoked = %+v, %v", a.placed, a.err)
	}
	if queue, _, err = other.Queue(t.Context(), lock.Ref{Tenant: "acme", Name: "a"}); err != nil ||
		len(queue) > 0 {
		t.Errorf("%d entries, %v: it was written a second time", len(queue), err)
	}
}

// TestOutcomeBesideAnotherLog: the answers to a create and to a removal are lost while
// another log has come into use, which the feed does not follow yet. What is in the new
// log behind the feed's place in the old one says nothing of either.
func TestOutcomeBesideAnotherLog(t *testing.T) {
	t.Parallel()
	z := startZooKeeper(t, rig.ZooKeeperConfig{})
	proxy := startProxy(t, z.Server(0))
	s, other := open(t, zookeeper.Config{Servers: []string{proxy.Address()}}), open(
		t, zookeeper.Config{Servers: z.Endpoints()},
	)
	m := follow(t, other)
	created, removed := draft("a"), take(t, s, draft("b"))
	for range 5 { // so that the feed is far in the first log
		if err := other.Remove(t.Context(), take(t, other, created), lock.Withdrawn); err != nil {
			t.Fatal(err)
		}
	}
	within(t, 10*time.Second, "the feed has it", func() bool { return s.Ahead(other) == 0 })
	release := s.HoldFeed()
	defer release()
	if err := other.Rotate(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.Learn(1)
	if _, err := s.Newest(t.Context()); err != nil {
		t.Fatal(err)
	}
	within(
		t, 10*time.Second, "the other follows the new log",
		func() bool { return m.first("b") == removed.ID && other.Follows(1) },
	)
	proxy.Blackhole(rig.ToClient)
	done := make(chan error, 1)
	go func() { done <- s.Remove(t.Context(), removed, lock.Released) }()
	within(t, 10*time.Second, "it is removed", func() bool { return m.first("b") == "" })
	proxy.CutAll()
	proxy.Blackhole(0)
	if err := <-done; err != nil {
		t.Errorf("Remove of what it has removed itself = %v", err)
	}
	proxy.Blackhole(rig.ToClient)
	go func() {
		_, _, err := s.Enqueue(t.Context(), created)
		done <- err
	}()
	within(t, 10*time.Second, "the entry is there", func() bool { return m.first("a") == created.ID })
	queue, _, err := other.Queue(t.Context(), lock.Ref{Tenant: "acme", Name: "a"})
	if err != nil || len(queue) != 1 {
		t.Fatalf("%d entries, %v", len(queue), err)
	}
	if err := other.Remove(t.Context(), queue[0], lock.Revoked); err != nil {
		t.Fatal(err)
	}
	proxy.CutAll()
	proxy.Blackhole(0)
	if err := <-done; err == nil {
		t.Error("an entry that was revoked was written a second time")
	}
}
