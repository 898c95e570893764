package service_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service"
	"github.com/fencepost/fencepost/test/bubble"
)

// shortLeases returns leases so short that the store's deadline is a large part of each.
func shortLeases() []time.Duration {
	return []time.Duration{minTTL, 3 * time.Second, 4 * time.Second, 6 * time.Second}
}

// toldInTime requires that a waiter gets its answer while enough of the lease is left to resume.
func (p *pending) toldInTime(lease time.Duration) {
	p.t.Helper()
	<-p.done
	if p.grant == nil || p.err == nil {
		p.t.Fatalf("told %+v, %v", p.grant, p.err)
	}
	if left := p.grant.ExpiresAt.Sub(p.at); left < min(lease/6, 700*time.Millisecond) {
		p.t.Errorf("with a lease of %v it is told when %v are left", lease, left)
	}
}

// TestToldBeforeTheLeaseIsOver: however renewals fail, and whatever else is asked of the store
// meanwhile.
func TestToldBeforeTheLeaseIsOver(t *testing.T) {
	for name, fails := range map[string]func(*sharedStore, *replica){
		"as the feed does": func(_ *sharedStore, r *replica) { r.store.setFeed(lost) },
		"while the feed tells of the past": func(s *sharedStore, r *replica) {
			r.store.setFeed(lost)
			after(time.Millisecond)
			s.occupy(r.t, "orders:2")
			r.store.setFeed(retelling)
		},
		"alone": func(*sharedStore, *replica) {},
	} {
		t.Run(name, func(t *testing.T) {
			for i := range 100 { // few renewals are in flight just before the answer is due
				for _, lease := range shortLeases() {
					bubble.Test(t, func(t *testing.T) {
						s := newSharedStore(t)
						r := s.replica(t)
						p := r.short(lease)
						fails(s, r)
						r.store.on(broken, refresh, queue)
						after(lease * 2 / 3 * time.Duration(i) / 100)
						r.store.on(silent, refresh, queue)
						p.toldInTime(lease)
					})
				}
			}
		})
	}
}

// short waits with a lease, behind a holder that stays.
func (r *replica) short(lease time.Duration) *pending {
	r.t.Helper()
	r.hold(lasting(want("orders:1", 0)))
	req := want("orders:1", time.Hour)
	req.TTL = lease
	return r.line(req)
}

// TestToldInTimeOfAGrant: if a renewal is unanswered at the grant, the answer does not wait for
// it until the lease is over.
func TestToldInTimeOfAGrant(t *testing.T) {
	for _, lease := range shortLeases() {
		bubble.Test(t, func(t *testing.T) {
			r := newSharedStore(t).replica(t)
			holder := r.hold(lasting(want("orders:1", 0)))
			req := want("orders:1", time.Hour)
			req.TTL = lease
			p := r.line(req)
			after(lease / 3 * 3 / 4)
			r.store.on(silent, refresh)
			r.release(holder)
			p.toldInTime(lease)
		})
	}
}

// TestToldInTimeOfADrain: nor is one that is to give time to go on elsewhere.
func TestToldInTimeOfADrain(t *testing.T) {
	for _, lease := range shortLeases() {
		bubble.Test(t, func(t *testing.T) {
			r := newSharedStore(t).replica(t)
			p := r.short(lease)
			after(lease / 3 * 3 / 4)
			r.store.on(silent, allMethods...)
			r.Drain()
			p.toldInTime(lease)
		})
	}
}

// TestDrainDuringARenewal: a waiter gets its answer soon even if a renewal is unanswered, and the
// replica does not renew the entry any more.
func TestDrainDuringARenewal(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		r := s.replica(t)
		p := r.short(ttl)
		r.store.on(silent, allMethods...)
		for r.store.count(refresh) == 0 {
			after(10 * time.Millisecond)
		}
		began := time.Now()
		r.Drain()
		p.fails(lock.Draining)
		if d := p.at.Sub(began); d > 5*time.Second {
			t.Errorf("told after %v", d)
		}
		asked := r.store.count(refresh)
		r.store.on(nil, allMethods...)
		after(ttl)
		if n := r.store.count(refresh); n != asked || len(s.ids()) != 1 {
			t.Errorf("renewed %d times after that, %d entries", n-asked, len(s.ids()))
		}
	})
}

// TestClientGoesDuringARenewal: its entry is taken back though the renewal is not answered, and may
// yet happen.
func TestClientGoesDuringARenewal(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		r := s.replica(t)
		p := r.short(ttl)
		r.store.on(func(ctx context.Context, do func() error) error {
			pause(ctx, callLimit)
			_ = do()
			return unavailable(true)
		}, refresh)
		for r.store.count(refresh) == 0 {
			after(10 * time.Millisecond)
		}
		p.cancel()
		if !p.answered() || len(s.ids()) != 1 {
			t.Errorf("%d entries are left", len(s.ids()))
		}
	})
}

// TestStoodStillDuringARenewal: a process that was paused until the answer was due renews the
// lease again, and does not report a lost store.
func TestStoodStillDuringARenewal(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		r := newSharedStore(t).replica(t)
		p := r.short(ttl)
		r.store.on(first(1, func(context.Context, func() error) error {
			pause(context.Background(), ttl*5/12)
			return unavailable(true)
		}), refresh)
		after(ttl * 5 / 4)
		p.waits()
	})
}

