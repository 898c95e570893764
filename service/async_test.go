package service_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service"
	"github.com/fencepost/fencepost/service/replicas"
	"github.com/fencepost/fencepost/test/bubble"
)

// async is a request whose place the replicas keep.
func async(req service.AcquireRequest) service.AcquireRequest {
	req.Async = true
	return req
}

// state asks how the entry of a grant stands.
func (r *replica) state(g *service.Grant) (*service.Grant, error) {
	return r.Entry(r.t.Context(), by(g), 0)
}

// waitsAt fails unless the entry waits at the position.
func (r *replica) waitsAt(g *service.Grant, position int) {
	r.t.Helper()
	if now, err := r.state(g); err != nil || now.Held || now.Position != position {
		r.t.Fatalf("the entry is %+v, %v, want position %d", now, err, position)
	}
}

// isHeld returns how the entry stands, which must hold.
func (r *replica) isHeld(g *service.Grant) *service.Grant {
	r.t.Helper()
	now, err := r.state(g)
	if err != nil || !now.Held {
		r.t.Fatalf("the entry is %+v, %v, want it held", now, err)
	}
	return now
}

// has fails unless the entry has ended for the reason.
func (r *replica) has(g *service.Grant, why lock.Reason) {
	r.t.Helper()
	_, err := r.state(g)
	lostFor(r.t, err, why)
}

// post asks for a lock by a request that is answered at once.
func (r *replica) post(req service.AcquireRequest) *service.Grant {
	r.t.Helper()
	p := r.start(async(req))
	if !p.answered() || p.err != nil {
		r.t.Fatalf("not answered at once: %+v, %v", p.grant, p.err)
	}
	return p.grant
}

// alive renews the lease of a grant until the test ends.
func (r *replica) alive(g *service.Grant) (stop func()) {
	ctx, cancel := context.WithCancel(r.t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			pause(ctx, g.Entry.TTL/3)
			_, _ = r.Renew(ctx, by(g))
		}
	}()
	stop = func() { cancel(); <-done }
	r.t.Cleanup(stop)
	return stop
}

// TestAsync: an async request gets its answer at once, its entry keeps its position for hours,
// and its lease is full at the grant. From then on only its client can renew it.
func TestAsync(t *testing.T) {
	// When the keeper renewed it last is left to chance. It is hardly just before each of these.
	for _, later := range []time.Duration{0, time.Second, 2 * time.Second} {
		bubble.Test(t, func(t *testing.T) { isGranted(t, 23*time.Hour+later) })
	}
}

// isGranted has an async entry wait that long until it is granted.
func isGranted(t *testing.T, wait time.Duration) {
	s := newSharedStore(t)
	r := s.replica(t)
	holder := r.hold(want("orders:1", 0))
	stop := r.alive(holder)
	first, second := r.post(want("orders:1", 24*time.Hour)), r.post(want("orders:1", 24*time.Hour))
	if first.Position != 1 || second.Position != 2 || first.Token == "" {
		t.Fatalf("answered %+v and %+v", first, second)
	}
	after(wait)
	r.waitsAt(first, 1)
	r.waitsAt(second, 2)
	stop()
	r.release(holder)
	granted := time.Now()
	// A lease that the keeper has just renewed does not begin again (ADR 4).
	fresh := 250 * time.Millisecond
	if g := r.isHeld(first); g.ExpiresAt.After(granted.Add(ttl)) ||
		g.ExpiresAt.Before(granted.Add(ttl-fresh)) || g.Entry.Number != first.Entry.Number {
		t.Errorf("held until %v, want a full lease until %v", g.ExpiresAt, granted.Add(ttl))
	}
	after(ttl - time.Second)
	r.isHeld(first)
	after(time.Second)
	r.has(first, lock.Expired) // no client renewed it
	r.isHeld(second)
	stop = r.alive(second)
	after(time.Hour)
	r.isHeld(second)
	stop()
}

// TestAsyncAtOnce: a lock that is free is held, and the keeper leaves the lease alone.
func TestAsyncAtOnce(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		r := s.replica(t)
		g := r.post(want("orders:1", time.Hour))
		if !g.Held || !g.ExpiresAt.Equal(time.Now().Add(ttl)) {
			t.Fatalf("answered %+v", g)
		}
		after(ttl)
		r.has(g, lock.Expired)
	})
}

