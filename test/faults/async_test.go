package faults_test

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/fencepost/fencepost/test/faults/drive"
	"github.com/fencepost/fencepost/test/faults/history"
)

// asyncTTL is the shortest lease of an entry that the replicas keep.
const asyncTTL = 15 * time.Second

// TestAsyncOutlivesItsReplica kills the replica that keeps half of the async entries. The other
// one takes them over before their leases end, with their positions. The next holder is granted
// at once and for a full lease.
func TestAsyncOutlivesItsReplica(t *testing.T) {
	s := newStand(t, 30*time.Minute)
	for round := range count(1, 20) {
		s.abandon(round, round%2)
		s.must(s.replicas[round%2].Restart(s.ctx))
	}
	s.judge()
}

// abandon queues async entries behind a holder, and kills a replica.
func (s *stand) abandon(round, victim int) {
	s.t.Helper()
	other, lock := 1-victim, fmt.Sprint("abandoned:", round)
	c := s.clients[0]
	holder, outcome := c.Acquire(
		s.ctx, drive.Request{Lock: lock, TTL: 30 * time.Second, Replica: other},
	)
	if holder == nil {
		s.t.Fatalf("%s: acquire is %s", lock, outcome)
	}
	var queue []asyncWait
	for i := range count(40, 1000) {
		r := drive.Request{Lock: lock, TTL: asyncTTL, Wait: time.Hour, Async: true}
		a := c.Post(s.ctx, i%2, r)
		if a.Status != http.StatusAccepted {
			s.t.Fatalf("%s: %v, want 202", lock, a)
		}
		queue = append(queue, asyncWait{drive.HoldOf(r, a), a.Call})
	}
	before, err := s.store.AwaitQueue(s.ctx, lock, len(queue)+1)
	s.must(err)
	s.must(s.replicas[victim].Kill())
	s.keep(c, holder, asyncTTL+10*time.Second, other)
	after, err := s.store.AwaitQueue(s.ctx, lock, len(queue)+1)
	s.must(err)
	if !slices.Equal(before, after) {
		s.t.Errorf("%s: the queue was %v and is %v", lock, before, after)
	}
	if c.Release(s.ctx, other, 1, holder) != history.OK {
		s.t.Errorf("%s: the holder could not release", lock)
	}
	for _, w := range queue {
		s.claim(c, other, w)
	}
}

// asyncWait is an async entry and when it was asked for.
type asyncWait struct {
	*drive.Hold
	asked time.Duration
}

// claim renews an entry that must hold by now, and releases it.
func (s *stand) claim(c *drive.Client, replica int, w asyncWait) {
	s.t.Helper()
	h := w.Hold
	a := c.Put(s.ctx, replica, h)
	if a.Status != http.StatusOK || a.Entry.State != "held" {
		s.t.Fatalf("%s: %v, want it held", h.Lock, a)
	}
	h.Waiting, h.Fence, a.Call = false, a.Entry.Fence, w.asked // its acquire lasted until now
	c.Record(history.Acquire, h, a)
	if outcome := c.Release(s.ctx, replica, 1, h); outcome != history.OK {
		s.t.Errorf("%s: release is %s", h.Lock, outcome)
	}
}
