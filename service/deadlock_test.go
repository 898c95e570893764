package service_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service"
	"github.com/fencepost/fencepost/test/bubble"
)

// as names the holder of a request.
func as(holder string, req service.AcquireRequest) service.AcquireRequest {
	req.Holder, req.Named = holder, true
	return req
}

func semaphore(limit int, req service.AcquireRequest) service.AcquireRequest {
	req.Claims[0].Mode, req.Claims[0].Limit, req.Claims[0].Permits = lock.Semaphore, limit, 1
	return req
}

// wantSet asks for several locks.
func wantSet(wait time.Duration, names ...string) service.AcquireRequest {
	req := service.AcquireRequest{Tenant: "acme", Holder: "worker-1", Set: true, Wait: wait}
	for _, name := range names {
		req.Claims = append(req.Claims, lock.Claim{Name: name, Mode: lock.Exclusive})
	}
	return req
}

func bySet(g *service.Grant) service.TokenRequest {
	return service.TokenRequest{Tenant: g.Entry.Tenant, Set: true, ID: g.Entry.ID, Token: g.Token}
}

// TestCrossingRequests: two requests close a cycle at the same moment on two replicas, neither of
// which has seen the other's. The service rejects the one that the store put last, at whichever
// replica, and the other one continues.
func TestCrossingRequests(t *testing.T) {
	for name, lastAtB := range map[string]bool{"LastAtA": false, "LastAtB": true} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				s, d := newSharedStore(t), &diary{}
				counted := func(c *service.Config) { c.Metrics = d }
				a, b := s.replica(t, counted), s.replica(t, counted)
				g1, g2 := a.hold(as("w1", want("x", 0))), b.hold(as("w2", want("y", 0)))
				a.store.setLag(running, 100*time.Millisecond)
				b.store.setLag(running, 100*time.Millisecond)
				after(time.Second)
				ask1 := func() *pending { return a.line(as("w1", want("y", time.Minute))) }
				ask2 := func() *pending { return b.line(as("w2", want("x", time.Minute))) }
				var p1, p2 *pending
				if lastAtB {
					p1, p2 = ask1(), ask2()
				} else {
					p2, p1 = ask2(), ask1()
				}
				after(200 * time.Millisecond)
				refused, stays, giveUp := p1, p2, g1
				if lastAtB {
					refused, stays, giveUp = p2, p1, g2
				}
				if e := refused.fails(lock.Deadlock); len(e.Cycle) != 2 {
					t.Errorf("a cycle of %d waits, want 2", len(e.Cycle))
				}
				stays.waits()
				for _, r := range []*replica{a, b} {
					if d := r.Deadlocks("acme", 10); len(d) != 1 {
						t.Errorf("a replica knows of %d deadlocks, want 1", len(d))
					}
				}
				a.release(giveUp)
				stays.holdsLater()
				if n := d.count("deadlocked"); n != 1 {
					t.Errorf("%d refused deadlocks are counted, want 1", n)
				}
			})
		})
	}
}

// TestAskedAtOnce: requests that would close a cycle are refused beside each other. The
// race detector sees to it that to look for a cycle changes nothing.
func TestAskedAtOnce(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		a := newSharedStore(t).replica(t)
		a.hold(as("w1", want("x", 0)))
		a.hold(as("w2", want("y", 0)))
		stays := a.line(as("w1", want("y", time.Minute)))
		var all []*pending
		for range 100 {
			all = append(all, a.begin(t.Context(), func(ctx context.Context) (*service.Grant, error) {
				return a.Acquire(ctx, as("w2", want("x", time.Minute)))
			}))
		}
		synctest.Wait()
		for _, refused := range all {
			refused.fails(lock.Deadlock)
		}
		stays.waits()
	})
}

// TestRefusedAtTheEndOfTheHold: a request that is held open for less than its view is late
// learns that it closed a cycle, and is not told that it waits.
func TestRefusedAtTheEndOfTheHold(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		a, b := s.replica(t), s.replica(t, func(c *service.Config) { c.MaxHold = 50 * time.Millisecond })
		a.hold(as("w1", want("x", 0)))
		b.hold(as("w2", want("y", 0)))
		after(time.Second)
		b.store.setLag(running, 100*time.Millisecond)
		stays := a.line(as("w1", want("y", time.Minute)))
		refused := b.start(as("w2", want("x", time.Minute)))
		after(200 * time.Millisecond)
		refused.fails(lock.Deadlock)
		stays.waits()
	})
}

// TestCycleIsSeenAfterAReset: an entry that joined while the feed was down is
// checked when it is back.
func TestCycleIsSeenAfterAReset(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		a, b := s.replica(t), s.replica(t)
		a.hold(as("w1", want("x", 0)))
		b.hold(as("w2", want("y", 0)))
		b.store.setFeed(lost)
		stays := a.line(as("w1", want("y", time.Minute)))
		refused := b.line(as("w2", want("x", time.Minute)))
		b.store.setFeed(running)
		refused.fails(lock.Deadlock)
		stays.waits()
	})
}

