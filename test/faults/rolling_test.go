package faults_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencepost/fencepost/test/faults/drive"
	"github.com/fencepost/fencepost/test/faults/history"
)

const (
	// drainedWithin is how soon a replica has ended after SIGTERM, with 0.
	drainedWithin = 15 * time.Second
	// strayGoroutines is how many a replica may have more than before the crowd came, after
	// hundreds or thousands of requests: it takes webhooks' shards over from the other one, renews
	// leases, and has more streams to the store, some 30 in all.
	strayGoroutines = 60
	// quitsOneOf is that one of so many never comes back; it is odd, so that they are at
	// both replicas.
	quitsOneOf = 11
)

// graceBeyond is for how long an entry whose client did not come back may outlast its TTL. On
// ZooKeeper its lease may have been for two replicas to look at that were killed; the others take
// it over when their sessions have ended, 10 s later, within a third of the TTL.
func graceBeyond(ttl time.Duration) time.Duration {
	if onZooKeeper() {
		return 3*time.Second + 10*time.Second + ttl/3
	}
	return 3 * time.Second
}

// crowd waits for some locks while the replicas are restarted under it.
type crowd struct {
	*stand
	ttl        time.Duration
	queues     []*crowded
	waiting    atomic.Int64 // clients who have not quit
	told, cut  atomic.Int64 // requests that were sent elsewhere, or got no answer
	requests   sync.WaitGroup
	goroutines []int // of each replica before anybody came
}

// crowded is a lock, its holder, its waiters, and its later holders.
type crowded struct {
	lock    string
	c       *drive.Client
	holder  *drive.Hold
	waiters int
	quit    atomic.Int64
	before  []string // the waiting entries, before anything was restarted
	granted chan *drive.Hold
}

// crowdWaiter is one client that waits. It comes back after so many setbacks.
type crowdWaiter struct {
	c        *drive.Client
	r        drive.Request
	patience int
}

// TestF12RollingRestart restarts both replicas in turn under many waiting requests, first by
// SIGTERM and then by kill -9. A client that resumes at the other replica keeps its position. The
// entry of one that does not is gone after a TTL, and no replica keeps anything of it.
func TestF12RollingRestart(t *testing.T) {
	size, locks := count(300, 5000), count(3, 10)
	s := &crowd{
		stand: newStand(t, 15*time.Minute, "--debug-listen", "127.0.0.1:0", "--log-level", "warn"),
		ttl:   time.Duration(count(8, 15)) * time.Second, goroutines: make([]int, 2),
	}
	var stop context.CancelFunc
	s.ctx, stop = context.WithCancel(s.ctx)
	t.Cleanup(func() { stop(); s.requests.Wait() })
	for replica := range s.replicas {
		s.goroutines[replica] = s.countGoroutines(replica)
	}
	s.gather(size, locks)
	for _, end := range []func(replica int){s.terminate, s.kill} {
		for replica := range s.replicas {
			s.arrive(replica)
			end(replica)
			s.must(s.replicas[replica].Restart(s.ctx))
		}
	}
	s.arrive(0)
	s.stay(s.history.Now())
	s.pass()
	t.Logf(
		"%d waited: %d were told to go on elsewhere, %d got no answer, %d did not come back", size,
		s.told.Load(), s.cut.Load(), int64(size)-s.waiting.Load(),
	)
	if least := int64(size); s.told.Load() < least || s.cut.Load() < least {
		t.Errorf("want at least %d of each for the run to count", least)
	}
	s.leaveNothing()
	s.judge()
}

// gather has a holder for each lock and the crowd behind them, half of it at each replica.
func (s *crowd) gather(size, locks int) {
	s.t.Helper()
	for i := range locks {
		q := &crowded{
			lock: fmt.Sprint("crowded:", i), c: s.clients[i], waiters: size / locks,
			granted: make(chan *drive.Hold, size/locks),
		}
		if q.holder, _ = q.c.Acquire(
			s.ctx, drive.Request{Lock: q.lock, TTL: 15 * time.Minute},
		); q.holder == nil {
			s.t.Fatalf("%s: want a grant", q.lock)
		}
		s.queues = append(s.queues, q)
	}
	for i := range size {
		q := s.queues[i%locks]
		w := crowdWaiter{c: s.clients[i%clients], patience: 1 << 30, r: drive.Request{
			Lock: q.lock, TTL: s.ttl, Wait: 14 * time.Minute, Key: fmt.Sprint("crowd-", i),
			Replica: i / locks % 2,
		}}
		if turn := i / locks; turn%quitsOneOf == 0 {
			w.patience = 1 + turn/quitsOneOf%3
		}
		s.waiting.Add(1)
		s.requests.Go(func() { s.wait(q, w) })
		if (i+1)%(20*locks) == 0 || i+1 == size {
			s.await(i+1, locks)
		}
	}
}

// await waits until so many of the crowd are in their queues: a greater burst could be refused.
func (s *crowd) await(joined, locks int) {
	s.t.Helper()
	for i, q := range s.queues {
		ids, err := s.store.AwaitQueue(s.ctx, q.lock, 1+(joined+locks-1-i)/locks)
		if err != nil {
			s.t.Fatal(err)
		}
		q.before = ids[1:]
	}
}

