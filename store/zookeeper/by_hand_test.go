package zookeeper_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store/zookeeper"
	"github.com/fencepost/fencepost/test/rig"
)

const (
	ours     = "/fencepost/v1"
	firstLog = ours + "/logs/0000000000"
)

// byHand is a store, and a client that changes what is stored.
type byHand struct {
	*testing.T
	*zk.Conn
	z      *rig.ZooKeeper
	s      *zookeeper.Store
	logged *buffer
}

func changeByHand(t *testing.T) *byHand {
	t.Helper()
	z := startZooKeeper(t, rig.ZooKeeperConfig{})
	log, logged := journal(t)
	return &byHand{
		t, hand(t, z), z, open(t, zookeeper.Config{Servers: z.Endpoints(), Logger: log}), logged,
	}
}

func (b *byHand) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

func (b *byHand) set(path, data string) {
	b.Helper()
	_, err := b.Set(path, []byte(data), -1)
	b.must(err)
}

// nodes returns the nodes below a path and itself, those below others first.
func (b *byHand) nodes(path, part string) (all []string) {
	b.Helper()
	walk(b.T, b.Conn, path, func(path string) {
		if strings.Contains(path, part) {
			all = append(all, path)
		}
	})
	return all
}

func (b *byHand) remove(path, part string) {
	b.Helper()
	for _, path := range b.nodes(path, part) {
		b.must(b.Delete(path, -1))
	}
}

func (b *byHand) reported(part string) {
	b.Helper()
	within(b.T, 30*time.Second, "it is reported: "+part, func() bool {
		return strings.Contains(b.logged.String(), part)
	})
}

// TestDamagedEntryFreesItsLock damages what is stored of one entry. Its lock is free in time, also
// to a replica that has to list that.
func TestDamagedEntryFreesItsLock(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(b *byHand){
		"the lease is deleted": func(b *byHand) {
			b.must(b.Delete(b.nodes(ours+"/entries", ",")[0], -1))
		},
		"the entry is deleted":     func(b *byHand) { b.remove(ours+"/entries", ",") },
		"the entry is damaged":     func(b *byHand) { b.set(b.nodes(ours+"/entries", ",")[1], "{") },
		"its record is damaged":    func(b *byHand) { b.set(firstLog+"/0000000000", `{"changes":1}`) },
		"its record is deleted":    func(b *byHand) { b.must(b.Delete(firstLog+"/0000000000", -1)) },
		"the log's data is broken": func(b *byHand) { b.set(firstLog, "{") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := changeByHand(t)
			f := follow(t, b.s)
			e := keyed("a")
			e.TTL = 3 * time.Second
			first := take(t, b.s, e)
			damage(b)
			late := follow(t, open(t, zookeeper.Config{Servers: b.z.Endpoints()}))
			heir := enqueue(t, b.s, draft("a"))
			if heir.Number <= first.Number {
				t.Errorf("fence %d after %d", heir.Number, first.Number)
			}
			within(t, 90*time.Second, "the lock is free for the next", func() bool {
				return f.first("a") == heir.ID && late.first("a") == heir.ID
			})
			b.must(b.s.Remove(t.Context(), heir, lock.Released))
			within(t, 10*time.Second, "the lock is free", func() bool {
				return f.first("a") == "" && late.first("a") == ""
			})
		})
	}
}

// TestWhatIsMissingIsReported: nothing is granted while a node is missing on which grants depend,
// and the log says how to fix that.
func TestWhatIsMissingIsReported(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		damage func(b *byHand)
		says   string
	}{
		"the log is deleted":  {func(b *byHand) { b.remove(firstLog, "") }, firstLog},
		"the epoch is raised": {func(b *byHand) { b.set(ours+"/epoch", "") }, "logs/0000000001"},
		"the shards are gone": {
			func(b *byHand) { b.remove(ours+"/entries", "") }, "restart all servers",
		},
		"the keys' node is gone": {func(b *byHand) { b.remove(ours+"/keys", "") }, "restart all servers"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := changeByHand(t)
			follow(t, b.s)
			c.damage(b)
			if e, _, err := b.s.Enqueue(t.Context(), keyed("a")); !errors.Is(err, lock.StoreUnavailable) {
				t.Errorf("Enqueue = %+v, %v, want store_unavailable", e, err)
			}
			b.reported(c.says)
		})
	}
}

