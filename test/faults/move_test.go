package faults_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/fencepost/fencepost/test/rig"
)

// TestMoved moves a deployment as docs/operate/backup.md describes: from the embedded store to a
// cluster of etcd, from there to ZooKeeper, and back to the embedded store, which was stopped
// meanwhile. On each store every fence is above every earlier one, and no client holds what it
// held on another store.
func TestMoved(t *testing.T) {
	r := newRestored(t)
	etcd, zookeeper := r.otherStores()
	var floor string
	for round, store := range []string{"embedded", etcd, zookeeper, "embedded"} {
		var args []string
		if floor != "" {
			args = []string{"--fence-floor", floor}
		}
		r.startOn(store, "data", args...)
		before, newest := r.highest.Load(), int64(0)
		for n := range 20 {
			h := r.acquire(fmt.Sprint("moved:", round, ":", n), time.Minute)
			if h.Fence <= max(before, newest) {
				t.Fatalf("on %s the fence %d was handed out after %d", store, h.Fence, max(before, newest))
			}
			newest = h.Fence
		}
		held := r.acquire(fmt.Sprint("moved:", round, ":held"), time.Hour)
		floor = r.floor()
		r.must(r.replicas[0].Terminate(r.ctx))
		if n, err := strconv.ParseInt(floor, 10, 64); err != nil || n <= held.Fence {
			t.Fatalf("the floor %s is not above %d: %v", floor, held.Fence, err)
		}
		t.Logf("%s: fences up to %d, after %d", store, held.Fence, before)
		r.held = append(r.held, held)
	}
	r.startOn("embedded", "data", "--fence-floor", floor)
	defer r.readLogs()
	for i, h := range r.held {
		if a := r.clients[0].Put(r.ctx, 0, h); a.Status != http.StatusForbidden &&
			a.Status != http.StatusGone {
			t.Errorf("the token of the store %d: %v", i, a)
		}
	}
}

// otherStores are a cluster of etcd and a ZooKeeper server, which start together.
func (r *restored) otherStores() (etcd, zookeeper string) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.ctx, 4*time.Minute)
	defer cancel()
	binary, err := rig.BuildEtcd(ctx)
	if err != nil {
		r.t.Fatal(err)
	}
	java, err := fetchZooKeeper(ctx)
	if err != nil {
		r.t.Fatal(err)
	}
	e, err := rig.StartEtcd(
		ctx, rig.EtcdConfig{Members: 3, Dir: filepath.Join(r.dir, "etcd"), Binary: binary},
	)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { r.must(e.Close()) })
	z, err := rig.StartZooKeeper(
		ctx, rig.ZooKeeperConfig{Servers: 1, Dir: filepath.Join(r.dir, "zookeeper"), Java: java},
	)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { r.must(z.Close()) })
	return e.Store(), z.Store()
}

var revisionLine = regexp.MustCompile(`(?m)^fencepost_store_revision (\S+)$`)

// floor is what the steps say to take: the figure that no fence is above, and a million.
func (r *restored) floor() string {
	r.t.Helper()
	a := r.clients[0].Ask(r.ctx, 0, http.MethodGet, "/metrics", nil, nil, 0)
	line := revisionLine.FindSubmatch(a.Body)
	if line == nil {
		r.t.Fatal(errors.New("/metrics has no fencepost_store_revision"))
	}
	revision, err := strconv.ParseFloat(string(line[1]), 64)
	r.must(err)
	return strconv.FormatFloat(revision+1e6, 'f', 0, 64)
}
