package faults_test

import (
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencepost/fencepost/test/faults/drive"
	"github.com/fencepost/fencepost/test/faults/history"
)

// toldWithin is how soon a connected client must hear that its entry is gone.
const toldWithin = time.Second

// longest keeps the greatest of many durations.
type longest struct{ ns atomic.Int64 }

func (l *longest) add(d time.Duration) {
	for old := l.ns.Load(); int64(d) > old && !l.ns.CompareAndSwap(old, int64(d)); old = l.ns.Load() {
	}
}

func (l *longest) String() string {
	return time.Duration(l.ns.Load()).Round(time.Millisecond).String()
}

// queued is a lock with a holder and a waiter that is connected.
type queued struct {
	s      *stand
	c      *drive.Client
	lock   string
	holder *drive.Hold
	waiter string // its entry
	answer chan drive.Answer
	r      drive.Request
}

// queue makes client c hold the lock through replica 1 and wait for it through
// the given replica, and returns when the store has both entries.
func (s *stand) queue(c *drive.Client, lock string, r drive.Request) *queued {
	s.t.Helper()
	q := &queued{s: s, c: c, lock: lock, r: r, answer: make(chan drive.Answer, 1)}
	q.r.Lock = lock
	var outcome history.Outcome
	q.holder, outcome = c.Acquire(s.ctx, drive.Request{Lock: lock, TTL: time.Minute, Replica: 1})
	if q.holder == nil {
		s.t.Errorf("%s: acquire is %s, want a grant", lock, outcome)
		return nil
	}
	go func() { q.answer <- c.Post(s.ctx, q.r.Replica, q.r) }()
	waiter, err := s.store.AwaitBehind(s.ctx, lock, q.holder.ID)
	if err != nil {
		s.t.Errorf("%s: %v", lock, err)
		return nil
	}
	q.waiter = waiter
	return q
}

// expire takes the waiter's entry out of the store, as an expired lease does.
func (q *queued) expire() time.Duration {
	q.s.t.Helper()
	call := q.c.Now()
	at, err := q.s.store.Expire(q.s.ctx, q.waiter)
	if err != nil {
		q.s.t.Errorf("%s: %v", q.lock, err)
		return call
	}
	q.s.history.Add(history.Op{
		Client: q.c.Number, Lock: q.lock, Kind: history.Remove, Entry: q.waiter,
		Call: call, Return: at, Outcome: history.OK,
	})
	return at
}

// told waits for the waiter's answer, records it, and checks that it says that
// the entry is gone. It returns when it came.
func (q *queued) told() time.Duration {
	q.s.t.Helper()
	a := <-q.answer
	h := &drive.Hold{Lock: q.lock, ID: q.waiter, TTL: q.r.TTL}
	q.c.Record(history.Acquire, h, a)
	if a.Status != http.StatusGone || a.Problem.Reason != "expired" {
		q.s.t.Errorf("%s: the waiter whose entry expired was answered %v, want 410 expired", q.lock, a)
	}
	return a.Return
}

// pass releases the holder and checks that the next request gets the lock at
// once: the entry that expired is not in its way.
func (q *queued) pass() {
	q.s.t.Helper()
	if outcome := q.c.Release(q.s.ctx, 1, 1, q.holder); outcome != history.OK {
		q.s.t.Errorf("%s: release is %s", q.lock, outcome)
	}
	h, outcome := q.c.Acquire(
		q.s.ctx, drive.Request{Lock: q.lock, TTL: 10 * time.Second, Wait: 2 * time.Second, Replica: 1},
	)
	if h == nil {
		q.s.t.Errorf("%s: acquire after the waiter's expiry and the release is %s", q.lock, outcome)
		return
	}
	q.c.Release(q.s.ctx, 1, 1, h)
}

