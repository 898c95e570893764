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

// TestResumeOnAnotherReplica kills the replica that holds waiting requests. Their
// clients repeat the same POST at the other replica within the TTL: each has its
// old place, and the grants come in the order in which the entries were queued.
func TestResumeOnAnotherReplica(t *testing.T) {
	rounds := count(2, 20)
	s := newStand(t, 15*time.Minute)
	for round := range rounds {
		victim := round % 2
		s.resume(round, victim)
		s.must(s.replicas[victim].Restart(s.ctx))
	}
	s.enough((clients-1)*rounds, "waits resumed after the kill of their replica")
	s.judge()
}

// resume queues all clients but the first behind it, one after the other.
func (s *stand) resume(round, victim int) {
	s.t.Helper()
	const ttl = 4 * time.Second
	other := 1 - victim
	lock := fmt.Sprint("resumed:", round)
	holder, outcome := s.clients[0].Acquire(s.ctx, drive.Request{Lock: lock, TTL: 30 * time.Second, Replica: other})
	if holder == nil {
		s.t.Fatalf("%s: acquire is %s", lock, outcome)
	}
	granted := make(chan *drive.Hold, clients)
	request := func(c *drive.Client) drive.Request {
		return drive.Request{Lock: lock, TTL: ttl, Wait: 40 * time.Second, Key: fmt.Sprintf("resume-%d-%d", round, c.Number), Replica: victim}
	}
	for i, c := range s.clients[1:] {
		go func() { granted <- s.waitThrough(c, request(c), victim) }()
		if _, err := s.store.AwaitQueue(s.ctx, lock, i+2); err != nil {
			s.t.Fatal(err)
		}
	}
	before, err := s.store.AwaitQueue(s.ctx, lock, clients)
	s.must(err)
	s.must(s.replicas[victim].Kill())
	// The holder stays for longer than a TTL: the places live on only because
	// the clients came back.
	s.keep(s.clients[0], holder, ttl+2*time.Second, other)
	after, err := s.store.AwaitQueue(s.ctx, lock, clients)
	s.must(err)
	if !slices.Equal(before, after) {
		s.t.Errorf("%s: the queue was %v and is %v", lock, before, after)
	}
	s.clients[0].Release(s.ctx, other, 1, holder)
	s.inOrder(lock, before[1:], granted)
}

// waitThrough loses its request with the replica, resumes it at the other one,
// and releases the lock as soon as it is granted.
func (s *stand) waitThrough(c *drive.Client, r drive.Request, victim int) *drive.Hold {
	first := c.Post(s.ctx, victim, r)
	if first.Err == nil {
		s.t.Errorf("%s client %d: the killed replica answered %v", r.Lock, c.Number, first)
	}
	a := c.Post(s.ctx, 1-victim, r)
	if a.Status != http.StatusCreated {
		s.t.Errorf("%s client %d: the resumed wait: %v, want 201", r.Lock, c.Number, a)
		return nil
	}
	a.Call = first.Call
	h := drive.HoldOf(r, a)
	c.Record(history.Acquire, h, a)
	if outcome := c.Release(s.ctx, 1-victim, 1, h); outcome != history.OK {
		s.t.Errorf("%s client %d: release is %s", r.Lock, c.Number, outcome)
	}
	return h
}

// inOrder collects the grants and checks that fences follow the queue.
func (s *stand) inOrder(lock string, queue []string, granted <-chan *drive.Hold) {
	s.t.Helper()
	var holds []*drive.Hold
	for range queue {
		if h := <-granted; h != nil {
			holds = append(holds, h)
		}
	}
	slices.SortFunc(holds, func(a, b *drive.Hold) int { return int(a.Fence - b.Fence) })
	var order []string
	for _, h := range holds {
		order = append(order, h.ID)
	}
	if !slices.Equal(order, queue) {
		s.t.Errorf("%s: the queue was %v, the order of the fences is %v", lock, queue, order)
	}
}
