package faults_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fencepost/fencepost/test/faults/drive"
)

// older is a store outside of the servers, under which an older copy of all its data is put.
type older struct{ *restored }

// TestF15OlderCopy copies the data of every member of the store, continues under load, and puts
// the copy back while the replicas run. Neither replica grants anything from then on, nor does a
// restarted one, before a floor is set. Every fence after that is above every earlier one.
func TestF15OlderCopy(t *testing.T) {
	o := &older{&restored{stand: newCluster(t, 6*time.Minute)}}
	o.serveAnew()
	stop := o.load()
	o.await(int64(count(50, 500)))
	stop()
	copies := filepath.Join(o.stand.dir, "copies")
	o.still(
		func(i int, m drive.Member) error { return os.CopyFS(o.copyOf(copies, i), os.DirFS(m.Data())) },
	)
	stop = o.load()
	o.await(int64(count(100, 1000)))
	held := o.acquire("held:lost", time.Hour)
	stop()
	o.still(func(i int, m drive.Member) error {
		if err := os.RemoveAll(m.Data()); err != nil {
			return err
		}
		return os.CopyFS(m.Data(), os.DirFS(o.copyOf(copies, i)))
	})
	for replica := range o.replicas {
		o.refusesToGrant(replica)
	}
	o.must(o.replicas[0].Restart(o.ctx))
	o.refusesToGrant(0)

	before := o.highest.Load()
	o.serveAnew("--fence-floor", fmt.Sprint(before+1_000_000))
	if a := o.clients[0].Put(o.ctx, 0, held); a.Status != http.StatusGone {
		t.Errorf("who held what is lost renews: %v", a)
	}
	for n, last := 0, before; n < 20; n++ {
		h := o.acquire(fmt.Sprint("after:", n%2, ":", n), time.Minute)
		if h.Fence <= last {
			t.Fatalf("fence %d after %d", h.Fence, last)
		}
		last = h.Fence
	}
	t.Logf(
		"%d grants; fences up to %d before, and %d after", o.grants.Load(), before, o.highest.Load(),
	)
	o.readLogs()
}

func (o *older) copyOf(copies string, i int) string { return filepath.Join(copies, fmt.Sprint(i)) }

// serveAnew ends the replicas, if there are any, and starts two others.
func (o *older) serveAnew(args ...string) {
	o.t.Helper()
	for _, r := range o.replicas {
		o.must(r.Terminate(o.ctx))
	}
	o.replicas, o.clients = nil, nil
	for range 2 {
		o.replica(o.cluster.Store(), args...)
	}
	o.connect()
}

// still kills all members, does something with each, and starts them again.
func (o *older) still(do func(i int, m drive.Member) error) {
	o.t.Helper()
	for i := range o.cluster.Size() {
		o.must(o.cluster.Member(i).Kill())
	}
	var all sync.WaitGroup
	for i := range o.cluster.Size() {
		o.must(do(i, o.cluster.Member(i)))
	}
	for i := range o.cluster.Size() { // none of them serves before most are there
		all.Go(func() { o.must(o.cluster.Member(i).Restart(o.ctx)) })
	}
	all.Wait()
}

// refusesToGrant asks a replica for locks until it says why it grants none. It may be without the
// store at first.
func (o *older) refusesToGrant(replica int) {
	o.t.Helper()
	c := o.clients[0]
	for n := 0; ; n++ {
		a := c.Post(
			o.ctx, replica, drive.Request{Lock: fmt.Sprint("early:", replica, ":", n), TTL: time.Minute},
		)
		switch {
		case a.Status == http.StatusServiceUnavailable &&
			strings.Contains(a.Problem.Detail, "--fence-floor"):
			return
		case a.Status != http.StatusServiceUnavailable && a.Status != 0:
			o.t.Fatalf("replica %d answers %v from a store that went back", replica, a)
		case o.ctx.Err() != nil:
			o.t.Fatalf("replica %d does not say why it grants nothing: %v", replica, a)
		}
		pause(o.ctx, 20*time.Millisecond)
	}
}
