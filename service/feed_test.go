package service_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/test/bubble"
)

// feedNotices is how long a feed may take to say that the store is gone.
const feedNotices = 2500 * time.Millisecond

// TestLostStoreIsTold: when the store is gone, every waiter gets an error within 5 s, whenever it
// came and however long its lease is. The error is enough to resume.
func TestLostStoreIsTold(t *testing.T) {
	for _, f := range map[string]fault{"Silent": silent, "Broken": broken} {
		bubble.Test(t, func(t *testing.T) {
			s := newSharedStore(t)
			r := s.replica(t)
			s.occupy(t, "orders:1")
			var line []*pending
			for i := range 120 {
				req := want("orders:1", time.Hour)
				req.TTL = minTTL + time.Duration(i%30)*time.Second
				line = append(line, r.line(req))
				after(time.Duration(i%7) * 73 * time.Millisecond)
			}
			gone := time.Now()
			r.store.on(f, allMethods...)
			after(feedNotices)
			r.store.setFeed(lost)
			for i, p := range line {
				if e := p.fails(lock.StoreUnavailable); !e.OutcomeUnknown {
					t.Errorf("waiter %d is told that its request took no effect, and is in the queue", i)
				}
				if d := p.at.Sub(gone); d > 5*time.Second {
					t.Errorf("waiter %d was told %v after the store was gone", i, d)
				}
				if p.grant == nil || p.grant.Token == "" {
					t.Errorf("waiter %d cannot resume: %+v", i, p.grant)
				}
			}
		})
	}
}

// TestSharedReadOlderThanTheEntry: waiters of a lock share direct reads. One that
// began before an entry was written proves nothing about it.
func TestSharedReadOlderThanTheEntry(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		r := s.replica(t)
		s.occupy(t, "orders:1")
		r.store.setFeed(frozen)
		r.store.on(late(600*time.Millisecond), queue)
		first := r.line(want("orders:1", 10*time.Second))
		after(300 * time.Millisecond) // by now it asks
		second := r.line(want("orders:1", 10*time.Second))
		after(9 * time.Second)
		first.waits()
		second.waits()
		if n := len(s.ids()); n != 3 {
			t.Errorf("%d entries", n)
		}
	})
}

// TestLateFeed: who joined and is not seen in time by the view asks the store.
func TestLateFeed(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		a, b := s.replica(t), s.replica(t)
		b.store.setFeed(frozen)
		s.occupy(t, "another")
		began := time.Now()
		g := b.start(want("orders:1", time.Minute)).holdsLater()
		took(t, began, 250*time.Millisecond)
		if !g.ExpiresAt.Equal(began.Add(ttl)) || g.Waited != 0 {
			t.Errorf("%+v", g)
		}
		p := b.line(want("orders:1", time.Minute))
		after(5100 * time.Millisecond)
		a.release(g)
		began = time.Now()
		g = p.holdsLater()
		if d := p.at.Sub(began); d > 250*time.Millisecond {
			t.Errorf("a hand-over was seen after %v", d)
		}
		if d := p.at.Sub(g.Entry.EnqueuedAt); g.Waited != d || !g.ExpiresAt.Equal(p.at.Add(ttl)) {
			t.Errorf("waited %v: %+v", d, g)
		}
	})
}

// TestGrantAheadOfTheFeed: an entry that was written into free queues, right after all that the
// view has, holds before the feed shows it.
func TestGrantAheadOfTheFeed(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		r := s.replica(t)
		holder := r.hold(want("held", 0))
		synctest.Wait()
		r.store.setFeed(frozen)
		began := time.Now()
		g := r.start(want("free", time.Minute)).holdsLater()
		took(t, began, 0)
		if g.Waited != 0 || !g.ExpiresAt.Equal(began.Add(ttl)) {
			t.Errorf("%+v", g)
		}
		r.line(want("held", time.Minute))
		r.line(want("free", time.Minute))
		r.store.setFeed(running)
		r.release(g)
		r.release(holder)
	})
}

// TestLateFeedSkipsNobody: a direct read grants in order, too.
func TestLateFeedSkipsNobody(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		r := s.replica(t)
		r.store.setFeed(frozen)
		r.store.on(late(50*time.Millisecond), queue)
		holder := s.occupy(t, "orders:1")
		var line []*pending
		for range 10 {
			line = append(line, r.line(want("orders:1", time.Minute)))
		}
		if err := s.end(holder, lock.Expired); err != nil {
			t.Fatal(err)
		}
		for i, p := range line {
			g := p.holdsLater()
			for _, behind := range line[i+1:] {
				behind.waits()
			}
			r.release(g)
		}
		if reads := r.store.count(queue); reads > 45 {
			t.Errorf("10 waiters read the queue %d times: they share no reads", reads)
		}
	})
}

// TestLostFeed: while the feed is down and the store answers, hand-overs go on.
func TestLostFeed(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		r := s.replica(t)
		holder := r.hold(want("orders:1", 0))
		line := []*pending{r.line(want("orders:1", time.Minute)), r.line(want("orders:1", time.Minute))}
		r.store.setFeed(lost)
		for _, p := range line {
			after(10 * time.Second)
			released := time.Now()
			r.release(holder)
			holder = p.holdsLater()
			if d := p.at.Sub(released); d > time.Second {
				t.Errorf("granted after %v", d)
			}
		}
	})
}