// TestAsyncEnds: a wait that is over, and one that closes a cycle or asks for another
// mode, end with a reason that can be asked for.
func TestAsyncEnds(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		a, b := s.replica(t), s.replica(t, keepsNothing)
		x, y := a.hold(lasting(named("x", "one", 0))), a.hold(lasting(named("y", "two", 0)))
		began := time.Now()
		late := a.post(want("x", time.Minute))
		first := a.post(named("y", "one", time.Hour))
		a.start(async(named("x", "two", time.Hour))).fails(lock.Deadlock)
		// This replica does not see in time that the wait closes a cycle.
		b.store.setLag(running, time.Second)
		a.release(first)
		first = a.post(named("y", "one", time.Hour))
		a.store.on(slow(2*time.Second), remove)
		second := b.start(async(named("x", "two", time.Hour))).stillWaits()
		a.store.on(nil, remove)
		after(5 * time.Second)
		a.has(second, lock.Deadlocked)
		b.has(second, lock.Deadlocked)
		if st, err := b.state(first); err != nil || st.Held {
			t.Errorf("who came first is %+v, %v", st, err)
		}
		after(time.Until(began.Add(time.Minute)))
		a.has(late, lock.WaitTimeout)
		if n := len(s.Entries()); n != 3 {
			t.Errorf("%d entries are left", n)
		}
		a.release(x)
		a.release(y)
	})
}

// named asks for a lock for a holder with a name.
func named(name, holder string, wait time.Duration) service.AcquireRequest {
	req := want(name, wait)
	req.Holder, req.Named = holder, true
	return req
}

// TestAsyncOfAnotherMode: two ask for a free lock in different modes at once.
func TestAsyncOfAnotherMode(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		a, b := s.replica(t), s.replica(t, keepsNothing)
		other := semaphore(3, want("orders:1", time.Hour))
		held := a.hold(lasting(want("orders:1", 0)))
		b.start(async(other)).fails(lock.ModeMismatch)
		a.release(held)
		// This replica does not see in time as what the lock is in use.
		b.store.setLag(running, time.Second)
		a.store.on(slow(2*time.Second), remove)
		held = a.hold(lasting(want("orders:1", 0)))
		refused := b.start(async(other)).stillWaits()
		after(5 * time.Second)
		b.isHeld(held)
		b.has(refused, lock.Mismatched)
	})
}

// TestAsyncKey: a request that is repeated is answered at once with the same entry, and
// must be async again.
func TestAsyncKey(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		a, b := s.replica(t), s.replica(t)
		holder := a.hold(lasting(want("orders:1", 0)))
		g := a.post(keyed("orders:1", time.Hour, "k"))
		after(10 * time.Minute)
		same(t, g, b.post(keyed("orders:1", time.Hour, "k")))
		b.start(keyed("orders:1", time.Hour, "k")).fails(lock.IdempotencyMismatch)
		a.release(holder)
		if again := b.post(
			keyed("orders:1", time.Hour, "k"),
		); !again.Held || again.Entry.Number != g.Entry.Number {
			t.Errorf("held, it is answered with %+v", again)
		}
		a.release(g)
		a.start(async(keyed("orders:1", time.Hour, "k"))).ends(lock.Released)
	})
}

// TestAsyncOfAGoneClient: an entry that its client was not told of, and cannot ask for, is
// taken back; with a key, or with a callback, which may be under way, it stays.
func TestAsyncOfAGoneClient(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		r := s.replica(t)
		r.hold(lasting(want("orders:1", 0)))
		r.store.on(late(time.Second), enqueue)
		called := want("orders:1", time.Hour)
		called.Callback = &lock.Callback{URL: "https://example.org/", Secret: "current"}
		for _, c := range []struct {
			req  service.AcquireRequest
			left int
		}{{want("orders:1", time.Hour), 1}, {keyed("orders:1", time.Hour, "k"), 2}, {called, 3}} {
			p := r.start(async(c.req))
			p.cancel()
			after(2 * time.Second)
			if n := len(s.Entries()); n != c.left {
				t.Errorf("%d entries are there, want %d", n, c.left)
			}
		}
	})
}

// TestAsyncBounds refuses what cannot be kept.
func TestAsyncBounds(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		r := newSharedStore(t).replica(t)
		short := want("orders:1", time.Hour)
		short.TTL = service.MinAsyncTTL - time.Millisecond
		if e := r.start(async(short)).fails(lock.InvalidRequest); e.Field != "ttl_seconds" {
			t.Errorf("a short lease: %v", &e)
		}
		if e := r.start(async(want("orders:1", 0))).fails(
			lock.InvalidRequest,
		); e.Field != "wait_seconds" {
			t.Errorf("no wait: %v", &e)
		}
	})
}