// TestWaitedByAWrongClock: how long it waited is never less than nothing, whatever the clock showed
// of who wrote it.
func TestWaitedByAWrongClock(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		a, b := s.replica(t, ahead(time.Hour)), s.replica(t)
		holder := a.hold(want("orders:1", 0))
		a.line(keyed("orders:1", time.Minute, "k"))
		p := b.line(keyed("orders:1", time.Minute, "k"))
		b.store.setFeed(lost)
		after(time.Second)
		a.release(holder)
		if g := p.holdsLater(); g.Waited < 0 {
			t.Errorf("it waited for %v", g.Waited)
		}
	})
}

// TestAsyncWithoutTrustOrTime: nor is it renewed all the time when its wait is over.
func TestAsyncWithoutTrustOrTime(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		r := s.replica(t)
		r.holdsWithoutTrust(time.Minute)
		after(2 * time.Minute)
		before := r.store.count(refresh)
		after(10 * time.Minute)
		if n := r.store.count(refresh) - before; n > 100 || len(s.ids()) != 1 {
			t.Errorf("renewed %d times in 10 minutes, %d entries", n, len(s.ids()))
		}
	})
}

// TestFailingStoreIsAskedNowAndThen: waiters do not ask a store that fails at once in a tight
// loop, not even shortly before their answer is due.
func TestFailingStoreIsAskedNowAndThen(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		r := newSharedStore(t).replica(t)
		p := r.short(ttl)
		r.store.on(broken, refresh)
		p.fails(lock.StoreUnavailable)
		// From a third of the lease on, or a quarter of that sooner, until two thirds, and again.
		if n := r.store.count(refresh); n > int(ttl*5/12/(300*time.Millisecond))+2 {
			t.Errorf("asked %d times", n)
		}
	})
}

// TestFullLeaseAtTheEndOfTheHold: if the store shows the grant at the end of the long poll, the
// grant has a full lease.
func TestFullLeaseAtTheEndOfTheHold(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		a, b := s.replica(t), s.replica(t, func(c *service.Config) { c.MaxHold = 5 * time.Second })
		holder := a.hold(lasting(want("orders:1", 0)))
		p := b.line(want("orders:1", time.Hour))
		b.store.setFeed(frozen)
		after(time.Second)
		a.release(holder)
		if g := p.holdsLater(); g.ExpiresAt.Sub(p.at) < ttl-time.Second {
			t.Errorf("it holds for %v", g.ExpiresAt.Sub(p.at))
		}
	})
}

// TestRefusedGivesWayAtLast: a rejected entry does not block others until its lease ends,
// although the store did not answer at first.
func TestRefusedGivesWayAtLast(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		a, b := s.replica(t), s.replica(t)
		x := a.hold(lasting(as("w1", want("x", 0))))
		b.hold(lasting(as("w2", want("y", 0))))
		b.store.setLag(running, 100*time.Millisecond)
		a.line(as("w1", want("y", time.Hour)))
		b.store.on(first(1, broken), remove)
		refused := b.start(lasting(as("w2", want("x", time.Hour))))
		refused.fails(lock.Deadlock)
		after(5 * time.Second)
		next := a.line(as("w3", want("x", time.Hour)))
		a.release(x)
		next.holds()
	})
}

// TestAskedForLess: a request by token is held open for as long as it asks for.
func TestAskedForLess(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		r := newSharedStore(t).replica(t, func(c *service.Config) { c.MaxHold = 10 * time.Second })
		g := r.short(ttl).stillWaits()
		began := time.Now()
		r.resume(g, 3*time.Second).stillWaits()
		took(t, began, 3*time.Second)
	})
}

// TestWaitEndsForBoth: two requests with one key have each renewed the lease. When the wait is
// over one of them removes the entry, and both report the timeout.
func TestWaitEndsForBoth(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		a, b := s.replica(t), s.replica(t)
		a.hold(lasting(want("orders:1", 0)))
		first := a.line(keyed("orders:1", 10*time.Second, "k"))
		second := b.line(keyed("orders:1", 10*time.Second, "k"))
		// else it may see what the other does before its own wait is over
		b.store.setLag(running, 100*time.Millisecond)
		b.store.on(slow(50*time.Millisecond), remove)
		first.fails(lock.TimedOut)
		second.fails(lock.TimedOut)
	})
}

// buggyRenewals panic.
type buggyRenewals struct{ *instantStore }

func (buggyRenewals) Renew(context.Context, *lock.Entry) error { panic("a bug") }

// TestRenewalPanicsInItsRequest: a renewal runs on another goroutine, where a panic would end the
// server. The handlers recover from one of the request.
func TestRenewalPanicsInItsRequest(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		at := &instantStore{following: make(chan struct{})}
		s := service.New(service.Config{Store: buggyRenewals{at}, TokenKey: tokenKey(), MinTTL: minTTL})
		defer s.Close()
		<-at.following
		if _, err := s.Acquire(t.Context(), want("orders:1", 0)); err != nil {
			t.Fatal(err)
		}
		defer func() {
			if p := recover(); p == nil || !strings.Contains(p.(string), "a bug") {
				t.Errorf("the request panics with %v, want the bug", p)
			}
		}()
		_, err := s.Acquire(t.Context(), want("orders:1", time.Hour))
		t.Errorf("the request has an answer: %v", err)
	})
}
