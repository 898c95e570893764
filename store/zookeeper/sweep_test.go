package zookeeper_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store/zookeeper"
	"github.com/fencepost/fencepost/test/rig"
)

// TestSweepOfWhatLeft has a replica miss the lease of an entry for a whole TTL, whose end
// it has not been told, as by a feed that is cut off or lists for long. The key of that
// entry is in use by another one, or free, or used up, and stays so.
func TestSweepOfWhatLeft(t *testing.T) {
	t.Parallel()
	z := startZooKeeper(t, rig.ZooKeeperConfig{})
	client := hand(t, z)
	inUse := func(t *testing.T, s *zookeeper.Store) (check func()) {
		again := take(t, s, keyed("a"))
		return func() {
			if err := s.Renew(t.Context(), again); err != nil {
				t.Errorf("the later entry of the key: %v", err)
			}
			if e, written, err := s.Enqueue(t.Context(), keyed("a")); err != nil || written || e.Number != again.Number {
				t.Errorf("a retry is told %+v, written %v, %v; want the entry at %d", e, written, err, again.Number)
			}
		}
	}
	for name, leave := range map[string]func(t *testing.T, s *zookeeper.Store, e *lock.Entry, nodes []string) (check func()){
		"in use": func(t *testing.T, s *zookeeper.Store, e *lock.Entry, _ []string) func() {
			if err := s.Remove(t.Context(), e, lock.Withdrawn); err != nil {
				t.Fatal(err)
			}
			return inUse(t, s)
		},
		"in use, after its nodes were deleted by hand": func(t *testing.T, s *zookeeper.Store, _ *lock.Entry, nodes []string) func() {
			for _, path := range nodes {
				if err := client.Delete(path, -1); err != nil {
					t.Fatal(err)
				}
			}
			return inUse(t, s)
		},
		"free": func(t *testing.T, s *zookeeper.Store, e *lock.Entry, _ []string) func() {
			if err := s.Remove(t.Context(), e, lock.Withdrawn); err != nil {
				t.Fatal(err)
			}
			return func() {
				if _, written, err := s.Enqueue(t.Context(), keyed("a")); err != nil || !written {
					t.Errorf("the key of a withdrawn entry: written %v, %v", written, err)
				}
			}
		},
		"used up": func(t *testing.T, s *zookeeper.Store, e *lock.Entry, _ []string) func() {
			if err := s.Remove(t.Context(), e, lock.Released); err != nil {
				t.Fatal(err)
			}
			return func() {
				var refused *lock.Error
				if _, _, err := s.Enqueue(t.Context(), keyed("a")); !errors.As(err, &refused) || refused.Reason != lock.Released {
					t.Errorf("the used-up key: %v, want lock_lost and released", err)
				}
			}
		},
	} {
		for _, feed := range []string{"current", "cut off"} {
			t.Run(name+", feed "+feed, func(t *testing.T) {
				t.Parallel()
				cfg := zookeeper.Config{Servers: z.Endpoints(), Prefix: "/" + strings.NewReplacer(" ", "-", ",", "").Replace(name+" "+feed)}
				prompt := open(t, cfg)
				log, logged := journal(t)
				cfg.Logger = log
				late := open(t, cfg)
				m := follow(t, late)
				e := take(t, prompt, keyed("a"))
				within(t, 30*time.Second, "the late one has the entry", func() bool { return m.first("a") == e.ID })
				nodes := nodesOf(t, client, cfg.Prefix)
				if feed == "cut off" {
					defer late.HoldFeed()()
					within(t, 30*time.Second, "the late one has noticed", func() bool { return !m.isCurrent() })
				}
				check := leave(t, prompt, e, nodes)
				late.Sweep(t.Context(), e)
				check()
				if strings.Contains(logged.String(), "level=ERROR") {
					t.Error("something was reported although nothing is wrong")
				}
				walk(t, client, cfg.Prefix+"/logs", func(path string) {
					if data, _, err := client.Get(path); err != nil || strings.Contains(string(data), string(lock.Expired)) {
						t.Errorf("%s says %s, %v", path, data, err)
					}
				})
			})
		}
	}
}

// nodesOf returns the nodes of all entries, those below others first.
func nodesOf(t *testing.T, client *zk.Conn, prefix string) (paths []string) {
	t.Helper()
	walk(t, client, prefix+"/entries", func(path string) {
		if strings.Contains(path, ",") {
			paths = append(paths, path)
		}
	})
	return paths
}

// TestSweepByHand has somebody delete the nodes of an entry, or its lease. A replica that
// misses that for a whole TTL removes the rest: from all views, and its key is used up.
// It leaves alone what has the lease of another entry below it.
func TestSweepByHand(t *testing.T) {
	t.Parallel()
	z := startZooKeeper(t, rig.ZooKeeperConfig{})
	client := hand(t, z)
	for name, keep := range map[string]int{"all is deleted": 0, "the lease is deleted": 1, "the lease is another's": 1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := zookeeper.Config{Servers: z.Endpoints(), Prefix: "/" + strings.NewReplacer(" ", "-", "'", "").Replace(name)}
			s, other := open(t, cfg), open(t, cfg)
			m, n := follow(t, s), follow(t, other)
			e := take(t, s, keyed("a"))
			both := func(id lock.ID) func() bool {
				return func() bool { return m.first("a") == id && n.first("a") == id }
			}
			within(t, 30*time.Second, "both have the entry", both(e.ID))
			nodes := nodesOf(t, client, cfg.Prefix)
			for _, path := range nodes[:len(nodes)-keep] {
				if err := client.Delete(path, -1); err != nil {
					t.Fatal(err)
				}
			}
			if strings.HasSuffix(name, "another's") {
				strange := nodes[1] + "/0123456789abcdef"
				if _, err := client.Create(strange, nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
					t.Fatal(err)
				}
				s.Sweep(t.Context(), e)
				if left := nodesOf(t, client, cfg.Prefix); len(left) != 2 {
					t.Errorf("%v is left of an entry with another lease", left)
				}
				if err := client.Delete(strange, -1); err != nil {
					t.Fatal(err)
				}
			}
			s.Sweep(t.Context(), e)
			within(t, 30*time.Second, "the entry is gone from both", both(""))
			if left := nodesOf(t, client, cfg.Prefix); len(left) > 0 {
				t.Errorf("%v is left", left)
			}
			var refused *lock.Error
			if _, _, err := other.Enqueue(t.Context(), keyed("a")); !errors.As(err, &refused) || refused.Reason != lock.Expired {
				t.Errorf("the used-up key: %v, want lock_lost and expired", err)
			}
		})
	}
}
