package etcd_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/store/etcd"
)

// calls counts what a store does to etcd.
type calls struct {
	mu    sync.Mutex
	named map[string]int
	batch []int
}

func (c *calls) observer() store.Observer {
	c.named = map[string]int{}
	return store.Observer{
		Operation: func(name string, _ time.Duration, _ error) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.named[name]++
		},
		Batch: func(writes int) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.batch = append(c.batch, writes)
		},
	}
}

// take returns what was done since the last call, without what the feed and the
// upkeep do in the background.
func (c *calls) take() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := c.named
	c.named = map[string]int{}
	delete(out, "list")
	return out
}

func startEmbedded(t *testing.T, cfg etcd.EmbeddedConfig) *etcd.Conn {
	t.Helper()
	if cfg.Dir == "" {
		cfg.Dir = t.TempDir()
	}
	conn, err := etcd.StartEmbedded(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closing(t, "the embedded member", conn.Close) })
	return conn
}

// openStore opens again what did not answer in time: that the machine is busy is not
// what tests are about.
func openStore(t *testing.T, conn *etcd.Conn, cfg etcd.Config) *etcd.Store {
	t.Helper()
	s, err := etcd.Open(t.Context(), conn, cfg)
	for end := time.Now().Add(time.Minute); errors.Is(err, lock.StoreUnavailable) &&
		time.Now().Before(end); {
		s, err = etcd.Open(t.Context(), conn, cfg)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closing(t, "the store", s.Close) })
	return s
}

func newEntry(name, id string) *lock.Entry {
	return &lock.Entry{
		ID: lock.ID(id), Tenant: "acme", Holder: "worker", TTL: 30 * time.Second,
		Claims:     []lock.Claim{{Name: name, Mode: lock.Exclusive}},
		EnqueuedAt: time.Now().UTC().Truncate(time.Millisecond),
	}
}

func mustEnqueue(t *testing.T, s *etcd.Store, e *lock.Entry) *lock.Entry {
	t.Helper()
	placed, _, err := s.Enqueue(t.Context(), e)
	if err != nil {
		t.Fatalf("Enqueue(%s) = %v", e.ID, err)
	}
	return placed
}

// An acquire is one write and a release another, and neither reads. The first
// acquire of a TTL also grants a lease; the next ones take it from the pool.
func TestOneWriteEach(t *testing.T) {
	var seen calls
	s := openStore(t, startEmbedded(t, etcd.EmbeddedConfig{}), etcd.Config{Observer: seen.observer()})
	first := mustEnqueue(t, s, newEntry("a", "first"))
	if err := s.Remove(t.Context(), first, lock.Released); err != nil {
		t.Fatal(err)
	}
	seen.take()
	for i := range 20 {
		e := mustEnqueue(t, s, newEntry("a", fmt.Sprint("next-", i)))
		if got := seen.take(); len(got) != 1 || got["commit"] != 1 {
			t.Fatalf("an acquire did %v, want one commit", got)
		}
		if e.Handle != first.Handle {
			t.Fatalf("acquire %d was given lease %x, want %x from the pool", i, e.Handle, first.Handle)
		}
		if err := s.Remove(t.Context(), e, lock.Released); err != nil {
			t.Fatal(err)
		}
		if got := seen.take(); len(got) != 1 || got["commit"] != 1 {
			t.Fatalf("a release did %v, want one commit", got)
		}
	}
}

// A lease comes back from the pool for the same tenant and TTL only.
func TestLeasesAreNotSharedByTenants(t *testing.T) {
	s := openStore(t, startEmbedded(t, etcd.EmbeddedConfig{}), etcd.Config{})
	mine := mustEnqueue(t, s, newEntry("a", "mine"))
	if err := s.Remove(t.Context(), mine, lock.Released); err != nil {
		t.Fatal(err)
	}
	other := newEntry("a", "other")
	other.Tenant = "rival"
	if got := mustEnqueue(t, s, other); got.Handle == mine.Handle {
		t.Error("a tenant was given a lease that was another's")
	}
	longer := newEntry("a", "longer")
	longer.TTL = time.Minute
	if got := mustEnqueue(t, s, longer); got.Handle == mine.Handle {
		t.Error("an entry was given a lease with another TTL")
	}
}

// Writes of independent requests share transactions; entries of one lock do not.
func TestGroupCommit(t *testing.T) {
	for _, c := range []struct {
		name   string
		lockOf func(i int) string
		shares bool
	}{
		{"ManyLocks", func(i int) string { return fmt.Sprint("lock-", i) }, true},
		{"OneLock", func(int) string { return "hot" }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			var seen calls
			s := openStore(
				t, startEmbedded(t, etcd.EmbeddedConfig{}), etcd.Config{Observer: seen.observer()},
			)
			var all sync.WaitGroup
			var mu sync.Mutex
			numbers := map[uint64]bool{}
			for i := range 200 {
				all.Go(func() {
					e, _, err := s.Enqueue(
						context.WithoutCancel(t.Context()), newEntry(c.lockOf(i), fmt.Sprint("e", i)),
					)
					if err != nil {
						t.Error(err)
						return
					}
					mu.Lock()
					defer mu.Unlock()
					numbers[e.Number] = true
				})
			}
			all.Wait()
			largest := 0
			for _, n := range seen.batch {
				largest = max(largest, n)
			}
			if c.shares && largest < 2 {
				t.Error("200 writes at once shared no transaction")
			}
			if !c.shares && (largest > 1 || len(numbers) != 200) {
				t.Errorf(
					"entries of one lock: %d in one transaction, %d numbers for 200 entries", largest,
					len(numbers),
				)
			}
		})
	}
}

