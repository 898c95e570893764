package zookeeper_test

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

	"github.com/go-zookeeper/zk"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/store/zookeeper"
	"github.com/fencepost/fencepost/test/rig"
)

// TestOpenRefuses checks that the error names each of the operator's mistakes.
func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	z := startZooKeeper(t, rig.ZooKeeperConfig{})
	closed := hand(t, z)
	if err := closed.AddAuth("digest", []byte("somebody:else")); err != nil {
		t.Fatal(err)
	}
	if _, err := closed.Create("/private", nil, 0, zk.AuthACL(zk.PermAll)); err != nil {
		t.Fatal(err)
	}
	open(t, zookeeper.Config{
		Servers: z.Endpoints(), Prefix: "/ours", Username: "fencepost", Password: "right",
	})
	plain := hand(t, z)
	if _, err := plain.Create("/broken", nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
		t.Fatal(err)
	}
	ours, err := zookeeper.Open(
		t.Context(), zookeeper.Config{Servers: z.Endpoints(), Chroot: "/broken"},
	)
	if err != nil {
		t.Fatal(err)
	}
	if err := ours.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := plain.Set("/broken/fencepost/v1/meta", []byte("not ours"), -1); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		config zookeeper.Config
		want   string
	}{
		{"wrong chroot", zookeeper.Config{Chroot: "/locsk"}, "no node /locsk"},
		{"no permission", zookeeper.Config{Chroot: "/private"}, "does not let this server in"},
		{
			"wrong password",
			zookeeper.Config{Prefix: "/ours", Username: "fencepost", Password: "wrong"},
			"does not let this server in",
		},
		{"no password", zookeeper.Config{Prefix: "/ours"}, "does not let this server in"},
		{"damaged records of its own", zookeeper.Config{Chroot: "/broken"}, "--fence-floor"},
		{"nobody there", zookeeper.Config{Servers: []string{"127.0.0.1:1"}}, "did not answer in time"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if c.config.Servers == nil {
				c.config.Servers = z.Endpoints()
			}
			start := time.Now()
			s, err := zookeeper.Open(t.Context(), c.config)
			if err == nil {
				t.Fatal(errors.Join(errors.New("it opens"), s.Close()))
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("Open: %v, want %q in it", err, c.want)
			}
			if took := time.Since(start); took > 30*time.Second {
				t.Errorf("it took %v", took)
			}
		})
	}
}

// TestCreatedForItsUser checks that no other user can read or write the store's nodes.
func TestCreatedForItsUser(t *testing.T) {
	t.Parallel()
	z := startZooKeeper(t, rig.ZooKeeperConfig{})
	s := open(t, zookeeper.Config{Servers: z.Endpoints(), Username: "fencepost", Password: "secret"})
	enqueue(t, s, draft("a"))
	foreign, ours := hand(t, z), hand(t, z)
	if err := ours.AddAuth("digest", []byte("fencepost:secret")); err != nil {
		t.Fatal(err)
	}
	nodes := 0
	walk(t, ours, "/fencepost", func(path string) {
		nodes++
		if _, _, err := foreign.Get(path); !errors.Is(err, zk.ErrNoAuth) {
			t.Errorf("%s is open to everybody: %v", path, err)
		}
	})
	if nodes < 10 {
		t.Errorf("only %d nodes were found", nodes)
	}
}

// TestExpiredSession ends the sessions of a store: it comes back by itself, and
// its entries were never bound to them.
func TestExpiredSession(t *testing.T) {
	t.Parallel()
	z := startZooKeeper(t, rig.ZooKeeperConfig{})
	proxy := startProxy(t, z.Server(0))
	s := open(t, zookeeper.Config{Servers: []string{proxy.Address()}})
	f := follow(t, s)
	e := enqueue(t, s, draft("a"))
	restore := cut(proxy, "silent")
	client := hand(t, z)
	within(t, 30*time.Second, "the sessions expire", func() bool {
		links, _, err := client.Children("/fencepost/v1/links")
		return err == nil && len(links) == 0
	})
	restore()
	within(
		t, 10*time.Second, "the feed is back", func() bool { return f.knows(e.ID) && f.isCurrent() },
	)
	if err := s.Renew(t.Context(), e); err != nil {
		t.Errorf("Renew after the session expired: %v", err)
	}
	behind := enqueue(t, s, draft("a"))
	if behind.Number <= e.Number {
		t.Errorf("fence %d after %d", behind.Number, e.Number)
	}
}

