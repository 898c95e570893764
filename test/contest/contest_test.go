// Package contest_test has workers of all languages contend for one set of locks, see README.md.
package contest_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/test/faults/drive"
	"github.com/fencepost/fencepost/test/rig"
)

const (
	ttl    = 2 * time.Second // the shortest on etcd
	margin = 250 * time.Millisecond
	secret = "contest: thirty-two bytes or more, and never used elsewhere"

	buildsWithin = 5 * time.Minute
	endsWithin   = 30 * time.Second // more than a worker waits for a lock
	// seenWithin bounds for how long the contest goes on until it has seen what it is about.
	seenWithin = 15 * time.Minute
)

// languages whose workers contend.
var languages = []string{"go", "python", "typescript", "java", "rust"}

// length of the contest: CONTEST=full is the published one.
func full() bool { return os.Getenv("CONTEST") == "full" }

func length() time.Duration {
	if full() {
		return time.Minute
	}
	return 15 * time.Second
}

// least says what has to have happened for a contest to count.
func least() (written, pauses int) {
	if full() {
		return 100, 1000
	}
	return 5, 15
}

// TestContest: while replicas are killed and workers are stopped, no language loses an update where
// the resource checks fences, and each gets on.
func TestContest(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 25*time.Minute)
	defer cancel()
	cluster, replicas := servers(ctx, t)
	c := &contest{t: t, resource: newResource(t, locks())}
	for _, language := range languages {
		c.start(ctx, language, replicas)
	}
	c.end(buildsWithin) // which some do first
	c.workers = nil
	for i := range count() {
		c.start(ctx, languages[i%len(languages)], replicas)
	}
	nemesis := &drive.Nemesis{Cluster: cluster, Replicas: replicas, Every: 6 * time.Second}
	load, stop := context.WithTimeout(ctx, length()+seenWithin)
	defer stop()
	broken := make(chan error, 1)
	go func() { broken <- nemesis.Run(load) }()
	for _, w := range c.workers {
		c.all.Go(func() { w.disturb(load) })
	}
	_ = store.Pause(load, length())
	for load.Err() == nil && !c.enough(nemesis.Killed()) && !c.ended() {
		_ = store.Pause(load, 100*time.Millisecond)
	}
	stop()
	c.all.Wait()
	if err := <-broken; err != nil {
		t.Error(err)
	}
	c.end(endsWithin)
	c.judge(nemesis.Killed())
}

// count is how many workers there are.
func count() int {
	if full() {
		return 3 * len(languages)
	}
	return 2 * len(languages)
}

// locks are the names: the resource checks fences of one half.
func locks() (names []string) {
	for i := range 2 {
		names = append(names, fmt.Sprint("checked:", i), fmt.Sprint("unchecked:", i))
	}
	return names
}

func starter(language string) string {
	return filepath.Join("..", "..", "clients", language, "worker")
}

// servers starts three members of etcd and two replicas.
func servers(ctx context.Context, t *testing.T) (drive.Etcd, []*rig.Replica) {
	t.Helper()
	dir := t.TempDir()
	etcd, err := rig.BuildEtcd(ctx)
	if err != nil {
		t.Fatal(err)
	}
	api, err := rig.BuildAPI(ctx, dir)
	if err != nil {
		t.Fatal(err)
	}
	cluster, err := rig.StartEtcd(ctx, rig.EtcdConfig{Members: 3, Dir: dir, Binary: etcd})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cluster.Close() })
	var replicas []*rig.Replica
	for i := range 2 {
		r, err := rig.StartReplica(ctx, rig.ReplicaConfig{
			Binary: api, Store: cluster.Store(), Secret: secret,
			DataDir: filepath.Join(dir, fmt.Sprint("replica-", i)),
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = r.Close() })
		replicas = append(replicas, r)
	}
	return drive.Etcd{Etcd: cluster}, replicas
}

// start starts a worker of a language. Each begins at another replica.
func (c *contest) start(ctx context.Context, language string, replicas []*rig.Replica) {
	c.t.Helper()
	number := len(c.workers)
	name := fmt.Sprint(language, "-", number)
	var urls []string
	for i := range replicas {
		urls = append(urls, replicas[(number+i)%len(replicas)].URL())
	}
	token, err := rig.SignToken(secret, "acme", "locks:read locks:write", name)
	if err != nil {
		c.t.Fatal(err)
	}
	w, err := newWorker(ctx, language, name, []string{
		"FENCEPOST_URL=" + strings.Join(urls, ","), "FENCEPOST_TOKEN=" + token,
		"LOCKS=" + strings.Join(locks(), ","),
		"RESOURCE=" + c.resource.url + "/" + name, fmt.Sprint("TTL=", ttl.Seconds()),
	})
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(w.kill)
	c.workers = append(c.workers, w)
	c.resource.know(name, w)
}

// ended reports whether a worker has ended by itself.
func (c *contest) ended() bool {
	return slices.ContainsFunc(c.workers, func(w *worker) bool {
		select {
		case <-w.exited:
			return true
		default:
			return false
		}
	})
}

// end ends the workers, and fails for those that cannot.
func (c *contest) end(within time.Duration) {
	c.t.Helper()
	for _, w := range c.workers {
		if w.end(within); len(w.faults) > 0 {
			c.t.Errorf("%s: %s", w.name, strings.Join(w.faults, "\n"))
		}
	}
}

// disturb stops the worker now and then, until ctx ends.
func (w *worker) disturb(ctx context.Context) {
	for store.Pause(ctx, rand.N(3*ttl)) == nil {
		w.pause(anyPause())
	}
}

// anyPause is a time for which a worker is stopped: half a TTL to three.
func anyPause() time.Duration { return ttl/2 + rand.N(5*ttl/2) }

// longPause is one beyond the end of the lease.
func longPause() time.Duration { return 3*ttl/2 + rand.N(3*ttl/2) }
