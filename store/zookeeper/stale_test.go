package zookeeper_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/store/zookeeper"
	"github.com/fencepost/fencepost/test/rig"
)

// TestStaleReplicaRemovesNoLaterEntry has a replica find the lease of an entry over that has left,
// or has none any more. The key of that entry is in use by a later one, or free, or used up, and
// stays so.
func TestStaleReplicaRemovesNoLaterEntry(t *testing.T) {
	t.Parallel()
	z := startZooKeeper(t, rig.ZooKeeperConfig{})
	for name, c := range map[string]struct {
		ended lock.Reason
		check func(t *testing.T, s *zookeeper.Store)
	}{
		"in use": {lock.Withdrawn, nil},
		"free": {lock.Withdrawn, func(t *testing.T, s *zookeeper.Store) {
			if _, written, err := s.Enqueue(t.Context(), keyed("a")); err != nil || !written {
				t.Errorf("the key of a withdrawn entry: written %v, %v", written, err)
			}
		}},
		"used up": {lock.Released, func(t *testing.T, s *zookeeper.Store) {
			var refused *lock.Error
			_, _, err := s.Enqueue(t.Context(), keyed("a"))
			if !errors.As(err, &refused) || refused.Reason != lock.Released {
				t.Errorf("the used-up key: %v, want lock_lost and released", err)
			}
		}},
	} {
		for _, leased := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, lease known %t", name, leased), func(t *testing.T) {
				t.Parallel()
				cfg := zookeeper.Config{
					Servers: z.Endpoints(),
					Prefix:  fmt.Sprintf("/%s-%t", strings.ReplaceAll(name, " ", "-"), leased),
				}
				prompt := open(t, cfg)
				log, logged := journal(t)
				cfg.Logger = log
				stale := open(t, cfg)
				m := follow(t, stale)
				e := take(t, prompt, keyed("a"))
				within(t, 30*time.Second, "the replica has the entry", func() bool {
					return m.first("a") == e.ID
				})
				defer stale.HoldFeed()()
				within(t, 30*time.Second, "its feed is cut off", func() bool { return !m.isCurrent() })
				if err := prompt.Remove(t.Context(), e, c.ended); err != nil {
					t.Fatal(err)
				}
				check := c.check
				if check == nil {
					later := take(t, prompt, keyed("a"))
					check = func(t *testing.T, s *zookeeper.Store) {
						if err := s.Renew(t.Context(), later); err != nil {
							t.Errorf("the later entry of the key: %v", err)
						}
					}
				}
				stale.Expire(t.Context(), e, leased)
				check(t, prompt)
				if strings.Contains(logged.String(), "level=ERROR") {
					t.Error("something was reported although nothing is wrong")
				}
			})
		}
	}
}

// TestRenewedSinceTheLook has a replica find a lease over by a version that the holder has replaced
// by then: the holder keeps its lock.
func TestRenewedSinceTheLook(t *testing.T) {
	t.Parallel()
	z := startZooKeeper(t, rig.ZooKeeperConfig{})
	cfg := zookeeper.Config{Servers: z.Endpoints()}
	here, elsewhere := open(t, cfg), open(t, cfg)
	for _, e := range []*lock.Entry{enqueue(t, here, draft("a")), take(t, here, keyed("b"))} {
		for range 2 { // the first makes the lease of a fresh entry
			if err := elsewhere.Renew(t.Context(), e); err != nil {
				t.Fatal(err)
			}
		}
		here.Expire(t.Context(), e, true)
		if err := elsewhere.Renew(t.Context(), e); err != nil {
			t.Errorf("Renew of %s, which was renewed before: %v", e.Name(), err)
		}
	}
}

// TestRemovedByAnother has a removal without an answer find its entry gone: it is done only if the
// removal's own attempt is on record.
func TestRemovedByAnother(t *testing.T) {
	t.Parallel()
	z := startZooKeeper(t, rig.ZooKeeperConfig{})
	s := open(t, zookeeper.Config{Servers: z.Endpoints()})
	for why, want := range map[lock.Reason]bool{lock.Released: true, lock.Expired: false} {
		e := enqueue(t, s, draft(string(why)))
		attempt, confirm := s.Removal(e, why)
		if !want {
			attempt = func(ctx context.Context) error { return s.Remove(ctx, e, why) }
		}
		if err := attempt(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := confirm(t.Context()); (err == nil) != want || !want && !errors.Is(err, lock.Lost) {
			t.Errorf("an entry that is gone as %s: %v", why, err)
		}
	}
}

// TestLifeOfAnother has a replica look at the life of one that renews it no more: it lasts as long
// as it must, and not longer.
func TestLifeOfAnother(t *testing.T) {
	t.Parallel()
	z := startZooKeeper(t, rig.ZooKeeperConfig{})
	s := open(t, zookeeper.Config{Servers: z.Endpoints()})
	lasts, err := s.Sweep(t.Context(), 0, store.RecordLife-time.Millisecond, store.RecordLife)
	if err != nil || !slices.Equal(lasts, []bool{true, true, false}) {
		t.Errorf("it lasts at first, until its end and then: %v, %v", lasts, err)
	}
}