// TestF3WaiterExpires lets the entries of connected waiters expire behind a holder: they learn it
// within a second and are never granted (etcd #11456, #19597).
func TestF3WaiterExpires(t *testing.T) {
	rounds := count(10, 63) // by 16 clients: 160 or 1008
	s := newStand(t, 15*time.Minute)
	var slowest longest
	s.each(func(c *drive.Client) {
		for round := range rounds {
			r := drive.Request{TTL: 10 * time.Second, Wait: 30 * time.Second, Replica: round % 2}
			if round%4 >= 2 {
				r.Key = fmt.Sprintf("waiter-%d-%d", c.Number, round)
			}
			q := s.queue(c, fmt.Sprint("queue:", c.Number), r)
			if q == nil {
				return
			}
			at := q.expire()
			slowest.add(q.told() - at)
			q.pass()
		}
	})
	t.Logf("slowest word to a waiter: %v", &slowest)
	if time.Duration(slowest.ns.Load()) > within(toldWithin) {
		t.Errorf("a waiter was told after %v, want at most %v", &slowest, within(toldWithin))
	}
	s.enough(clients*rounds, "entries that expired in the queue")
	s.judge()
}

// TestF3WaiterExpiresDuringRelease does the same while the holder releases: the
// waiter may be granted if the release came first, and only then.
func TestF3WaiterExpiresDuringRelease(t *testing.T) {
	rounds := count(10, 63)
	s := newStand(t, 15*time.Minute)
	var granted, gone atomic.Int64
	ctx, stop := s.until(0, func() bool { return gone.Load() > 0 })
	defer stop()
	s.each(func(c *drive.Client) {
		for round := 0; round < rounds || ctx.Err() == nil; round++ {
			q := s.queue(
				c, fmt.Sprint("race:", c.Number),
				drive.Request{TTL: 10 * time.Second, Wait: 30 * time.Second, Replica: round % 2},
			)
			if q == nil {
				return
			}
			if q.race(c) {
				granted.Add(1)
			} else {
				gone.Add(1)
			}
		}
	})
	t.Logf("%d were granted first, %d had expired", granted.Load(), gone.Load())
	if gone.Load() == 0 {
		t.Error("no waiter expired in time for the run to count")
	}
	s.judge()
}

// race lets the release and the expiry run at once and reports whether the
// waiter was granted. Which came first is for the checkers to judge.
func (q *queued) race(c *drive.Client) bool {
	q.s.t.Helper()
	var both sync.WaitGroup
	call := c.Now()
	var expired time.Duration
	both.Go(func() {
		at, err := q.s.store.Expire(q.s.ctx, q.waiter)
		if err != nil && !errors.Is(err, drive.ErrNotThere) {
			q.s.t.Errorf("%s: %v", q.lock, err)
		}
		expired = at
	})
	both.Go(func() { c.Release(q.s.ctx, 1, 1, q.holder) })
	both.Wait()
	a := <-q.answer
	h := drive.HoldOf(q.r, a)
	h.ID = q.waiter
	c.Record(history.Acquire, h, a)
	if expired != 0 {
		q.s.history.Add(history.Op{
			Client: c.Number, Lock: q.lock, Kind: history.Remove, Entry: q.waiter,
			Call: call, Return: expired, Outcome: history.OK,
		})
	}
	return a.Status == http.StatusCreated
}

// TestF3StoppedReplica freezes the replica that holds the waiting requests for
// longer than their TTL, so that their leases really end. Half of the holders
// release while it is frozen, half after it woke.
func TestF3StoppedReplica(t *testing.T) {
	rounds := count(1, 16)
	s := newStand(t, 15*time.Minute)
	var slowest longest
	for round := range rounds {
		s.freeze(round, &slowest)
	}
	t.Logf("slowest word to a waiter after its replica woke: %v", &slowest)
	if time.Duration(slowest.ns.Load()) > within(toldWithin) {
		t.Errorf(
			"a waiter was told %v after its replica woke, want at most %v", &slowest, within(toldWithin),
		)
	}
	s.enough(clients*rounds, "leases of waiters that ended while their replica was frozen")
	s.judge()
}