// TestAsyncStoreAway: places survive a store that cannot be asked for less than the lease
// that is left, and a feed that is interrupted.
func TestAsyncStoreAway(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		r := s.replica(t)
		holder := r.hold(lasting(want("orders:1", 0)))
		g := r.post(want("orders:1", time.Hour))
		for range 20 {
			after(11 * time.Second)
			r.store.on(silent, allMethods...)
			r.store.setFeed(lost)
			after(15 * time.Second)
			r.store.on(nil, allMethods...)
			r.store.setFeed(running)
			after(20 * time.Second)
		}
		r.waitsAt(g, 1)
		r.release(holder)
		r.isHeld(g)
	})
}

// TestAsyncLateFeed: an entry that its replica learns of late is renewed at once. If it is
// granted at that moment, its full lease begins.
func TestAsyncLateFeed(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		r, other := s.replica(t), s.replica(t, keepsNothing)
		req := want("orders:1", time.Hour)
		req.TTL = service.MinAsyncTTL
		for range 10 {
			holder := other.hold(lasting(want("orders:1", 0)))
			r.store.setLag(running, 12*time.Second)
			g := other.post(req)
			after(12 * time.Second)
			r.store.setLag(running, 0)
			other.release(holder)
			synctest.Wait()
			if now := other.isHeld(g); time.Until(now.ExpiresAt) < req.TTL-time.Second {
				t.Errorf("held for %v, want a full lease", time.Until(now.ExpiresAt))
			}
			other.release(g)
			holder = other.hold(lasting(want("orders:1", 0)))
			r.store.setLag(running, 12*time.Second)
			g = other.post(req)
			after(13 * time.Second)
			r.store.setLag(running, 0)
			after(time.Minute)
			other.waitsAt(g, 1)
			other.release(g)
			other.release(holder)
		}
	})
}

// TestAsyncRestart: entries outlive a restart of all replicas that is shorter than what
// is left of their leases.
func TestAsyncRestart(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		other := s.replica(t, keepsNothing)
		holder := other.hold(lasting(want("orders:1", 0)))
		r := s.replica(t)
		g := r.post(want("orders:1", time.Hour))
		for range 20 {
			after(time.Minute)
			r.Close()
			after(15 * time.Second)
			r = s.replica(t)
		}
		r.waitsAt(g, 1)
		other.release(holder)
		r.isHeld(g)
	})
}

// keepsNothing makes a replica one that leaves all async entries to others.
func keepsNothing(c *service.Config) {
	c.Sharing = func() replicas.Sharing {
		return replicas.Sharing{Self: "nobody", Live: []string{"somebody"}}
	}
}

// crew is a list of replicas that tests decide on.
type crew struct {
	live    []string
	changed chan struct{}
}

func (c *crew) join(self string) func(*service.Config) {
	return func(cfg *service.Config) {
		cfg.Sharing = func() replicas.Sharing {
			return replicas.Sharing{Self: self, Live: c.live, Changed: c.changed}
		}
	}
}

func (c *crew) set(live ...string) {
	old := c.changed
	c.live, c.changed = live, make(chan struct{})
	if old != nil {
		close(old)
	}
	synctest.Wait()
}

// TestAsyncShared: replicas share the entries that wait, each is renewed by one of them,
// and those of a replica that stopped are taken over before their leases end.
func TestAsyncShared(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		const n = 240
		s, c := newSharedStore(t), &crew{}
		c.set("a", "b", "c")
		all := []*replica{s.replica(t, c.join("a")), s.replica(t, c.join("b")), s.replica(t, c.join("c"))}
		var grants []*service.Grant
		for i := range n {
			all[0].hold(lasting(want(fmt.Sprint("orders:", i), 0)))
			grants = append(grants, all[i%3].post(want(fmt.Sprint("orders:", i), time.Hour)))
		}
		renewals := func(r *replica) int {
			before := r.store.count(refresh)
			after(time.Minute)
			return r.store.count(refresh) - before
		}
		sum := 0
		for _, r := range all {
			k := renewals(r)
			if k < n || k > 3*n {
				t.Errorf("a replica renewed %d times in a minute; %d are a third of all", k, 2*n)
			}
			sum += k
		}
		if sum > 7*n {
			t.Errorf("%d renewals a minute of %d entries with a lease of %v", sum, n, ttl)
		}
		all[0].store.on(silent, allMethods...) // it stands still, and is missed after a while
		after(5 * time.Second)
		c.set("b", "c")
		after(10 * time.Minute)
		if len(s.Entries()) != 2*n {
			t.Fatalf("%d of %d entries are left", len(s.Entries())-n, n)
		}
		for _, g := range grants {
			all[1].waitsAt(g, 1)
		}
		if k := renewals(all[1]); k < 2*n || k > 4*n {
			t.Errorf("one of two replicas renewed %d times in a minute; %d are half of all", k, 3*n)
		}
	})
}