// wait asks for the lock until it is granted, at the other replica whenever one cannot go on, and
// releases it.
func (s *crowd) wait(q *crowded, w crowdWaiter) {
	first, replica := s.history.Now(), w.r.Replica
	for s.ctx.Err() == nil {
		a := w.c.Post(s.ctx, replica, w.r)
		switch {
		case a.Status == http.StatusCreated:
			a.Call = first
			q.granted <- s.finish(w, a, replica)
			return
		case a.Status == http.StatusAccepted: // one request is held open for so long
			continue
		case a.Status == http.StatusServiceUnavailable && a.Problem.Entry != nil:
			s.told.Add(1)
		case a.Status == 0:
			s.cut.Add(1)
		case a.Status != http.StatusServiceUnavailable:
			s.t.Errorf("%s %s: %v, want the old place", q.lock, w.r.Key, a)
			q.granted <- nil
			return
		}
		if w.patience--; w.patience == 0 {
			q.quit.Add(1)
			s.waiting.Add(-1)
			return
		}
		replica++
		pause(s.ctx, rand.N(100*time.Millisecond))
	}
	q.granted <- nil // the test is over
}

// finish records a grant and releases it.
func (s *crowd) finish(w crowdWaiter, a drive.Answer, replica int) *drive.Hold {
	h := drive.HoldOf(w.r, a)
	w.c.Record(history.Acquire, h, a)
	if outcome := w.c.Release(s.ctx, replica, 3, h); outcome != history.OK {
		s.t.Errorf("%s %s: release is %s", h.Lock, w.r.Key, outcome)
	}
	return h
}

// terminate ends a replica as an orchestrator does.
func (s *crowd) terminate(replica int) {
	s.t.Helper()
	told, start := s.told.Load(), s.history.Now()
	ctx, cancel := context.WithTimeout(s.ctx, within(drainedWithin))
	defer cancel()
	if err := s.replicas[replica].Terminate(ctx); err != nil {
		s.t.Errorf(
			"SIGTERM to replica %d: %v, want exit code 0 within %v", replica, err, within(drainedWithin),
		)
	}
	s.t.Logf(
		"replica %d was drained in %v, of which %d were told", replica,
		(s.history.Now() - start).Round(time.Millisecond), s.told.Load()-told,
	)
}

// kill ends a replica with kill -9.
func (s *crowd) kill(replica int) {
	s.t.Helper()
	s.must(s.replicas[replica].Kill())
}

// arrive waits until the crowd waits at a replica: all that is left of it, or at first half.
func (s *crowd) arrive(replica int) {
	s.t.Helper()
	start := s.history.Now()
	ctx, cancel := context.WithTimeout(s.ctx, s.ttl)
	defer cancel()
	for {
		want, got := int(s.waiting.Load()), s.inFlight(replica)
		if s.told.Load() == 0 {
			want /= 2
		}
		if got-1 >= want { // this look is one of them

			s.t.Logf(
				"%d wait at replica %d after %v", got, replica,
				(s.history.Now() - start).Round(time.Millisecond),
			)
			return
		}
		if ctx.Err() != nil {
			s.t.Fatalf("%d wait at replica %d, want %d", got, replica, want)
		}
		pause(ctx, 20*time.Millisecond)
	}
}

// stay holds the locks for longer than a lease after the last restart. By then the entries of
// clients that did not come back are gone, and the others exist only because their clients did.
func (s *crowd) stay(restarted time.Duration) {
	s.t.Helper()
	pause(s.ctx, s.ttl+time.Second)
	var last time.Duration
	for _, q := range s.queues {
		after, err := s.store.AwaitQueue(s.ctx, q.lock, 1+q.waiters-int(q.quit.Load()))
		if err != nil {
			s.t.Fatal(err)
		}
		for _, id := range q.before {
			if slices.Contains(after, id) {
				continue
			}
			left, err := s.store.AwaitLeft(s.ctx, id)
			s.must(err)
			last = max(last, left-restarted)
		}
	}
	s.t.Logf(
		"the last one who did not come back was gone %v after the last restart, with a TTL of %v",
		last.Round(time.Millisecond), s.ttl,
	)
	if limit := within(s.ttl + graceBeyond(s.ttl)); last > limit {
		s.t.Errorf("want at most %v", limit)
	}
}

// pass releases the locks, and checks that all others are granted them in the order of before.
func (s *crowd) pass() {
	s.t.Helper()
	start := s.history.Now()
	for _, q := range s.queues {
		after, err := s.store.AwaitQueue(s.ctx, q.lock, 1+q.waiters-int(q.quit.Load()))
		if err != nil {
			s.t.Fatal(err)
		}
		inPlace := slices.DeleteFunc(
			slices.Clone(q.before), func(id string) bool { return !slices.Contains(after, id) },
		)
		if !slices.Equal(inPlace, after[1:]) {
			s.t.Errorf("%s: of the queue %v are left %v", q.lock, q.before, after[1:])
		}
		q.before = inPlace
	}
	for _, q := range s.queues {
		q.c.Release(s.ctx, 0, 3, q.holder)
	}
	for _, q := range s.queues {
		s.inOrder(q.lock, q.before, q.granted)
	}
	s.t.Logf("all were granted in %v", (s.history.Now() - start).Round(time.Millisecond))
}

// leaveNothing checks that the replicas are as idle as before the crowd came.
func (s *crowd) leaveNothing() {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.ctx, within(10*time.Second))
	defer cancel()
	before := slices.Max(s.goroutines) // what one has just after its start, some are still to come
	for replica := range s.replicas {
		for {
			for _, c := range s.clients {
				c.Close()
			}
			n := s.countGoroutines(replica)
			if n <= before+strayGoroutines {
				s.t.Logf("replica %d has %d goroutines, %d before the crowd", replica, n, before)
				break
			}
			if ctx.Err() != nil {
				s.t.Errorf(
					"replica %d has %d goroutines, %d before the crowd, want %d more at most", replica, n, before,
					strayGoroutines,
				)
				break
			}
			pause(ctx, 50*time.Millisecond)
		}
	}
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