// TestRenewalTellsARefusal: a renewal removes an entry that cannot stay in its queue, if its
// request ended before the view showed that.
func TestRenewalTellsARefusal(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s, d := newSharedStore(t), &diary{}
		brief := func(c *service.Config) { c.MaxHold, c.Metrics = 50*time.Millisecond, d }
		a, b := s.replica(t), s.replica(t, brief)
		a.hold(as("w1", want("x", 0)))
		b.hold(as("w2", want("y", 0)))
		b.store.setLag(running, 400*time.Millisecond)
		after(time.Second)
		stays := a.line(as("w1", want("y", time.Minute)))
		unattended := b.start(as("w2", want("x", time.Minute))).stillWaits()
		after(500 * time.Millisecond)
		_, err := b.Renew(t.Context(), by(unattended))
		if e := coded(t, err, lock.Deadlock); len(e.Cycle) != 2 {
			t.Errorf("a cycle of %d waits, want 2", len(e.Cycle))
		}
		after(200 * time.Millisecond)
		if v, err := a.Lock(
			t.Context(), lock.Ref{Tenant: "acme", Name: "x"}, true, nil,
		); err != nil || v.Waiting != 0 {
			t.Errorf("it is still in the queue: %+v, %v", v, err)
		}
		stays.waits()
		if n := d.count("deadlocked"); n != 1 {
			t.Errorf("%d refused deadlocks are counted, want 1", n)
		}
	})
}

// TestManyDeadlocks: one tenant's do not displace another's, and of a long cycle
// the beginning is kept.
func TestManyDeadlocks(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		r := s.replica(t)
		quiet := as("w", want("x", time.Minute))
		quiet.Tenant = "quiet"
		r.hold(quiet)
		r.start(quiet).fails(lock.Deadlock)
		const ring = 40
		name := func(i int) string { return "lock" + strconv.Itoa(i%ring) }
		for i := range ring {
			r.hold(as("w"+strconv.Itoa(i), lasting(want(name(i), 0))))
		}
		for i := range ring - 1 {
			r.line(as("w"+strconv.Itoa(i), lasting(want(name(i+1), time.Minute))))
		}
		for range 120 {
			closing := r.start(as("w"+strconv.Itoa(ring-1), lasting(want(name(0), time.Minute))))
			if e := closing.fails(lock.Deadlock); len(e.Cycle) != ring {
				t.Fatalf("a cycle of %d waits, want %d", len(e.Cycle), ring)
			}
		}
		if d := r.Deadlocks("quiet", 10); len(d) != 1 {
			t.Errorf("%d deadlocks of the quiet tenant are kept, want 1", len(d))
		}
		d := r.Deadlocks("", 1000)
		if len(d) != 100 || d[0].Waits != ring || len(d[0].Cycle) != 32 {
			t.Errorf(
				"%d deadlocks are kept, the last with %d of %d waits", len(d), len(d[0].Cycle), d[0].Waits,
			)
		}
	})
}

// TestRefusedCycleIsNotWritten: a cycle that can be seen costs the store a read.
func TestRefusedCycleIsNotWritten(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		r := s.replica(t)
		r.hold(as("w1", want("x", 0)))
		before := r.store.count(enqueue)
		r.start(as("w1", want("x", time.Minute))).fails(lock.Deadlock)
		if n := r.store.count(enqueue) - before; n != 0 {
			t.Errorf("%d writes", n)
		}
	})
}

// TestWaitForNothingIsNoCycle: requests that need not wait, or do not name their
// holder, are not refused.
func TestWaitForNothingIsNoCycle(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		r := s.replica(t)
		r.hold(as("w1", want("x", time.Minute)))
		r.hold(as("w1", want("y", time.Minute)))
		r.start(as("w1", want("x", 0))).fails(lock.Held)
		r.line(want("x", time.Minute))
	})
}

// TestModesThatMeet: two requests of modes that disagree take a free lock at the
// same moment on two replicas.
func TestModesThatMeet(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		a, b := s.replica(t), s.replica(t)
		a.store.setLag(running, 100*time.Millisecond)
		b.store.setLag(running, 100*time.Millisecond)
		first, second := a.start(want("x", time.Minute)), b.start(
			semaphore(2, keyed("x", time.Minute, "k")),
		)
		third := a.start(want("x", time.Minute))
		after(200 * time.Millisecond)
		g := first.holds()
		second.fails(lock.ModeMismatch)
		third.waits()
		a.release(g)
		after(200 * time.Millisecond)
		a.release(third.holds())
		after(200 * time.Millisecond)
		b.start(semaphore(2, keyed("x", time.Minute, "k"))).holdsLater() // the key is not used up
	})
}