// hand is a client that does what no client should.
func hand(t *testing.T, z *rig.ZooKeeper) *zk.Conn {
	t.Helper()
	c, _, err := zk.Connect(z.Endpoints(), 10*time.Second, zk.WithLogInfo(false))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func walk(t *testing.T, c *zk.Conn, path string, visit func(string)) {
	t.Helper()
	names, _, err := c.Children(path)
	if errors.Is(err, zk.ErrNoNode) {
		return // gone meanwhile
	}
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	for _, name := range names {
		walk(t, c, path+"/"+name, visit)
	}
	visit(path)
}

func draft(name string) *lock.Entry {
	now := time.Now().UTC().Truncate(time.Millisecond)
	return &lock.Entry{
		ID: lock.ID(fmt.Sprintf("ID%d", now.UnixNano())), Tenant: "acme", Holder: "worker-1",
		TTL: 2 * time.Minute, Claims: []lock.Claim{{Name: name, Mode: lock.Exclusive}}, EnqueuedAt: now,
	}
}

func enqueue(t *testing.T, s *zookeeper.Store, e *lock.Entry) *lock.Entry {
	t.Helper()
	e.ID = lock.ID(
		strings.ReplaceAll(fmt.Sprintf("%s-%s", e.ID, t.Name()[len(t.Name())-3:]), "/", "_"),
	)
	var placed *lock.Entry
	within(t, 15*time.Second, "an entry is written", func() bool {
		var err error
		if placed, _, err = s.Enqueue(t.Context(), e); err != nil {
			t.Logf("Enqueue: %v", err)
		}
		return err == nil
	})
	return placed
}

// mirror is a follower that keeps the queues.
type mirror struct {
	mu      sync.Mutex
	table   *lock.Table
	current bool
	number  uint64
	began   store.Snapshot     // the first view
	left    map[lock.ID]uint64 // at which number, or before
	faults  []error
}

func follow(t *testing.T, s *zookeeper.Store) *mirror {
	t.Helper()
	return followFor(t, s, 15*time.Second)
}

// followFor is follow for a store that may take that long until it has a view.
func followFor(t *testing.T, s *zookeeper.Store, limit time.Duration) *mirror {
	t.Helper()
	m := &mirror{table: lock.NewTable(), left: map[lock.ID]uint64{}}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.Watch(ctx, m)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
		for _, err := range m.faults {
			t.Error(err)
		}
	})
	within(t, limit, "the feed begins", m.isCurrent)
	return m
}

func (m *mirror) Reset(s store.Snapshot) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s.Number < m.number {
		m.faults = append(m.faults, fmt.Errorf("the feed went back from %d to %d", m.number, s.Number))
	}
	if m.began.Number == 0 {
		m.began = s
	}
	m.table, m.current, m.number = lock.NewTable(), true, s.Number
	for _, e := range s.Entries {
		m.insert(e)
	}
}

func (m *mirror) Apply(upTo uint64, changes []store.Change) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.number = upTo
	for _, c := range changes {
		if c.Joined == nil {
			m.table.Remove(c.Left)
			m.left[c.Left] = upTo
		} else {
			m.insert(c.Joined)
		}
	}
}

// ghosts returns how many entries were in the first view of another mirror that had gone
// before.
func (m *mirror) ghosts(of *mirror) (n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, e := range of.began.Entries {
		if at, went := m.left[e.ID]; went && at <= of.began.Number {
			n++
		}
	}
	return n
}

func (m *mirror) insert(e *lock.Entry) {
	if _, err := m.table.Insert(e); err != nil {
		m.faults = append(m.faults, err)
	}
}

func (m *mirror) Recall([]store.Ended, bool) {}

func (m *mirror) Lost(error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.current = false
}

func (m *mirror) isCurrent() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.current
}

func (m *mirror) reached(number uint64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.number >= number
}

func (m *mirror) knows(id lock.ID) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	e, _ := m.table.Entry(id)
	return e != nil
}

// first returns the first entry in the lock's queue, or "".
func (m *mirror) first(name string) lock.ID {
	m.mu.Lock()
	defer m.mu.Unlock()
	if q := m.table.Queue(lock.Ref{Tenant: "acme", Name: name}); q != nil {
		for e := range q.Entries() {
			return e.ID
		}
	}
	return ""
}

// all returns the ids of all entries.
func (m *mirror) all() map[lock.ID]bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	ids := map[lock.ID]bool{}
	for e := range m.table.Entries() {
		ids[e.ID] = true
	}
	return ids
}

func within(t *testing.T, limit time.Duration, what string, done func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(limit); !done(); <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s", limit, what)
		}
	}
}

// journal returns a log and what is written to it, which is shown if the test fails.
func journal(t *testing.T) (*slog.Logger, *buffer) {
	t.Helper()
	var written buffer
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("logged:\n%s", written.String())
		}
	})
	return slog.New(slog.NewTextHandler(&written, nil)), &written
}

// buffer collects a log.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}
