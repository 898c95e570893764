package zookeeper_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/store/zookeeper"
	"github.com/fencepost/fencepost/test/rig"
)

// later is more than any record or reason is kept for.
const later = time.Hour

// TestFoldManyEnds folds records with as many ends as one can have. That is done in
// requests that the server takes, and no reason is lost.
func TestFoldManyEnds(t *testing.T) {
	t.Parallel()
	z := startZooKeeper(t, rig.ZooKeeperConfig{})
	log, logged := journal(t)
	s := open(t, zookeeper.Config{Servers: z.Endpoints(), Logger: log})
	follow(t, s)
	all := writeEnds(t, hand(t, z), 256, 64)
	folded(t, s, hand(t, z))
	knows(t, z, all)
	if hungUpOn(logged, "upkeep") || strings.Contains(logged.String(), "hangs up") {
		t.Error("the server hung up")
	}
}

// hungUpOn reports whether the server has ended a connection of that use.
func hungUpOn(logged *buffer, use string) bool {
	for line := range strings.Lines(logged.String()) {
		if strings.Contains(line, "use="+use) && strings.Contains(line, "has ended") {
			return true
		}
	}
	return false
}

func appendRecord(t *testing.T, client *zk.Conn, text string) {
	t.Helper()
	if _, err := client.Create(
		"/fencepost/v1/logs/0000000000/", []byte(text), zk.FlagSequence, zk.WorldACL(zk.PermAll),
	); err != nil {
		t.Error(err)
	}
}

// writeEnds appends records to the log, of ends of entries that are not there.
func writeEnds(t *testing.T, client *zk.Conn, records, each int) map[lock.ID]bool {
	t.Helper()
	all := map[lock.ID]bool{}
	texts := make([]string, records)
	for i := range texts {
		var ends []string
		for j := range each {
			id := fmt.Sprintf("01JABCDEFG%08dX%07d", i, j) // as long as the service's
			all[lock.ID(id)] = true
			ends = append(ends, fmt.Sprintf(
				`{"tenant":"acme","lock":"a","id":%q,"czxid":1,"reason":"released","at_ms":%d}`, id,
				time.Now().UnixMilli(),
			))
		}
		texts[i] = `{"changes":[` + strings.Join(ends, ",") + `]}`
	}
	parallel(16, records, func(i int) { appendRecord(t, client, texts[i]) })
	return all
}

// folded folds everything that there is.
func folded(t *testing.T, s *zookeeper.Store, client *zk.Conn) {
	t.Helper()
	within(t, 2*time.Minute, "all records are folded", func() bool {
		err := s.Fold(t.Context(), later)
		names, _, failed := client.Children("/fencepost/v1/logs/0000000000")
		return err == nil && failed == nil && len(names) == 0
	})
}

// TestForgetByTheServersClock has nodes of reasons whose names say that they are old, or
// of the future, as by a replica whose clock is wrong. Only the server's clock counts.
func TestForgetByTheServersClock(t *testing.T) {
	t.Parallel()
	z := startZooKeeper(t, rig.ZooKeeperConfig{})
	s := open(t, zookeeper.Config{Servers: z.Endpoints()})
	client := hand(t, z)
	for _, name := range []string{"0000000000000-past", "9999999999999-future"} {
		if _, err := client.Create(
			"/fencepost/v1/ended/"+name, []byte("[]"), 0, zk.WorldACL(zk.PermAll),
		); err != nil {
			t.Fatal(err)
		}
	}
	left := func(ahead time.Duration) int {
		if err := s.Forget(t.Context(), ahead); err != nil {
			t.Fatal(err)
		}
		names, _, err := client.Children("/fencepost/v1/ended")
		if err != nil {
			t.Fatal(err)
		}
		return len(names)
	}
	if n := left(10 * time.Minute); n != 2 {
		t.Errorf("%d nodes are left after 10 minutes, want both", n)
	}
	if n := left(12 * time.Minute); n != 0 {
		t.Errorf("%d nodes are left after 12 minutes, want none", n)
	}
}

// TestFoldCountsWhatEnded: ends that remember much of their entries make no request that
// the server would hang up on.
func TestFoldCountsWhatEnded(t *testing.T) {
	t.Parallel()
	e := &lock.Entry{
		ID: lock.ID(strings.Repeat("I", 26)), Tenant: strings.Repeat("t", 63),
		Holder: strings.Repeat("w", 200), TTL: time.Hour, EnqueuedAt: time.Now(),
		Claims: []lock.Claim{{
			Name: strings.Repeat("n", 200), Mode: lock.Semaphore, Limit: 7, Permits: 7,
		}},
	}
	one := store.End{
		ID: e.ID, Tenant: e.Tenant, Reason: lock.WaitTimeout, At: time.Now().UnixMilli(),
		Was: new(store.Pasts).Of(e, 1<<50),
	}
	if taken, has := zookeeper.FoldSize(slices.Repeat([]store.End{one}, 500)); taken < has ||
		taken > 2*has {
		t.Errorf("500 ends are taken for %d bytes, and have %d", taken, has)
	}
}
