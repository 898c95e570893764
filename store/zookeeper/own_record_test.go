package zookeeper_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/store/zookeeper"
	"github.com/fencepost/fencepost/test/rig"
)

// TestFeedBeginsWithoutConnectionForCalls: the feed has a connection of its own, and begins again
// although that for calls cannot be opened. Holders and waiters see what happens meanwhile.
func TestFeedBeginsWithoutConnectionForCalls(t *testing.T) {
	t.Parallel()
	z := startZooKeeper(t, rig.ZooKeeperConfig{})
	s := open(t, zookeeper.Config{Servers: z.Endpoints()})
	m := follow(t, s)
	s.EndCalls()
	s.HoldFeed()()
	within(t, 10*time.Second, "the feed has ended", func() bool { return !m.isCurrent() })
	within(t, 15*time.Second, "the feed has begun again", m.isCurrent)
}

// TestOpenWhileTheLogChanges: a replica that opens the store while another begins the next log
// finds out at once, and not at the end of its time.
func TestOpenWhileTheLogChanges(t *testing.T) {
	t.Parallel()
	z := startZooKeeper(t, rig.ZooKeeperConfig{})
	cfg := zookeeper.Config{Servers: z.Endpoints()}
	other := open(t, cfg)
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Second)
	defer cancel()
	err := zookeeper.LoadBehind(ctx, cfg, func() {
		if err := other.Rotate(ctx); err != nil {
			t.Error(err)
		}
	})
	if !errors.Is(err, zk.ErrBadVersion) || ctx.Err() != nil {
		t.Errorf("Load = %v, with %v", err, ctx.Err())
	}
}

// TestUnboundAfterDamage: a bound record is changed by hand, and its replica then puts it for good.
// It outlives the replica.
func TestUnboundAfterDamage(t *testing.T) {
	t.Parallel()
	z := startZooKeeper(t, rig.ZooKeeperConfig{})
	cfg := zookeeper.Config{Servers: z.Endpoints()}
	other, c := open(t, cfg), hand(t, z)
	s, err := zookeeper.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	k := store.RecordKey{Kind: "note", Tenant: "acme", ID: "one"}
	if _, err := s.Records().Put(t.Context(), store.RecordPut{RecordKey: k, Bound: true}); err != nil {
		t.Fatal(err)
	}
	walk(t, c, ours+"/records/note", func(path string) {
		if strings.HasSuffix(path, ",one") {
			if _, err := c.Set(path, []byte("x"), -1); err != nil {
				t.Fatal(err)
			}
		}
	})
	is, err := s.Records().Get(t.Context(), k)
	if err != nil {
		t.Fatal(err)
	}
	forGood := store.RecordPut{RecordKey: k, Version: is.Version}
	if _, err := s.Records().Put(t.Context(), forGood); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := other.Records().Get(t.Context(), k); err != nil {
		t.Errorf("the record that was put for good: %v", err)
	}
}

// TestNarrowBehindAFloor: a choice that was made before a floor was given is not written after it,
// although the client has read the floor by then. In a store that lost its past, others may be in
// front of the entry again.
func TestNarrowBehindAFloor(t *testing.T) {
	t.Parallel()
	z := startZooKeeper(t, rig.ZooKeeperConfig{})
	s := open(t, zookeeper.Config{Servers: z.Endpoints()})
	e := draft("a")
	e.Claims = append(e.Claims, lock.Claim{Name: "b", Mode: lock.Exclusive})
	e.Set = true
	e.Choose(1, e.Claims)
	e = enqueue(t, s, e)
	m := follow(t, s)
	within(t, 10*time.Second, "the feed has the entry", func() bool { return m.reached(e.Number) })
	err := s.NarrowBehind(t.Context(), e, e.Claims[:1], func() {
		open(t, zookeeper.Config{Servers: z.Endpoints(), FenceFloor: 1 << 40})
		if err := s.Reread(t.Context()); err != nil {
			t.Error(err)
		}
	})
	if !errors.Is(err, zk.ErrBadVersion) {
		t.Errorf("the write is answered %v", err)
	}
}
