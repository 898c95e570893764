package zookeeper_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fencepost/fencepost/lock"
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