// TestSetAtAReplicaThatNeverSawIt: the view is waited for; a replica without a
// feed cannot know the set, and says so instead of calling it lost.
func TestSetAtAReplicaThatNeverSawIt(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		a, late, cut := s.replica(t), s.replica(t), s.replica(t)
		late.store.setLag(running, 600*time.Millisecond)
		cut.store.setFeed(lost)
		g := a.hold(wantSet(0, "b", "a"))
		if e, err := late.Entry(t.Context(), bySet(g), 0); err != nil || e.Entry.ID != g.Entry.ID {
			t.Errorf("a late replica says %+v, %v", e, err)
		}
		_, err := cut.Renew(t.Context(), bySet(g))
		coded(t, err, lock.StoreUnavailable)
		if err := a.Release(t.Context(), bySet(g)); err != nil {
			t.Fatal(err)
		}
		_, err = late.Renew(t.Context(), bySet(g))
		lostFor(t, err, lock.Released)
	})
}

// TestSetFromALostFuture: its token shows that the store lost its past.
func TestSetFromALostFuture(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		r := s.replica(t)
		g := r.hold(wantSet(0, "a", "b"))
		s.restoreBackup(50)
		fresh := s.replica(t)
		_, err := fresh.Renew(t.Context(), bySet(g))
		lostFor(t, err, lock.Unknown)
		if _, err := fresh.Acquire(t.Context(), want("c", 0)); !errors.Is(err, lock.StoreUnavailable) {
			t.Errorf("Acquire in a store that lost its past: %v", err)
		}
	})
}

// TestOrdersAreLearnt: by every replica, also by one that only follows.
func TestOrdersAreLearnt(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		a, b := s.replica(t), s.replica(t)
		for _, habit := range [][]string{
			{"w1", "orders:1", "stock:1"}, {"w2", "stock:2", "orders:2"}, {"w3", "orders:3", "stock:3"},
		} {
			first := a.hold(as(habit[0], want(habit[1], 0)))
			second := a.hold(as(habit[0], want(habit[2], 0)))
			a.release(second)
			a.release(first)
		}
		for _, r := range []*replica{a, b} {
			if o := r.LockOrder("", 10); len(o.Contradictions) != 1 || o.Total != 2 || o.Dropped != 0 {
				t.Errorf("%+v, want one contradiction of two orders", o)
			}
			if o := r.LockOrder("other", 10); len(o.Contradictions)+len(o.Orders) != 0 {
				t.Errorf("another tenant is shown %+v", o)
			}
		}
	})
}

// TestContradictionsOfOneTenant: its lines do not flood the log, and do not keep
// another tenant's out of it. All are counted.
func TestContradictionsOfOneTenant(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s, j := newSharedStore(t), &journal{}
		r := s.replicaWithLog(t, j)
		contradict := func(tenant string, i int) {
			for _, habit := range [][]string{{"w1", "a", "b"}, {"w2", "b", "a"}} {
				var held []*service.Grant
				for _, name := range habit[1:] {
					req := as(habit[0], want(fmt.Sprint(name, i), 0))
					req.Tenant = tenant
					held = append(held, r.hold(req))
				}
				for _, g := range held {
					r.release(g)
				}
			}
		}
		for i := range 100 {
			contradict("loud", i)
		}
		contradict("quiet", 0)
		after(10 * time.Second)
		contradict("loud", 100)
		after(time.Second)
		if lines := j.with("tenant=loud"); len(lines) != 2 ||
			!strings.HasSuffix(lines[1], " silenced=99") {
			t.Errorf("told %q, want two lines, the second with 99 others", lines)
		}
		if lines := j.with("tenant=quiet"); len(lines) != 1 {
			t.Errorf("told %q, want one line", lines)
		}
		if n := r.Totals().Contradicted; n != 102 {
			t.Errorf("%d counted, want 102", n)
		}
		if o := r.LockOrder("loud", 1000); len(o.Contradictions) != 101 {
			t.Errorf("%d are shown, want 101", len(o.Contradictions))
		}
	})
}

// TestHolderOfAnotherSubjectIsAnotherHolder: a token that is limited to some names cannot close a
// cycle of waits by the name of a worker that uses others.
func TestHolderOfAnotherSubjectIsAnotherHolder(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		a, b := s.replica(t), s.replica(t)
		by := func(subject string, req service.AcquireRequest) service.AcquireRequest {
			req.Subject = subject
			return req
		}
		a.hold(lasting(by("pay", as("w1", want("pay:1", 0)))))
		a.hold(lasting(by("pay", as("w2", want("pay:2", 0)))))
		a.hold(lasting(by("scratch", as("w2", want("scratch:1", 0)))))
		first := a.line(lasting(by("pay", as("w1", want("scratch:1", time.Minute)))))
		after(time.Second)
		second := b.line(lasting(by("pay", as("w2", want("pay:1", time.Minute)))))
		after(time.Second)
		first.waits()
		second.waits()
		// w1 and w2 of one subject
		_, err := b.Acquire(t.Context(), by("pay", as("w1", want("pay:2", time.Minute))))
		if !errors.Is(err, lock.Deadlock) {
			t.Errorf("the cycle of one subject's workers is %v", err)
		}
	})
}