func (s *stand) freeze(round int, slowest *longest) {
	s.t.Helper()
	queues := make([]*queued, clients)
	s.each(func(c *drive.Client) {
		r := drive.Request{TTL: 2 * time.Second, Wait: 30 * time.Second, Replica: 0}
		if c.Number%4 >= 2 {
			r.Key = fmt.Sprintf("frozen-%d-%d", c.Number, round)
		}
		queues[c.Number] = s.queue(c, fmt.Sprint("frozen:", c.Number), r)
	})
	// Each lease is renewed after a third of the TTL. Until then an answer of the
	// store may be on its way, without which the frozen replica would join again.
	pause(s.ctx, time.Second)
	s.must(s.replicas[0].Stop())
	for _, q := range queues {
		if q == nil {
			s.t.FailNow()
		}
		if _, err := s.store.AwaitLeft(s.ctx, q.waiter); err != nil {
			s.t.Fatal(err)
		}
		if q.c.Number%2 == 0 {
			q.pass()
		}
	}
	s.must(s.replicas[0].Continue())
	woke := s.history.Now()
	for _, q := range queues {
		slowest.add(q.told() - woke)
		if q.c.Number%2 == 1 {
			q.pass()
		}
	}
}

// TestF3ClientGone cuts the connections of waiters. Without an Idempotency-Key
// the entry goes at once; with one it keeps its place for a TTL and goes then.
// Neither is ever granted, and the key answers 410 from then on.
func TestF3ClientGone(t *testing.T) {
	rounds := count(1, 16)
	s := newStand(t, 15*time.Minute)
	var slowest longest
	s.each(func(c *drive.Client) {
		through, proxy := s.proxied(c)
		for round := range rounds {
			r := drive.Request{TTL: 2 * time.Second, Wait: 30 * time.Second, Replica: throughProxy}
			if c.Number%2 == 0 {
				r.Key = fmt.Sprintf("gone-%d-%d", c.Number, round)
			}
			q := s.queue(through, fmt.Sprint("gone:", c.Number), r)
			if q == nil {
				return
			}
			cut := c.Now()
			if proxy.CutAll() == 0 {
				t.Errorf("%s: no connection was there to cut", q.lock)
			}
			slowest.add(q.vanish(cut))
			q.pass()
		}
	})
	t.Logf("slowest removal of an entry without a key: %v", &slowest)
	s.enough(clients*rounds, "waiting clients that went away")
	s.judge()
}

// vanish waits until the entry of the client that is gone has left, and checks
// that it did so at the right time. For an entry without a key it returns how
// long that took.
func (q *queued) vanish(cut time.Duration) time.Duration {
	q.s.t.Helper()
	if a := <-q.answer; a.Err == nil {
		q.s.t.Errorf("%s: the client that was cut off got %v", q.lock, a)
	}
	at, err := q.s.store.AwaitLeft(q.s.ctx, q.waiter)
	if err != nil {
		q.s.t.Error(err)
		return 0
	}
	if q.r.Key == "" {
		if at-cut > within(toldWithin) {
			q.s.t.Errorf(
				"%s: the entry without a key left %v after its client, want at most %v", q.lock, at-cut,
				within(toldWithin),
			)
		}
		return at - cut
	}
	if at-cut < q.r.TTL*2/3 { // its lease may have been renewed a third of it before
		q.s.t.Errorf(
			"%s: the entry with a key left %v after its client, before its TTL of %v", q.lock, at-cut,
			q.r.TTL,
		)
	}
	if a := q.c.Post(q.s.ctx, otherReplica, q.r); a.Status != http.StatusGone ||
		a.Problem.Reason != "expired" {
		q.s.t.Errorf("%s: the same POST after the entry expired: %v, want 410 expired", q.lock, a)
	}
	return 0
}
