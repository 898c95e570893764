package zookeeper_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/fencepost/fencepost/lock"
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
	if strings.Contains(logged.String(), "hangs up") {
		t.Error("the server hung up")
	}
}

// TestFoldIsSplit has a server take much less in one request than is usual. What it
// hangs up on is asked for in parts, and the feed does not notice.
func TestFoldIsSplit(t *testing.T) {
	t.Parallel()
	z := startZooKeeper(t, rig.ZooKeeperConfig{Properties: []string{"jute.maxbuffer=40000"}})
	log, logged := journal(t)
	s := open(t, zookeeper.Config{Servers: z.Endpoints(), Logger: log})
	follow(t, s)
	all := writeEnds(t, hand(t, z), 24, 64)
	folded(t, s, hand(t, z))
	knows(t, z, all)
	if !strings.Contains(logged.String(), "hangs up") {
		t.Error("the server did not hang up")
	}
	for line := range strings.Lines(logged.String()) {
		if strings.Contains(line, "use=feed") && strings.Contains(line, "has ended") {
			t.Errorf("the server hung up on the feed: %s", line)
		}
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
			ends = append(ends, fmt.Sprintf(`{"tenant":"acme","lock":"a","id":%q,"czxid":1,"reason":"released","at_ms":%d}`, id, time.Now().UnixMilli()))
		}
		texts[i] = `{"changes":[` + strings.Join(ends, ",") + `]}`
	}
	parallel(16, records, func(i int) {
		if _, err := client.Create("/fencepost/v1/logs/0000000000/", []byte(texts[i]), zk.FlagSequence, zk.WorldACL(zk.PermAll)); err != nil {
			t.Error(err)
		}
	})
	return all
}

// folded folds everything that there is.
func folded(t *testing.T, s *zookeeper.Store, client *zk.Conn) {
	t.Helper()
	within(t, 4*time.Minute, "all records are folded", func() bool {
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
		if _, err := client.Create("/fencepost/v1/ended/"+name, []byte("[]"), 0, zk.WorldACL(zk.PermAll)); err != nil {
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
