package zookeeper_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store/zookeeper"
	"github.com/fencepost/fencepost/test/rig"
)

// TestByHand deletes and damages what is ours with a client of its own. What
// hits one entry is reported and frees its lock in time; a node above others is made again.
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
	madeAgain := func(t *testing.T, path string) { // by the replica that runs
		within(t, 10*time.Second, path+" is made again", func() bool {
			there, _, err := client.Exists(path)
			return err == nil && there
		})
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
			madeAgain(t, root+"/entries")
		},
		"the node above all folded ends is deleted": func(t *testing.T, root string) {
			check(t, client.Delete(root+"/ended", -1))
			madeAgain(t, root+"/ended")
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
			log, logged := journal(t)
			cfg := zookeeper.Config{Servers: z.Endpoints(), Prefix: prefix, Logger: log}
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
				t.Error("something was reported although nothing is wrong")
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
	log, logged := journal(t)
	late := open(t, zookeeper.Config{Servers: z.Endpoints(), Logger: log})
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
			if _, _, err := s.Enqueue(t.Context(), draft("a")); err == nil || !strings.Contains(err.Error(), "--fence-floor") {
				t.Errorf("Enqueue = %v, want an error that asks for a floor", err)
			}
			if err := s.Refusal(); err == nil {
				t.Error("it grants")
			}
			if err := s.Renew(t.Context(), held); err != nil {
				t.Errorf("Renew: %v", err)
			}
			fixed := open(t, zookeeper.Config{Servers: z.Endpoints(), Prefix: prefix, FenceFloor: held.Number})
			if next := enqueue(t, fixed, draft("a")); next.Number <= held.Number {
				t.Errorf("fence %d after %d", next.Number, held.Number)
			}
		})
	}
}

// TestMetaGone deletes it while no replica runs: nobody knows which floor it had, and
// so whether fences would be handed out a second time.
func TestMetaGone(t *testing.T) {
	t.Parallel()
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
	t.Parallel()
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
