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
	"github.com/fencepost/fencepost/store/zookeeper"
	"github.com/fencepost/fencepost/test/rig"
)

// TestOpenRefuses checks that each mistake of an operator's is told as what it is.
func TestOpenRefuses(t *testing.T) {
	z := startZooKeeper(t, rig.ZooKeeperConfig{})
	closed := hand(t, z)
	if err := closed.AddAuth("digest", []byte("somebody:else")); err != nil {
		t.Fatal(err)
	}
	if _, err := closed.Create("/private", nil, 0, zk.AuthACL(zk.PermAll)); err != nil {
		t.Fatal(err)
	}
	open(t, zookeeper.Config{Servers: z.Endpoints(), Prefix: "/ours", Username: "fencepost", Password: "right"})
	plain := hand(t, z)
	if _, err := plain.Create("/broken", nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
		t.Fatal(err)
	}
	open(t, zookeeper.Config{Servers: z.Endpoints(), Chroot: "/broken"})
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
		{"wrong password", zookeeper.Config{Prefix: "/ours", Username: "fencepost", Password: "wrong"}, "does not let this server in"},
		{"no password", zookeeper.Config{Prefix: "/ours"}, "does not let this server in"},
		{"damaged records of its own", zookeeper.Config{Chroot: "/broken"}, "cannot be read"},
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
			if took := time.Since(start); took > 10*time.Second {
				t.Errorf("it took %v", took)
			}
		})
	}
}

// TestCreatedForItsUser checks that nobody else can read or write what is ours.
func TestCreatedForItsUser(t *testing.T) {
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
	within(t, 10*time.Second, "the feed is back", func() bool { return f.knows(e.ID) && f.isCurrent() })
	if err := s.Refresh(t.Context(), e); err != nil {
		t.Errorf("Refresh after the session expired: %v", err)
	}
	behind := enqueue(t, s, draft("a"))
	if behind.Number <= e.Number {
		t.Errorf("fence %d after %d", behind.Number, e.Number)
	}
}

