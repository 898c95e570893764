package faults_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencepost/fencepost/test/faults/drive"
	"github.com/fencepost/fencepost/test/faults/history"
	"github.com/fencepost/fencepost/test/rig"
)

// TestF6RenewAgainstRelease renews without pause, at both replicas and over slow
// connections, while the lock is released: no renewal that was sent after the
// release was answered gets 200 (etcd #14758).
func TestF6RenewAgainstRelease(t *testing.T) {
	rounds := count(10, 25) // by 16 clients: 160 or 400
	s := newStand(t, 15*time.Minute)
	var raced, after atomic.Int64
	least := int64(clients * rounds)
	ctx, stop := s.until(0, func() bool { return raced.Load() >= least && after.Load() >= least })
	defer stop()
	s.each(func(c *drive.Client) {
		through, proxy := s.proxied(c)
		for round := 0; round < rounds || ctx.Err() == nil; round++ {
			raced.Add(int64(s.raceRelease(through, proxy, &after)))
		}
	})
	t.Logf(
		"%d renewals were under way during a release, %d were sent after it", raced.Load(), after.Load(),
	)
	if raced.Load() < least || after.Load() < least {
		t.Errorf("want at least %d of each for the run to count", least)
	}
	s.enough(clients*rounds, "releases under renewals")
	s.judge()
}

// raceRelease returns how many renewals were under way while the release was.
func (s *stand) raceRelease(c *drive.Client, proxy *rig.Proxy, after *atomic.Int64) (raced int) {
	s.t.Helper()
	lock := fmt.Sprint("renewed:", c.Number)
	h, outcome := c.Acquire(
		s.ctx, drive.Request{Lock: lock, TTL: 10 * time.Second, Replica: sameReplica},
	)
	if h == nil {
		s.t.Errorf("%s: acquire is %s", lock, outcome)
		return 0
	}
	proxy.Delay(rig.ToServer, rand.N(8*time.Millisecond))
	proxy.Delay(rig.ToClient, rand.N(8*time.Millisecond))
	var answers [3][]drive.Answer
	var renewers sync.WaitGroup
	for replica := range answers {
		renewers.Go(func() { answers[replica] = s.renewUntilLost(c, replica, h) })
	}
	pause(s.ctx, 2*time.Millisecond+rand.N(10*time.Millisecond))
	released := c.Delete(s.ctx, []int{sameReplica, otherReplica}[rand.IntN(2)], h)
	c.Record(history.Release, h, released)
	if released.Status != http.StatusNoContent {
		s.t.Errorf("%s: release: %v", lock, released)
	}
	renewers.Wait()
	for _, list := range answers {
		for _, a := range list {
			switch {
			case a.Call >= released.Return:
				after.Add(1)
				if a.Status == http.StatusOK {
					s.t.Errorf("%s: renewal sent after the release was answered: %v", lock, a)
				}
			case a.Return >= released.Call:
				raced++
			}
		}
	}
	return raced
}

// renewUntilLost renews through one of the client's ways until told twice that
// the entry is gone: the second time is surely after the release.
func (s *stand) renewUntilLost(
	c *drive.Client,
	replica int,
	h *drive.Hold,
) (answers []drive.Answer) {
	for refusals := 0; refusals < 2 && len(answers) < 1000 && s.ctx.Err() == nil; {
		a := c.Put(s.ctx, replica, h)
		c.Record(history.Renew, h, a)
		answers = append(answers, a)
		if a.Status == http.StatusGone {
			refusals++
		}
	}
	return answers
}

// TestF6RenewAgainstExpiry sends renewals around the moment at which leases end,
// and after the end was seen in the store. A renewal that is answered 200 buys a
// whole TTL; one that was sent after the removal never is.
func TestF6RenewAgainstExpiry(t *testing.T) {
	rounds := count(1, 13) // by 16 clients: 16 or 208
	s := newStand(t, 15*time.Minute)
	aim := &aim{extra: 500 * time.Millisecond}
	var saved, lost atomic.Int64
	least := int64(count(0, 10))
	ctx, stop := s.until(0, func() bool { return saved.Load() >= least && lost.Load() >= least })
	defer stop()
	s.each(func(c *drive.Client) {
		for round := 0; round < rounds || ctx.Err() == nil; round++ {
			if s.raceExpiry(c, aim) {
				saved.Add(1)
			} else {
				lost.Add(1)
			}
		}
	})
	t.Logf(
		"of the renewals around the expiry %d came in time, %d too late; a lease lasts its TTL and %v",
		saved.Load(), lost.Load(), aim,
	)
	if saved.Load() < least || lost.Load() < least {
		t.Errorf("want at least %d of each for the run to count", least)
	}
	s.enough(clients*rounds, "leases that ended")
	s.judge()
}