// TestAsyncInDoubt: if an entry exists but its state must not be reported yet, the answer says
// which case it is.
func TestAsyncInDoubt(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		r := s.replica(t)
		waiting := r.post(keyed("orders:1", time.Hour, "k"))
		r.store.on(broken, remaining)
		again := r.start(async(keyed("orders:1", time.Hour, "k")))
		if e := again.fails(
			lock.StoreUnavailable,
		); !e.OutcomeUnknown || again.grant == nil || again.grant.Token != waiting.Token {
			t.Errorf("a retry is told %+v with %+v", e, again.grant)
		}
		r.store.setLag(running, time.Millisecond) // it is in doubt before the view sees it hold
		r.store.on(func(_ context.Context, do func() error) error {
			err := do()
			if doubt := r.store.inner.Distrust(t.Context(), 1_000_000); doubt != nil {
				t.Error(doubt)
			}
			return err
		}, enqueue)
		p := r.start(async(want("orders:2", time.Hour)))
		if e := p.fails(
			lock.FenceFloorRequired,
		); !e.OutcomeUnknown || p.grant == nil || p.grant.Token == "" {
			t.Errorf("told %+v with %+v", e, p.grant)
		}
	})
}

// TestAsyncSharedWithANewOne: who joins takes its share over, and the others let go of it.
func TestAsyncSharedWithANewOne(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		const n = 100
		s, c := newSharedStore(t), &crew{}
		c.set("a")
		a := s.replica(t, c.join("a"))
		for i := range n {
			a.hold(lasting(want(fmt.Sprint("orders:", i), 0)))
			a.post(want(fmt.Sprint("orders:", i), time.Hour))
		}
		after(time.Minute)
		s.replica(t, c.join("b"))
		c.set("a", "b")
		before := a.store.count(refresh)
		after(10 * time.Minute)
		if k := a.store.count(refresh) - before; k > 50*n {
			t.Errorf("%d renewals in 10 minutes of %d entries that are shared by two", k, n)
		}
		if left := len(s.Entries()) - n; left != n {
			t.Errorf("%d of %d entries are left", left, n)
		}
	})
}

// TestAsyncGrantDuringARenewal: a full lease begins with a grant, and not later, also if
// the entry was being renewed at that moment.
func TestAsyncGrantDuringARenewal(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		r, other := s.replica(t), s.replica(t, keepsNothing)
		holder := other.hold(lasting(want("orders:1", 0)))
		g := other.post(want("orders:1", time.Hour))
		r.store.on(slow(time.Second), refresh)
		for began := r.store.count(refresh); r.store.count(refresh) == began; {
			after(100 * time.Millisecond)
		}
		other.release(holder)
		after(ttl + 3*time.Second)
		other.has(g, lock.Expired)
	})
}

// TestAsyncKeyUsedAnew: an entry has the id of an ended one whose end its replica has not seen in
// time.
func TestAsyncKeyUsedAnew(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		r, other := s.replica(t), s.replica(t, keepsNothing)
		other.hold(lasting(want("orders:1", 0)))
		first := other.post(keyed("orders:1", time.Hour, "k"))
		r.store.on(broken, refresh)
		r.store.setFeed(lost)
		other.release(first)
		after(15 * time.Minute)
		second := other.post(keyed("orders:1", time.Hour, "k"))
		if first.Entry.ID != second.Entry.ID || first.Entry.Number == second.Entry.Number {
			t.Fatalf("%v and %v are to share an id", first.Entry, second.Entry)
		}
		r.store.setFeed(running)
		r.store.on(nil, refresh)
		after(10 * time.Minute)
		other.waitsAt(second, 1)
	})
}

// TestAsyncWithoutTrust: an entry that is granted in a store that lost its past is kept, because
// its client does not learn of the grant.
func TestAsyncWithoutTrust(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		r := s.replica(t)
		r.holdsWithoutTrust(time.Hour)
		after(10 * time.Minute)
		if n := len(s.Entries()); n != 1 {
			t.Errorf("%d entries are left", n)
		}
	})
}

// TestAsyncFailing: a store that fails at once is not asked for each entry again and again.
func TestAsyncFailing(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		const n = 50
		s := newSharedStore(t)
		r := s.replica(t)
		r.hold(lasting(want("orders:1", 0)))
		for range n {
			r.post(want("orders:1", time.Hour))
		}
		r.store.on(broken, refresh)
		after(20 * time.Second)
		if k := r.store.count(refresh); k < 3*n || k > 7*n {
			t.Errorf(
				"%d entries were tried to be renewed %d times in the 11 s after the first time was due", n, k,
			)
		}
		r.store.on(nil, refresh)
		after(time.Minute)
		if left := len(s.Entries()); left != n+1 {
			t.Errorf("%d entries are left", left-1)
		}
	})
}