// TestByHand deletes and damages what is ours with a client of its own. What
// hits one entry is reported and frees its lock in time; what hits the store is
// made again.
func TestByHand(t *testing.T) {
	t.Parallel()
	z := startZooKeeper(t, rig.ZooKeeperConfig{})
	client := hand(t, z)
	entries := func(t *testing.T, root string) []string {
		var found []string
		walk(t, client, root+"/entries", func(path string) {
			if strings.Count(path, ",") >= 2 && !strings.Contains(path[strings.LastIndex(path, ","):], "/") {
				found = append(found, path)
			}
		})
		return found
	}
	leaseOf := func(t *testing.T, path string) string {
		names, _, err := client.Children(path)
		if err != nil || len(names) != 1 {
			t.Fatalf("%s has %v below it: %v", path, names, err)
		}
		return path + "/" + names[0]
	}
	check := func(t *testing.T, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	// Each entry is held with a TTL of 3 s and nobody renews it. It has a lease of its
	// own from the beginning, except in the last four cases.
	for name, damage := range map[string]func(t *testing.T, root string){
		"nothing": func(*testing.T, string) {},
		"the lease is deleted": func(t *testing.T, root string) {
			check(t, client.Delete(leaseOf(t, entries(t, root)[0]), -1))
		},
		"the entry is deleted": func(t *testing.T, root string) {
			path := entries(t, root)[0]
			check(t, client.Delete(leaseOf(t, path), -1))
			check(t, client.Delete(path, -1))
		},
		"the entry is damaged": func(t *testing.T, root string) {
			_, err := client.Set(entries(t, root)[0], []byte("{"), -1)
			check(t, err)
		},
		"the entry has a strange node below it": func(t *testing.T, root string) {
			_, err := client.Create(entries(t, root)[0]+"/strange", nil, 0, zk.WorldACL(zk.PermAll))
			check(t, err)
		},
		"a strange node is beside it": func(t *testing.T, root string) {
			path := entries(t, root)[0]
			_, err := client.Create(path[:strings.LastIndex(path, "/")]+"/strange", nil, 0, zk.WorldACL(zk.PermAll))
			check(t, err)
		},
		"the newest record is deleted": func(t *testing.T, root string) {
			names, _, err := client.Children(root + "/logs/0000000000")
			check(t, err)
			check(t, client.Delete(root+"/logs/0000000000/"+names[len(names)-1], -1))
		},
		"the newest record is damaged": func(t *testing.T, root string) {
			names, _, err := client.Children(root + "/logs/0000000000")
			check(t, err)
			_, err = client.Set(root+"/logs/0000000000/"+names[len(names)-1], []byte(`{"changes":1}`), -1)
			check(t, err)
		},
		"the log says what nobody wrote": func(t *testing.T, root string) {
			for _, said := range []string{
				`{"changes":[{"tenant":"acme","lock":"a","id":"x","joined":{"mode":"greedy","ttl_ms":1000}}]}`, `[]`,
			} {
				_, err := client.Create(root+"/logs/0000000000/", []byte(said), zk.FlagSequence, zk.WorldACL(zk.PermAll))
				check(t, err)
				_, err = client.Set(root+"/logs/0000000000", []byte(said), -1)
				check(t, err)
			}
		},
		"the log is damaged": func(t *testing.T, root string) {
			_, err := client.Set(root+"/logs/0000000000", []byte("{"), -1)
			check(t, err)
		},
		"the log is deleted": func(t *testing.T, root string) {
			names, _, err := client.Children(root + "/logs/0000000000")
			check(t, err)
			for _, name := range names {
				check(t, client.Delete(root+"/logs/0000000000/"+name, -1))
			}
			check(t, client.Delete(root+"/logs/0000000000", -1))
		},
		"the connections' nodes are deleted": func(t *testing.T, root string) {
			names, _, err := client.Children(root + "/links")
			check(t, err)
			for _, name := range names {
				check(t, client.Delete(root+"/links/"+name, -1))
			}
		},
		"the epoch is raised": func(t *testing.T, root string) {
			_, err := client.Set(root+"/epoch", nil, -1)
			check(t, err)
		},
		"the node above all entries is deleted": func(t *testing.T, root string) {
			walk(t, client, root+"/entries", func(path string) { check(t, client.Delete(path, -1)) })
		},
		"everything is deleted": func(t *testing.T, root string) {
			walk(t, client, root, func(path string) {
				if err := client.Delete(path, -1); err != nil && !errors.Is(err, zk.ErrNoNode) && !errors.Is(err, zk.ErrNotEmpty) {
					t.Fatal(err)
				}
			})
		},
		"the node above all folded ends is deleted": func(t *testing.T, root string) {
			check(t, client.Delete(root+"/ended", -1))
		},
		"a fresh entry is closed": func(t *testing.T, root string) {
			_, err := client.SetACL(entries(t, root)[0], zk.DigestACL(zk.PermAll, "somebody", "else"), -1)
			check(t, err)
		},
		"a fresh entry is deleted": func(t *testing.T, root string) {
			check(t, client.Delete(entries(t, root)[0], -1))
		},
		"a fresh entry is damaged": func(t *testing.T, root string) {
			_, err := client.Set(entries(t, root)[0], []byte("{"), -1)
			check(t, err)
		},
		"a fresh entry has a strange node below it": func(t *testing.T, root string) {
			_, err := client.Create(entries(t, root)[0]+"/strange", nil, 0, zk.WorldACL(zk.PermAll))
			check(t, err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			prefix := "/" + strings.ReplaceAll(name, " ", "-")
			var logged buffer
			t.Cleanup(func() {
				if t.Failed() {
					t.Logf("logged:\n%s", logged.String())
				}
			})
			cfg := zookeeper.Config{Servers: z.Endpoints(), Prefix: prefix, Logger: slog.New(slog.NewTextHandler(&logged, nil))}
			s := open(t, cfg)
			f := follow(t, s)
			e := draft("a")
			e.TTL = 3 * time.Second
			if !strings.HasPrefix(name, "a fresh entry") {
				e.Request = "may be repeated"
			}
			first := enqueue(t, s, e)
			damage(t, prefix)
			late := follow(t, open(t, cfg)) // it has to list what is damaged
			heir := enqueue(t, s, draft("a"))
			if heir.Number <= first.Number {
				t.Errorf("fence %d after %d", heir.Number, first.Number)
			}
			limit := 25 * time.Second
			if strings.HasSuffix(name, "entry is damaged") || strings.HasSuffix(name, "entry is closed") {
				limit = 80 * time.Second
			}
			within(t, limit, "the lock is free for the next", func() bool {
				return f.first("a") == heir.ID && late.first("a") == heir.ID
			})
			queue, _, err := s.Queue(t.Context(), lock.Ref{Tenant: "acme", Name: "a"})
			if err != nil || len(queue) != 1 || queue[0].ID != heir.ID {
				t.Errorf("Queue: %d entries, %v", len(queue), err)
			}
			if err := s.Remove(t.Context(), heir, lock.Released); err != nil {
				t.Errorf("Remove: %v", err)
			}
			within(t, 10*time.Second, "the lock is free", func() bool { return f.first("a") == "" && late.first("a") == "" })
			if reports := strings.Count(logged.String(), "level=ERROR"); name == "nothing" && reports > 0 {
				t.Errorf("reported although nothing is wrong:\n%s", logged.String())
			}
		})
	}
}

// TestClosedEntry has somebody close an entry that has a lease, so that it can neither
// be read nor deleted. It blocks its own lock, and that is reported; a replica that
// starts then serves all others. When it is opened again its lock is free in time.
func TestClosedEntry(t *testing.T) {
	t.Parallel()
	z := startZooKeeper(t, rig.ZooKeeperConfig{})
	client := hand(t, z)
	e := draft("a")
	e.TTL, e.Request = 3*time.Second, "may be repeated"
	first := enqueue(t, open(t, zookeeper.Config{Servers: z.Endpoints()}), e)
	var node string
	walk(t, client, "/fencepost/v1/entries", func(path string) {
		if strings.HasSuffix(path, string(first.ID)) {
			node = path
		}
	})
	if _, err := client.SetACL(node, zk.DigestACL(zk.PermAll, "somebody", "else"), -1); err != nil {
		t.Fatal(err)
	}
	var logged buffer
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("logged:\n%s", logged.String())
		}
	})
	late := open(t, zookeeper.Config{Servers: z.Endpoints(), Logger: slog.New(slog.NewTextHandler(&logged, nil))})
	f := follow(t, late)
	other := enqueue(t, late, draft("b"))
	within(t, 10*time.Second, "another lock is held", func() bool { return f.first("b") == other.ID })
	if first := f.first("a"); first != e.ID {
		t.Errorf("first in the lock of the closed entry is %q", first)
	}
	within(t, 80*time.Second, "that it cannot be deleted is reported", func() bool { return strings.Contains(logged.String(), "cannot be deleted") })
	if err := client.AddAuth("digest", []byte("somebody:else")); err != nil {
		t.Fatal(err)
	}
	if _, err := client.SetACL(node, zk.WorldACL(zk.PermAll), -1); err != nil {
		t.Fatal(err)
	}
	within(t, 20*time.Second, "the lock is free", func() bool { return f.first("a") == "" })
	if n := strings.Count(logged.String(), "the ACL of an entry"); n != 1 {
		t.Errorf("the closed entry was reported %d times", n)
	}
}

