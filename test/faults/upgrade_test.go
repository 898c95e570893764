package faults_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/fencepost/fencepost/test/faults/drive"
	"github.com/fencepost/fencepost/test/faults/history"
)

// upgraded is a stand that is upgraded under load.
type upgraded struct {
	*stand
	mu                sync.Mutex
	granted, released []int64 // fences known to clients and due to receivers
}

// TestUpgrade upgrades two replicas one after the other, by SIGTERM, under load: those before it,
// one of each version, and those after it lose nothing. OLDER names the binary of the older
// version; without it both are the same, and only the restarts are real.
func TestUpgrade(t *testing.T) {
	built, err := binaries()
	if err != nil {
		t.Fatal(err)
	}
	older := os.Getenv("OLDER")
	if older == "" {
		older = built.api
		t.Log("OLDER is not set: both versions are the one that is built here")
	}
	s := &upgraded{stand: newCluster(t, 20*time.Minute)}
	for range 2 {
		s.replicaAs(older, s.cluster.Store(), toLoopback...)
	}
	s.observe()
	s.connect()
	names := []string{"a", "b"}
	r := receive(t, names...)
	var ids []string
	for _, name := range names {
		ids = append(ids, s.subscribe(r.URL+"/"+name))
	}
	s.settleWebhooks(ids)
	load, stop := context.WithCancel(s.ctx)
	var loading sync.WaitGroup
	loading.Go(func() { s.work(load) })
	s.sees("two older replicas", -1, built.api)
	s.sees("one of each version", 0, built.api)
	s.sees("two newer replicas", 1, built.api)
	stop()
	loading.Wait()
	s.acquirable()
	s.allTold(r, names)
	s.judge()
}

// work has most clients lock as they please, and two whose locks the receivers are asked about.
func (s *upgraded) work(ctx context.Context) {
	s.each(func(c *drive.Client) {
		for n := 0; ctx.Err() == nil; n++ {
			switch {
			case c.Number >= 4:
				s.cycle(ctx, c)
			case c.Number >= 2:
				s.told(c, n)
				pause(ctx, 10*time.Millisecond)
			default: // these are for the async waits
				return
			}
		}
	})
}

// told locks and releases, and notes what of that is known.
func (s *upgraded) told(c *drive.Client, n int) {
	h, _ := c.Acquire(s.ctx, drive.Request{
		Lock: fmt.Sprintf("told:%d:%d", c.Number, n%5), TTL: 5 * time.Second, Replica: n % 2,
	})
	if h == nil {
		return
	}
	outcome := c.Release(s.ctx, n%2, 2, h)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.granted = append(s.granted, h.Fence)
	if outcome == history.OK {
		s.released = append(s.released, h.Fence)
	}
}

// sees replaces a replica by one of the newer version, unless it is -1, and goes on until there was
// enough load after it. Async entries wait through it, and are granted in their order.
func (s *upgraded) sees(what string, replica int, binary string) {
	s.t.Helper()
	start := s.history.Now()
	lock := fmt.Sprint("async:", replica)
	holder, queue := s.line(lock)
	if replica >= 0 {
		ctx, cancel := context.WithTimeout(s.ctx, within(15*time.Second))
		defer cancel()
		if err := s.replicas[replica].Terminate(ctx); err != nil {
			s.t.Errorf("SIGTERM to replica %d: %v", replica, err)
		}
		s.must(s.replicas[replica].RestartAs(s.ctx, binary))
	}
	before := history.Summarize(s.history.Ops()).Grants
	least := count(100, 2000)
	s.keep(s.clients[0], holder, time.Duration(count(5, 30))*time.Second, 0, 1)
	grants := func() int { return history.Summarize(s.history.Ops()).Grants }
	for end := time.Now().Add(seenWithin); grants() < before+least; pause(s.ctx, 20*time.Millisecond) {
		if time.Now().After(end) {
			s.t.Fatalf("%s: there are no %d grants", what, least)
		}
		s.keep(s.clients[0], holder, time.Second, 0, 1)
	}
	if outcome := s.clients[0].Release(s.ctx, 0, 4, holder); outcome != history.OK {
		s.t.Errorf("%s: the holder could not release: %s", what, outcome)
	}
	for _, w := range queue {
		s.claim(s.clients[1], 0, w)
	}
	s.t.Logf(
		"%s: %d grants in %v, and %d async entries in their order", what,
		history.Summarize(s.history.Ops()).Grants-before, (s.history.Now() - start).Round(time.Second),
		len(queue),
	)
}

// line has async entries wait behind a holder, asked for at both replicas.
func (s *upgraded) line(lock string) (holder *drive.Hold, queue []asyncWait) {
	s.t.Helper()
	holder, outcome := s.clients[0].Acquire(
		s.ctx, drive.Request{Lock: lock, TTL: 30 * time.Second, Attempts: 3},
	)
	if holder == nil {
		s.t.Fatalf("%s: acquire is %s", lock, outcome)
	}
	for i := range count(10, 50) {
		r := drive.Request{Lock: lock, TTL: 30 * time.Second, Wait: time.Hour, Async: true}
		a := s.clients[1].Post(s.ctx, i%2, r)
		if a.Status != http.StatusAccepted {
			s.t.Fatalf("%s: %v, want 202", lock, a)
		}
		queue = append(queue, asyncWait{drive.HoldOf(r, a), a.Call})
	}
	return holder, queue
}

// allTold checks that each receiver has each grant and release, or a report that it is missed.
func (s *upgraded) allTold(r *receivers, names []string) {
	s.t.Helper()
	dues := duesOfClients(s.granted, s.released)
	end := time.Now().Add(within(30 * time.Second))
	for r.all(names, dues).lacking > 0 && time.Now().Before(end) {
		pause(s.ctx, 50*time.Millisecond)
	}
	n := r.all(names, dues)
	s.t.Logf(
		"%d grants and %d releases, to each of %d receivers: %+v; it was said %d times that something is missed",
		len(s.granted),
		len(s.released),
		len(names),
		n,
		r.missedBy(names),
	)
	if n.lacking > 0 || len(s.granted) == 0 {
		s.t.Errorf("%d were never told", n.lacking)
	}
}