// aim learns for how long leases last beyond their TTL, to send renewals at the
// moment at which they end.
type aim struct {
	mu    sync.Mutex
	extra time.Duration
}

func (a *aim) String() string { return a.get().Round(10 * time.Millisecond).String() }

func (a *aim) get() time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.extra
}

func (a *aim) learn(extra time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.extra += (extra - a.extra) / 4
}

// raceExpiry reports whether the renewal around the expiry came in time.
func (s *stand) raceExpiry(c *drive.Client, aim *aim) (saved bool) {
	s.t.Helper()
	r := drive.Request{
		Lock: fmt.Sprint("expiring:", c.Number), TTL: 2 * time.Second, Replica: c.Number,
	}
	acquire := s.reuse
	switch c.Number % 8 {
	case 0:
		r.TTL = 6 * time.Second
	case 1:
		r.TTL, acquire = 6*time.Second, s.inherit
	}
	h, outcome := acquire(c, r)
	if h == nil {
		s.t.Errorf("%s: acquire is %s", r.Lock, outcome)
		return false
	}
	began := c.Now()
	pause(s.ctx, r.TTL+aim.get()+rand.N(600*time.Millisecond)-300*time.Millisecond)
	saved = c.Renew(s.ctx, c.Number, h) == history.OK
	seen, err := s.store.AwaitLeft(s.ctx, h.ID)
	if err != nil {
		s.t.Error(err)
		return saved
	}
	if saved {
		aim.learn(aim.get() + 50*time.Millisecond)
	} else {
		aim.learn(seen - began - r.TTL)
	}
	for replica := range 2 {
		a := c.Put(s.ctx, replica, h)
		c.Record(history.Renew, h, a)
		if a.Status != http.StatusGone || a.Problem.Reason != "expired" {
			s.t.Errorf("%s: renewal after the expiry was seen: %v, want 410 expired", r.Lock, a)
		}
	}
	return saved
}

// reuse acquires with a lease that was used before, some time ago.
func (s *stand) reuse(c *drive.Client, r drive.Request) (*drive.Hold, history.Outcome) {
	h, outcome := c.Acquire(s.ctx, r)
	if h == nil {
		return h, outcome
	}
	c.Release(s.ctx, c.Number, 1, h)
	pause(s.ctx, rand.N(r.TTL*3/8))
	return c.Acquire(s.ctx, r)
}

// inherit acquires after waiting for a holder, and checks that the lease was restarted for the
// grant.
func (s *stand) inherit(c *drive.Client, r drive.Request) (*drive.Hold, history.Outcome) {
	s.t.Helper()
	first, outcome := c.Acquire(s.ctx, drive.Request{Lock: r.Lock, TTL: 10 * time.Second})
	if first == nil {
		return first, outcome
	}
	waiter := c.With(c.URLs...)
	defer waiter.Close()
	done := make(chan struct{})
	var next *drive.Hold
	go func() {
		defer close(done)
		r.Wait = 20 * time.Second
		next, outcome = waiter.Acquire(s.ctx, r)
	}()
	_, err := s.store.AwaitBehind(s.ctx, r.Lock, first.ID)
	s.must(err)
	pause(s.ctx, r.TTL*3/10+rand.N(time.Second)) // around the time of the next renewal
	released := c.Now()
	c.Release(s.ctx, c.Number, 1, first)
	<-done
	// It was not granted before the release was sent.
	if next != nil && next.Until < released+r.TTL-500*time.Millisecond {
		s.t.Errorf(
			"%s: the lease of a waited grant ends %v after the release, want its TTL of %v", r.Lock,
			next.Until-released, r.TTL,
		)
	}
	return next, outcome
}