// One write that cannot be done fails alone, not its whole transaction.
func TestAFailedWriteFailsAlone(t *testing.T) {
	s := openStore(t, startEmbedded(t, etcd.EmbeddedConfig{}), etcd.Config{})
	gone := mustEnqueue(t, s, newEntry("gone", "gone"))
	if err := s.Remove(t.Context(), gone, lock.Released); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for i := range 100 {
		all.Go(func() {
			if _, _, err := s.Enqueue(
				context.WithoutCancel(t.Context()), newEntry(fmt.Sprint("l", i), fmt.Sprint("e", i)),
			); err != nil {
				t.Errorf("Enqueue beside a failing release = %v", err)
			}
		})
		all.Go(func() {
			if err := s.Remove(context.WithoutCancel(t.Context()), gone, lock.Released); err == nil {
				t.Error("Remove of an entry that is gone = nil")
			}
		})
	}
	all.Wait()
}

// A floor is added to every fence, remembered, and cannot go down.
func TestFenceFloor(t *testing.T) {
	conn := startEmbedded(t, etcd.EmbeddedConfig{})
	before := mustEnqueue(t, openStore(t, conn, etcd.Config{}), newEntry("a", "before"))
	const floor = 1_000_000
	raised := mustEnqueue(
		t, openStore(t, conn, etcd.Config{FenceFloor: floor}), newEntry("b", "raised"),
	)
	if raised.Number <= floor || raised.Number > floor+100 {
		t.Errorf("fence with a floor of %d = %d (it was %d without)", floor, raised.Number, before.Number)
	}
	kept := mustEnqueue(t, openStore(t, conn, etcd.Config{}), newEntry("c", "kept"))
	if kept.Number <= raised.Number {
		t.Errorf("fence without the flag = %d, want above %d", kept.Number, raised.Number)
	}
	if _, err := etcd.Open(
		t.Context(), conn, etcd.Config{FenceFloor: floor - 1},
	); err == nil || !strings.Contains(err.Error(), "below") {
		t.Errorf("Open with a lower floor = %v, want a refusal", err)
	}
}

// A floor that was mistyped, below what the store has handed out, is taken and told of. One that is
// above that, or is there already, is not told of, nor one for a store that is new.
func TestLowFloorIsTold(t *testing.T) {
	conn := startEmbedded(t, etcd.EmbeddedConfig{})
	var before *lock.Entry
	for i := range 20 { // which are as many revisions
		before = mustEnqueue(
			t, openStore(t, conn, etcd.Config{}), newEntry("a", fmt.Sprint("before-", i)),
		)
	}
	given := func(cfg etcd.Config) (said string, fence uint64) {
		var log bytes.Buffer
		cfg.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))
		s, err := etcd.Open(t.Context(), conn, cfg)
		if err != nil {
			t.Fatal(err)
		}
		fence = mustEnqueue(t, s, newEntry("b", fmt.Sprint(cfg.Prefix, cfg.FenceFloor))).Number
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		return log.String(), fence
	}
	const low = 5
	said, fence := given(etcd.Config{FenceFloor: low})
	if fence <= before.Number+low || !strings.Contains(said, "fence floor is below") ||
		!strings.Contains(said, "floor=5 newest=") {
		t.Errorf(
			"with a floor of %d the fence after %d is %d, and it is said %q", low, before.Number, fence,
			said,
		)
	}
	for name, cfg := range map[string]etcd.Config{
		"the same again": {FenceFloor: low}, "none": {},
		"a new store": {FenceFloor: low, Prefix: "/new/"},
	} {
		if said, _ := given(cfg); said != "" {
			t.Errorf("%s: it is said %q", name, said)
		}
	}
	if said, _ := given(etcd.Config{FenceFloor: 1_000_000}); said != "" {
		t.Errorf("of a floor above all it is said %q", said)
	}
}

// A store that was distrusted grants again only with a floor above the fence that
// gave it away, on the replicas that run as well as on the one that is given it.
func TestFloorEndsDistrust(t *testing.T) {
	conn := startEmbedded(t, etcd.EmbeddedConfig{})
	running := openStore(t, conn, etcd.Config{})
	go running.Watch(t.Context(), silent{})
	const lost = 5000
	if err := running.Distrust(t.Context(), lost); err != nil {
		t.Fatal(err)
	}
	if _, _, err := openStore(t, conn, etcd.Config{}).Enqueue(
		t.Context(), newEntry("a", "refused"),
	); err == nil {
		t.Fatal("a new replica grants from a store that lost its past")
	}
	if _, err := etcd.Open(
		t.Context(), conn, etcd.Config{FenceFloor: 1000},
	); err == nil || !strings.Contains(err.Error(), "too low") {
		t.Fatalf("Open with a floor below the lost fence = %v, want a refusal", err)
	}
	cured := openStore(t, conn, etcd.Config{FenceFloor: lost})
	if e := mustEnqueue(t, cured, newEntry("a", "cured")); e.Number <= lost {
		t.Errorf("fence after the floor = %d, want above %d", e.Number, lost)
	}
	eventually(t, "the running replica grants again", func() bool {
		e, _, err := running.Enqueue(t.Context(), newEntry("b", "again"))
		return err == nil && e.Number > lost
	})
}

type silent struct{}

func (silent) Reset(store.Snapshot)         {}
func (silent) Apply(uint64, []store.Change) {}
func (silent) Recall([]store.Ended, bool)   {}
func (silent) Lost(error)                   {}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("not in time: %s", what)
		}
		<-time.After(20 * time.Millisecond)
	}
}
