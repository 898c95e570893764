package zookeeper_test

import (
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store/zookeeper"
	"github.com/fencepost/fencepost/test/rig"
)

// beginsAt returns where a feed begins that should begin at a number.
func beginsAt(t *testing.T, z *rig.ZooKeeper, number uint64) uint64 {
	t.Helper()
	s := open(t, zookeeper.Config{Servers: z.Endpoints()})
	s.Resume(number)
	m := follow(t, s)
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.began.Number
}

// cycle has an entry come and go, which is more than a reason remembers, and returns the number
// of each.
func cycle(t *testing.T, s *zookeeper.Store) (joined, left uint64) {
	t.Helper()
	e := draft("a")
	e.Metadata = map[string]string{"job": "7"}
	placed := enqueue(t, s, e)
	if err := s.Remove(t.Context(), placed, lock.Released); err != nil {
		t.Fatal(err)
	}
	newest, err := s.Newest(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return placed.Number, newest
}

// TestResumeBehindWhatWasFolded: a feed begins earlier as long as the log has all that happened
// since, also if it has no record at all because nothing happened.
func TestResumeBehindWhatWasFolded(t *testing.T) {
	t.Parallel()
	z := startZooKeeper(t, rig.ZooKeeperConfig{})
	s := open(t, zookeeper.Config{Servers: z.Endpoints()})
	follow(t, s)
	client := hand(t, z)
	joined, left := cycle(t, s)
	for _, from := range []uint64{joined, left} {
		if at := beginsAt(t, z, from); at != from {
			t.Errorf("with all records it begins at %d, want %d", at, from)
		}
	}
	folded(t, s, client)
	if at := beginsAt(t, z, left); at != left {
		t.Errorf("after a quiet time it begins at %d, want %d", at, left)
	}
	if at := beginsAt(t, z, joined); at <= left {
		t.Errorf("of what was folded it begins at %d, want now", at)
	}
	later, last := cycle(t, s)
	for _, from := range []uint64{left, later, last} {
		if at := beginsAt(t, z, from); at != from {
			t.Errorf("behind what was folded it begins at %d, want %d", at, from)
		}
	}
	if at := beginsAt(t, z, joined); at <= last {
		t.Errorf("of what was folded before it begins at %d, want now", at)
	}
	for n := 2; n < 4; n++ {
		if err := client.Delete(fmt.Sprintf("/fencepost/v1/logs/0000000000/%010d", n), -1); err != nil {
			t.Fatal(err)
		}
	}
	if at := beginsAt(t, z, left); at <= last {
		t.Errorf("with records gone behind what was folded it begins at %d, want now", at)
	}
}

// TestResumeByHand: a feed does not report a log with a missing or incomplete record as complete.
func TestResumeByHand(t *testing.T) {
	t.Parallel()
	z := startZooKeeper(t, rig.ZooKeeperConfig{})
	s := open(t, zookeeper.Config{Servers: z.Endpoints()})
	follow(t, s)
	client := hand(t, z)
	const log = "/fencepost/v1/logs/0000000000/"
	record := func(n int) string { return fmt.Sprintf("%s%010d", log, n) }
	joined, _ := cycle(t, s)
	strip(t, client, record(1)) // of the first end
	if at := beginsAt(t, z, joined); at == joined {
		t.Error("an end that does not say what the entry was is told")
	}
	from, _ := cycle(t, s)
	_, last := cycle(t, s)
	if at := beginsAt(t, z, from); at != from {
		t.Errorf("behind it a feed begins at %d, want %d", at, from)
	}
	if err := client.Delete(record(4), -1); err != nil {
		t.Fatal(err)
	}
	if at := beginsAt(t, z, from); at <= last {
		t.Errorf("with a record gone it begins at %d, want now", at)
	}
}

// TestResumeWhileTheLogIsFolded: what happened after a number is found while the records from
// before that are folded, one after the other, also the last of them.
func TestResumeWhileTheLogIsFolded(t *testing.T) {
	t.Parallel()
	z := startZooKeeper(t, rig.ZooKeeperConfig{})
	s := open(t, zookeeper.Config{Servers: z.Endpoints()})
	follow(t, s)
	client := hand(t, z)
	for round := range 20 {
		cycle(t, s)
		_, since := cycle(t, s)
		cycle(t, s)
		var folding sync.WaitGroup
		var over atomic.Bool
		folding.Go(func() {
			defer over.Store(true)
			for n := max(0, 6*round-2); n < 6*round+4; n++ { // the last two are there still
				foldByHand(t, client, n)
			}
		})
		for last := false; !last; {
			last = over.Load()
			if n, err := s.PlaceAfter(t.Context(), since); n != 2 || err != nil {
				t.Errorf("in round %d there are %d records, want 2: %v", round, n, err)
				last = true
			}
		}
		folding.Wait()
	}
}

// foldByHand folds one record of a log.
func foldByHand(t *testing.T, client *zk.Conn, n int) {
	t.Helper()
	path := fmt.Sprintf("/fencepost/v1/logs/0000000000/%010d", n)
	_, stat, err := client.Exists(path)
	if err == nil {
		mark := fmt.Appendf(nil, `{"epoch":0,"record":%d,"zxid":%d}`, n, stat.Czxid)
		_, err = client.Multi(
			&zk.DeleteRequest{Path: path, Version: -1},
			&zk.SetDataRequest{Path: "/fencepost/v1/logs", Data: mark, Version: -1},
		)
	}
	if err != nil {
		t.Error(err)
	}
}

// strip makes a record what an older version writes.
func strip(t *testing.T, client *zk.Conn, path string) {
	t.Helper()
	data, _, err := client.Get(path)
	var r struct {
		Changes []map[string]any `json:"changes"`
	}
	if err == nil {
		err = json.Unmarshal(data, &r)
	}
	if err != nil || len(r.Changes) != 1 || r.Changes[0]["gone"] == nil {
		t.Fatalf("%s: %s, %v", path, data, err)
	}
	delete(r.Changes[0], "gone")
	if data, err = json.Marshal(r); err == nil {
		_, err = client.Set(path, data, -1)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestFoldLeavesOthersTime: what happened before a replica was started is not folded by it at
// once, so that others that are started with it can begin there too.
func TestFoldLeavesOthersTime(t *testing.T) {
	t.Parallel()
	z := startZooKeeper(t, rig.ZooKeeperConfig{})
	first := open(t, zookeeper.Config{Servers: z.Endpoints()})
	cycle(t, first)
	client := hand(t, z)
	was := serverTime(t, client)
	within(
		t,
		time.Minute,
		"some time has passed",
		func() bool { return serverTime(t, client) >= was+100 },
	)
	second := open(t, zookeeper.Config{Servers: z.Endpoints()})
	follow(t, second)
	if err := second.Fold(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if kept := second.KeptFrom(); len(kept) != 2 || kept[0] < was+100 {
		t.Errorf("records are kept from %v on, the replica was started after %d", kept, was)
	}
}

// serverTime is the time of the server, in ms.
func serverTime(t *testing.T, client *zk.Conn) int64 {
	t.Helper()
	stat, err := client.Set("/fencepost/v1/ended", nil, -1)
	if err != nil {
		t.Fatal(err)
	}
	return stat.Mtime
}
