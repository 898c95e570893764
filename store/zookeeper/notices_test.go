package zookeeper_test

import (
	"strings"
	"testing"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store/zookeeper"
	"github.com/fencepost/fencepost/test/rig"
)

// TestNoticesAreForgotten: a notice that belongs to an entry goes when that went, and the
// mark of another one after as long as ends are remembered, whichever replica looks.
func TestNoticesAreForgotten(t *testing.T) {
	t.Parallel()
	z := startZooKeeper(t, rig.ZooKeeperConfig{})
	s := open(t, zookeeper.Config{Servers: z.Endpoints()})
	client := hand(t, z)
	count := func(path, of string) (n int) {
		walk(t, client, path, func(path string) {
			if strings.Contains(path, of) {
				n++
			}
		})
		return n
	}
	e := enqueue(t, s, draft("a"))
	owned := &lock.Notice{ID: "owned", Tenant: e.Tenant, Kind: "lock.something", Locks: []string{"a"}, Of: e.ID}
	free := &lock.Notice{ID: "free", Tenant: e.Tenant, Kind: "lock.something", Locks: []string{"a"}}
	if err := s.Notify(t.Context(), owned, e); err != nil {
		t.Fatal(err)
	}
	if err := s.Notify(t.Context(), free, nil); err != nil {
		t.Fatal(err)
	}
	if n, m := count("/fencepost/v1/notices", ",owned"), count("/fencepost/v1/keys", ",notice:free"); n != 1 || m != 1 {
		t.Fatalf("there are %d nodes and %d marks, want one of each", n, m)
	}
	if err := s.Remove(t.Context(), e, lock.Released); err != nil {
		t.Fatal(err)
	}
	soon(t, "the node is deleted", func() bool { return count("/fencepost/v1/notices", ",owned") == 0 })
	soon(t, "the record is folded", func() bool {
		return s.Fold(t.Context(), time.Hour) == nil && count("/fencepost/v1/ended", "-") > 0
	})
	if err := s.Forget(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if count("/fencepost/v1/keys", ",notice:free") != 1 {
		t.Error("the mark is forgotten too early")
	}
	soon(t, "the mark is forgotten", func() bool {
		return s.Forget(t.Context(), time.Hour) == nil && count("/fencepost/v1/keys", ",notice:free") == 0
	})
}

func soon(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !ok(); <-time.After(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not in time: %s", what)
		}
	}
}
