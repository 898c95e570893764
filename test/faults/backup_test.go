package faults_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencepost/fencepost/test/faults/drive"
	"github.com/fencepost/fencepost/test/faults/history"
	"github.com/fencepost/fencepost/test/rig"
)

// restored is one server with an embedded store, before and after it was restored.
type restored struct {
	*stand
	api, dir string
	highest  atomic.Int64 // of all fences that were handed out
	grants   atomic.Int64
	held     []*drive.Hold // and never released
}

// TestRestoredBackup makes a backup under load, goes on, kills the server, and restores the
// backup: nothing is granted before a floor is given, and every fence after that is above
// every one before.
func TestRestoredBackup(t *testing.T) {
	r := newRestored(t)
	r.start("before")
	receiver := receive(t, "one", "two")
	r.subscribe(receiver.URL + "/one")
	r.subscribe(receiver.URL + "/two")
	subscribed := r.subscriptions()
	long := r.acquire("held:before", time.Hour)
	stop := r.load()
	r.await(50)
	backup := filepath.Join(r.dir, "backup")
	r.order("backup", "--data-dir", filepath.Join(r.dir, "before"), "--to", backup)
	r.await(50)
	lost := r.acquire("held:lost", time.Hour)
	r.must(r.replicas[0].Kill())
	stop()

	out := r.order("restore", "--from", backup, "--data-dir", filepath.Join(r.dir, "after"))
	floor := regexp.MustCompile(`--fence-floor (\d+)`).FindStringSubmatch(out)
	if floor == nil {
		t.Fatalf("restore names no floor: %s", out)
	}
	r.start("after")
	if a := r.clients[0].Post(
		r.ctx, 0, drive.Request{Lock: "early", TTL: time.Minute},
	); a.Status != http.StatusServiceUnavailable ||
		!strings.Contains(a.Problem.Detail, "--fence-floor") {
		t.Errorf("without a floor: %v", a)
	}
	r.refuses(1)
	r.must(r.replicas[0].Kill())

	before, told := r.highest.Load(), r.grants.Load()
	r.start("after", "--fence-floor", floor[1])
	for name, h := range map[string]*drive.Hold{
		"from before the backup": long, "from the lost time": lost,
	} {
		if a := r.clients[0].Put(r.ctx, 0, h); a.Status != http.StatusGone {
			t.Errorf("a token %s: %v", name, a)
		}
	}
	r.refuses(0)
	first := r.acquire("held:lost", time.Minute)
	if first.Fence <= before {
		t.Errorf(
			"the first fence after the restore is %d, and %d was handed out before", first.Fence, before,
		)
	}
	if now := r.subscriptions(); !slices.Equal(now, subscribed) || len(now) != 2 {
		t.Errorf("subscriptions after the restore: %v, before: %v", now, subscribed)
	}
	r.highest.Store(0)
	stop = r.load()
	r.await(50)
	stop()
	t.Logf(
		"%d grants, up to fence %d; after the restore from %d to %d", told, before, first.Fence,
		r.highest.Load(),
	)
	r.readLogs()
}

func newRestored(t *testing.T) *restored {
	t.Helper()
	if !full() {
		t.Parallel()
	}
	built, err := binaries()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	t.Cleanup(cancel)
	//nolint:usetesting // that of a test is named after it, too long for a socket
	dir, err := os.MkdirTemp("", "fp")
	if err != nil {
		t.Fatal(err)
	}
	r := &restored{
		stand: &stand{t: t, ctx: ctx, history: history.NewRecorder(), odd: &drive.Oddities{}},
		api:   built.api, dir: dir,
	}
	t.Cleanup(func() { r.must(os.RemoveAll(dir)) })
	return r
}

// start starts the server with the embedded store in a folder.
func (r *restored) start(folder string, args ...string) {
	r.t.Helper()
	r.startOn("embedded", folder, args...)
}

// startOn starts the server on a store. The clients know it from then on.
func (r *restored) startOn(store, folder string, args ...string) {
	r.t.Helper()
	replica, err := rig.StartReplica(r.ctx, rig.ReplicaConfig{
		Binary: r.api, Store: store, DataDir: filepath.Join(r.dir, folder), Secret: secret,
		Args: append(args, toLoopback...),
	})
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { r.must(replica.Close()) })
	r.replicas = []*rig.Replica{replica}
	bearer, err := rig.SignToken(secret, tenant, "locks:read locks:write", "worker")
	r.must(err)
	r.clients = nil
	for i := range 4 {
		c := drive.NewClient(i, []string{replica.URL()}, bearer, r.history, r.odd)
		r.clients = append(r.clients, c)
		r.t.Cleanup(c.Close)
	}
}

// refuses looks whether the figure for the alert says that the store lost its past.
func (r *restored) refuses(want int) {
	r.t.Helper()
	a := r.clients[0].Ask(r.ctx, 0, http.MethodGet, "/metrics", nil, nil, 0)
	if line := fmt.Sprintf(
		"fencepost_grants_refused{reason=\"lost_past\"} %d\n", want,
	); !strings.Contains(string(a.Body), line) {
		r.t.Errorf("/metrics (%d) does not say %s", a.Status, line)
	}
}

// order runs the binary for one command.
func (r *restored) order(args ...string) string {
	r.t.Helper()
	out, err := exec.CommandContext(r.ctx, r.api, args...).CombinedOutput()
	if err != nil {
		r.t.Fatalf("%v: %v: %s", args, err, out)
	}
	return string(out)
}

func (r *restored) acquire(name string, ttl time.Duration) *drive.Hold {
	r.t.Helper()
	h, _ := r.clients[0].Acquire(r.ctx, drive.Request{Lock: name, TTL: ttl})
	if h == nil {
		r.t.Fatalf("%s is not granted", name)
	}
	r.note(h)
	return h
}

func (r *restored) note(h *drive.Hold) {
	r.grants.Add(1)
	for is := r.highest.Load(); h.Fence > is &&
		!r.highest.CompareAndSwap(is, h.Fence); is = r.highest.Load() {
	}
}

// load has every client take and release locks until it is stopped.
func (r *restored) load() (stop func()) {
	ctx, cancel := context.WithCancel(r.ctx)
	var all sync.WaitGroup
	for _, c := range r.clients {
		all.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				h, _ := c.Acquire(
					ctx, drive.Request{Lock: fmt.Sprint("load:", n%3), TTL: 5 * time.Second, Wait: time.Second},
				)
				if h == nil {
					pause(ctx, 10*time.Millisecond)
					continue
				}
				r.note(h)
				c.Release(ctx, 0, 1, h)
			}
		})
	}
	return func() { cancel(); all.Wait() }
}

// await returns when there were so many more grants.
func (r *restored) await(more int64) {
	r.t.Helper()
	for want := r.grants.Load() + more; r.grants.Load() < want; {
		if pause(r.ctx, 10*time.Millisecond); r.ctx.Err() != nil {
			r.t.Fatalf("there are no %d grants", want)
		}
	}
}

// subscriptions returns the ids of the tenant's subscriptions.
func (r *restored) subscriptions() (ids []string) {
	r.t.Helper()
	var list struct{ Webhooks []struct{ ID string } }
	if status := r.webhook(http.MethodGet, "/webhooks", nil, &list); status != http.StatusOK {
		r.t.Fatalf("GET /webhooks: %d", status)
	}
	for _, w := range list.Webhooks {
		ids = append(ids, w.ID)
	}
	slices.Sort(ids)
	return ids
}