// TestShortOutage: no waiter loses its position while the store and the feed are away for a
// second.
func TestShortOutage(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		r := s.replica(t)
		s.occupy(t, "orders:1")
		p := r.line(want("orders:1", time.Hour))
		after(time.Second)
		r.store.on(broken, allMethods...)
		r.store.setFeed(lost)
		after(time.Second)
		r.store.on(nil, allMethods...)
		r.store.setFeed(running)
		after(30 * time.Second)
		p.waits()
	})
}

// TestFeedComesBack: requests that waited over the interruption continue to wait, and what
// happened meanwhile counts.
func TestFeedComesBack(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		a, b := s.replica(t), s.replica(t)
		holder := a.hold(lasting(want("orders:1", 0)))
		revoked, next, last := b.line(want("orders:1", time.Minute)), b.line(
			want("orders:1", time.Minute),
		), b.line(want("orders:1", time.Minute))
		b.store.setFeed(frozen)
		if err := s.end(revoked.entry(s, 1), lock.Revoked); err != nil {
			t.Fatal(err)
		}
		a.release(holder)
		next.waits()
		b.store.setFeed(lost)
		next.waits()
		b.store.setFeed(running)
		revoked.ends(lock.Revoked)
		g := next.holds()
		last.waits()
		b.release(g)
		last.holds()
	})
}

// TestReady: a replica is ready when the store answers and its view is current.
func TestReady(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		r := s.replica(t)
		ready := func() error { return r.Ready(t.Context()) }
		if err := ready(); err != nil {
			t.Fatalf("not ready: %v", err)
		}
		r.store.setLag(running, 500*time.Millisecond)
		s.occupy(t, "orders:1")
		if err := ready(); err != nil {
			t.Errorf("not ready, half a second late: %v", err)
		}
		r.store.setFeed(lost)
		synctest.Wait()
		coded(t, ready(), lock.StoreUnavailable)
		r.store.setFeed(running)
		synctest.Wait()
		r.store.on(broken, newest)
		coded(t, ready(), lock.StoreUnavailable)
		r.store.on(nil, newest)
		r.Drain()
		coded(t, ready(), lock.Draining)
	})
}

// TestNotReadyBeforeTheFirstList: and yet of use.
func TestNotReadyBeforeTheFirstList(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		c := newClient(s)
		c.setFeed(frozen)
		r := s.replicaWith(t, c)
		coded(t, r.Ready(t.Context()), lock.StoreUnavailable)
		g := r.start(want("orders:1", 0)).holdsLater()
		r.renew(g)
		r.start(want("orders:1", 0)).fails(lock.Held)
		r.release(g)
		c.setFeed(running)
		if synctest.Wait(); r.Ready(t.Context()) != nil {
			t.Error("not ready after the first list")
		}
	})
}

// TestWaiterBeforeTheFirstList: a replica that has just started waits for its feed
// as long as for one that broke, before it tells a waiter that there is no store.
func TestWaiterBeforeTheFirstList(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		c := newClient(s)
		c.setFeed(lost)
		s.occupy(t, "orders:1")
		r := s.replicaWith(t, c)
		c.on(first(1, broken), queue)
		line := r.start(want("orders:1", time.Minute))
		after(time.Second)
		line.waits()
		c.on(broken, queue, refresh)
		line.fails(lock.StoreUnavailable)
	})
}

// TestStoppedReplica: a waiter's lease ends while the process is paused. The waiter's error
// reports the end of the entry, and not a lost store.
func TestStoppedReplica(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		a, b := s.replica(t), s.replica(t)
		a.hold(lasting(want("orders:1", 0)))
		req := want("orders:1", time.Hour)
		req.TTL = minTTL
		b.store.on(first(1, func(context.Context, func() error) error {
			pause(context.Background(), 3*minTTL) // whatever its caller allows
			return unavailable(false)
		}), refresh)
		line := b.line(req)
		after(5 * minTTL)
		line.ends(lock.Expired)
	})
}

// TestStoppedReplicaAsksASlowStore: when the process goes on after the lease has ended, it gives
// the store time to answer that the entry expired.
func TestStoppedReplicaAsksASlowStore(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		a, b := s.replica(t), s.replica(t)
		a.hold(lasting(want("orders:1", 0)))
		req := want("orders:1", time.Hour)
		req.TTL = minTTL
		calls := 0
		b.store.on(first(2, func(ctx context.Context, do func() error) error {
			if calls++; calls == 1 {
				b.store.setFeed(frozen)
				pause(context.Background(), 3*minTTL) // whatever its caller allows
				return unavailable(false)
			}
			defer b.store.setFeed(running)
			pause(ctx, 500*time.Millisecond)
			if ctx.Err() != nil {
				return unavailable(false)
			}
			return do()
		}), refresh)
		line := b.line(req)
		after(5 * minTTL)
		line.ends(lock.Expired)
	})
}

// TestRefusalAwaitsTheView: a request that the store's answer rejects learns the holders,
// although the feed lags.
func TestRefusalAwaitsTheView(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		a, b := s.replica(t), s.replica(t)
		b.store.setFeed(frozen)
		a.hold(want("orders:1", 0))
		p := b.start(want("orders:1", 0))
		after(400 * time.Millisecond)
		b.store.setFeed(running)
		if by := p.refusedBy(); len(by) != 1 {
			t.Errorf("refused because of %+v", by)
		}
	})
}