// TestMetaByHand deletes and damages what the store knows of itself: a replica that
// runs puts it back, so that one that starts then has the same token key and floor.
func TestMetaByHand(t *testing.T) {
	z := startZooKeeper(t, rig.ZooKeeperConfig{})
	client := hand(t, z)
	const path = "/fencepost/v1/meta"
	s := open(t, zookeeper.Config{Servers: z.Endpoints(), FenceFloor: 1_000_000})
	enqueue(t, s, draft("a"))
	before, _, err := client.Get(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, damage := range map[string]func() error{
		"deleted": func() error { return client.Delete(path, -1) },
		"damaged": func() error { _, err := client.Set(path, []byte("{"), -1); return err },
		"emptied": func() error { _, err := client.Set(path, nil, -1); return err },
	} {
		if err := damage(); err != nil {
			t.Fatal(err)
		}
		within(t, 10*time.Second, "what was "+name+" is back", func() bool {
			after, _, err := client.Get(path)
			return err == nil && bytes.Equal(before, after)
		})
	}
	if late := open(t, zookeeper.Config{Servers: z.Endpoints()}); !bytes.Equal(late.TokenKey(), s.TokenKey()) {
		t.Error("two replicas have different token keys")
	}
}

// TestMetaGone deletes it while no replica runs: nobody knows which floor it had, and
// so whether fences would be handed out a second time.
func TestMetaGone(t *testing.T) {
	z := startZooKeeper(t, rig.ZooKeeperConfig{})
	first, err := zookeeper.Open(t.Context(), zookeeper.Config{Servers: z.Endpoints(), FenceFloor: 1_000_000_000})
	if err != nil {
		t.Fatal(err)
	}
	before := enqueue(t, first, draft("a"))
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if err := hand(t, z).Delete("/fencepost/v1/meta", -1); err != nil {
		t.Fatal(err)
	}
	s, err := zookeeper.Open(t.Context(), zookeeper.Config{Servers: z.Endpoints()})
	if err == nil {
		_ = s.Close()
	}
	if err == nil || !strings.Contains(err.Error(), "--fence-floor") {
		t.Errorf("Open = %v, want an error that asks for a floor", err)
	}
	s = open(t, zookeeper.Config{Servers: z.Endpoints(), FenceFloor: before.Number})
	if after := enqueue(t, s, draft("a")); after.Number <= before.Number {
		t.Errorf("fence %d after %d", after.Number, before.Number)
	}
}

// TestSetMissingANode releases a set whose node in another lock was deleted.
func TestSetMissingANode(t *testing.T) {
	z := startZooKeeper(t, rig.ZooKeeperConfig{})
	s := open(t, zookeeper.Config{Servers: z.Endpoints()})
	e := draft("a")
	e.Set, e.Claims = true, append(e.Claims, lock.Claim{Name: "b", Mode: lock.Exclusive})
	placed := enqueue(t, s, e)
	client := hand(t, z)
	walk(t, client, "/fencepost/v1/entries", func(path string) {
		if strings.Count(path, ",") == 3 {
			if err := client.Delete(path, -1); err != nil {
				t.Fatal(err)
			}
		}
	})
	if err := s.Remove(t.Context(), placed, lock.Released); err != nil {
		t.Errorf("Remove: %v", err)
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
		ID: lock.ID(fmt.Sprintf("ID%d", now.UnixNano())), Tenant: "acme", Holder: "worker-1", TTL: 2 * time.Minute,
		Claims: []lock.Claim{{Name: name, Mode: lock.Exclusive}}, EnqueuedAt: now,
	}
}

func enqueue(t *testing.T, s *zookeeper.Store, e *lock.Entry) *lock.Entry {
	t.Helper()
	e.ID = lock.ID(strings.ReplaceAll(fmt.Sprintf("%s-%s", e.ID, t.Name()[len(t.Name())-3:]), "/", "_"))
	var placed *lock.Entry
	within(t, 15*time.Second, "an entry is written", func() bool {
		var err error
		if placed, err = s.Enqueue(t.Context(), e); err != nil {
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
	faults  []error
}

func follow(t *testing.T, s *zookeeper.Store) *mirror {
	t.Helper()
	m := &mirror{table: lock.NewTable()}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.Follow(ctx, m)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
		for _, err := range m.faults {
			t.Error(err)
		}
	})
	within(t, 15*time.Second, "the feed begins", m.isCurrent)
	return m
}

func (m *mirror) Reset(s lock.Snapshot) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s.Number < m.number {
		m.faults = append(m.faults, fmt.Errorf("the feed went back from %d to %d", m.number, s.Number))
	}
	m.table, m.current, m.number = lock.NewTable(), true, s.Number
	for _, e := range s.Entries {
		m.insert(e)
	}
}

func (m *mirror) Apply(upTo uint64, changes []lock.Change) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.number = upTo
	for _, c := range changes {
		if c.Joined == nil {
			m.table.Remove(c.Left)
		} else {
			m.insert(c.Joined)
		}
	}
}

func (m *mirror) insert(e *lock.Entry) {
	if _, err := m.table.Insert(e); err != nil {
		m.faults = append(m.faults, err)
	}
}

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

func (m *mirror) knows(id lock.ID) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	e, _ := m.table.Entry(id)
	return e != nil
}

// first returns who is first in the lock's queue, or "".
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