// TestStuckEntryIsReported: an entry whose nodes were changed by hand, so that it cannot be
// removed, stays, and the log says how to fix that. Then it goes.
func TestStuckEntryIsReported(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		damage, fix func(b *byHand, main, other string)
		says        string
	}{
		"a node of the set is deleted": {
			func(b *byHand, main, other string) { b.must(b.Delete(other, -1)) },
			func(b *byHand, main, other string) { b.create(other) }, "create it, empty",
		},
		"a node is below it": {
			func(b *byHand, main, other string) { b.create(main + "/strange") },
			func(b *byHand, main, other string) {
				b.must(b.Delete(main+"/strange", -1))
			}, "delete what is below it",
		},
		"it is closed": {
			func(b *byHand, main, other string) { b.allow(main, zk.PermRead|zk.PermAdmin) },
			func(b *byHand, main, other string) { b.allow(main, zk.PermAll) }, "restore its ACL",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := changeByHand(t)
			f := follow(t, b.s)
			e := keyed("a")
			e.Set, e.Claims = true, append(e.Claims, lock.Claim{Name: "b", Mode: lock.Exclusive})
			placed := take(t, b.s, e)
			var main, other string
			for _, path := range b.nodes(ours+"/entries", ",") {
				switch {
				case strings.HasSuffix(path, string(e.ID)):
					main = path
				case strings.HasSuffix(path, ",a"):
					other = path
				}
			}
			c.damage(b, main, other)
			err := b.s.Remove(t.Context(), placed, lock.Released)
			if !errors.Is(err, lock.StoreUnavailable) {
				t.Errorf("Remove = %v, want store_unavailable", err)
			}
			b.reported(c.says)
			c.fix(b, main, other)
			// The write of the removal that got no answer may remove the entry first.
			err = b.s.Remove(t.Context(), placed, lock.Released)
			if err != nil && !errors.Is(err, lock.Lost) {
				t.Errorf("Remove = %v, want nil or lock_lost", err)
			}
			within(t, 10*time.Second, "both locks are free", func() bool {
				return f.first("a") == "" && f.first("b") == ""
			})
		})
	}
}

func (b *byHand) create(path string) {
	b.Helper()
	_, err := b.Create(path, nil, 0, zk.WorldACL(zk.PermAll))
	b.must(err)
}

func (b *byHand) allow(path string, permissions int32) {
	b.Helper()
	_, err := b.SetACL(path, zk.WorldACL(permissions), -1)
	b.must(err)
}

// TestMetaByHand deletes and damages what the store knows of itself: nothing is granted, holders go
// on, and a server that is started with a floor makes it again.
func TestMetaByHand(t *testing.T) {
	t.Parallel()
	z := startZooKeeper(t, rig.ZooKeeperConfig{})
	client := hand(t, z)
	for name, damage := range map[string]func(path string) error{
		"deleted": func(path string) error { return client.Delete(path, -1) },
		"damaged": func(path string) error { _, err := client.Set(path, []byte("{"), -1); return err },
		"emptied": func(path string) error { _, err := client.Set(path, nil, -1); return err },
		"lowered": func(path string) error {
			data, _, err := client.Get(path)
			if err == nil {
				_, err = client.Set(path, bytes.Replace(data, []byte("1000000"), []byte("1"), 1), -1)
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			prefix := "/" + name
			s := open(t, zookeeper.Config{Servers: z.Endpoints(), Prefix: prefix, FenceFloor: 1_000_000})
			held := enqueue(t, s, draft("a"))
			if err := damage(prefix + "/meta"); err != nil {
				t.Fatal(err)
			}
			if _, _, err := s.Enqueue(t.Context(), draft("a")); err == nil ||
				!strings.Contains(err.Error(), "--fence-floor") {
				t.Errorf("Enqueue = %v, want an error that asks for a floor", err)
			}
			if err := s.Refusal(); err == nil {
				t.Error("it grants")
			}
			if err := s.Renew(t.Context(), held); err != nil {
				t.Errorf("Renew: %v", err)
			}
			fixed := open(
				t, zookeeper.Config{Servers: z.Endpoints(), Prefix: prefix, FenceFloor: held.Number},
			)
			if next := enqueue(t, fixed, draft("a")); next.Number <= held.Number {
				t.Errorf("fence %d after %d", next.Number, held.Number)
			}
		})
	}
}

// TestMetaGone deletes meta while no replica runs. The floor is then unknown, and with it whether
// the store would issue fences a second time.
func TestMetaGone(t *testing.T) {
	t.Parallel()
	z := startZooKeeper(t, rig.ZooKeeperConfig{})
	first, err := zookeeper.Open(
		t.Context(), zookeeper.Config{Servers: z.Endpoints(), FenceFloor: 1_000_000_000},
	)
	if err != nil {
		t.Fatal(err)
	}
	before := enqueue(t, first, draft("a"))
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if err := hand(t, z).Delete(ours+"/meta", -1); err != nil {
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
