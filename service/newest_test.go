package service_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service"
	"github.com/fencepost/fencepost/test/bubble"
)

// newestOf asks for a lock for as long as no later request with the flag does.
func newestOf(name string, wait time.Duration) service.AcquireRequest {
	req := want(name, wait)
	req.OnlyNewest = true
	return req
}

// leaves has the client go away, and its entry be removed.
func (p *pending) leaves() {
	p.cancel()
	<-p.done
	synctest.Wait()
}

// TestOnlyTheNewestWaits: of several requests that wait at two replicas, the one that the store
// put last stays, at either replica, and is granted next. One without the flag is left alone.
func TestOnlyTheNewestWaits(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		a, b := s.replica(t), s.replica(t)
		held := a.hold(newestOf("x", 0))
		other := a.line(want("x", time.Minute))
		first, second := a.line(newestOf("x", time.Minute)), b.line(newestOf("x", time.Minute))
		first.fails(lock.NotNewest)
		third := a.line(newestOf("x", time.Minute))
		second.fails(lock.NotNewest)
		a.start(newestOf("x", 0)).fails(lock.Held) // a try displaces none
		third.waits()
		a.release(held)
		a.release(other.holdsLater())
		third.holdsLater()
	})
}

// TestSupersededAndGranted: a replica that lags removes what is superseded in its view only while
// an entry before it is there. By then that one has left, and the removal would take the lock
// from its holder.
func TestSupersededAndGranted(t *testing.T) {
	for name, leaves := range map[string]bool{"the newer stays": false, "the newer leaves": true} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				s := newSharedStore(t)
				a, b := s.replica(t), s.replica(t)
				held := a.hold(want("x", 0))
				older := b.line(newestOf("x", time.Minute))
				b.store.on(slow(time.Second), remove)
				newer := a.line(newestOf("x", time.Minute))
				after(500 * time.Millisecond) // it is being removed
				a.release(held)
				if leaves {
					newer.leaves()
				}
				g := older.holdsLater()
				if s.reasonOf(g.Entry.ID) != "" {
					t.Errorf("the holder has ended as %s", s.reasonOf(g.Entry.ID))
				}
				b.store.on(nil, remove)
				b.release(g)
				if !leaves {
					newer.holdsLater()
				}
			})
		})
	}
}

// TestSupersededAtALaggingReplica: the replica of the older request has not seen that the newer
// one joined and left again. The older one stays.
func TestSupersededAtALaggingReplica(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		a, b := s.replica(t), s.replica(t)
		held := a.hold(want("x", 0))
		older := b.line(newestOf("x", time.Minute))
		b.store.setFeed(frozen)
		newer := a.line(newestOf("x", time.Minute))
		newer.leaves()
		after(time.Second)
		b.store.setFeed(lost)
		b.store.setFeed(running)
		after(time.Second)
		older.waits()
		a.release(held)
		older.holdsLater()
	})
}

// TestPoolThatCanChooseIsNotSuperseded: two requests for any of two free locks join before the
// first one has chosen. No entry blocks it, so it does not leave: each gets a lock.
func TestPoolThatCanChooseIsNotSuperseded(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		a, b := s.replica(t), s.replica(t)
		req := anyOf(1, time.Minute, "x", "y")
		req.OnlyNewest = true
		a.store.on(late(100*time.Millisecond), enqueue)
		first := a.start(req)
		second := b.line(req)
		hasLocks(t, first.holdsLater(), "x")
		hasLocks(t, second.holdsLater(), "y")
	})
}

// TestSupersededKeyIsUsedUp: a retry of a superseded request must not join as the newest.
func TestSupersededKeyIsUsedUp(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		a, b := s.replica(t), s.replica(t)
		a.hold(want("x", 0))
		req := keyed("x", time.Minute, "k")
		req.OnlyNewest = true
		older := a.line(req)
		newer := b.line(newestOf("x", time.Minute))
		older.fails(lock.NotNewest)
		for _, r := range []*replica{a, b} {
			r.start(req).ends(lock.Superseded)
		}
		newer.waits()
	})
}

// TestSupersededEntryOfToken: a renewal removes an entry that is superseded and that no request
// attends, and later ones learn the reason.
func TestSupersededEntryOfToken(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		brief := func(c *service.Config) { c.MaxHold = 50 * time.Millisecond }
		a, b := s.replica(t), s.replica(t, brief)
		a.hold(want("x", 0))
		unattended := b.start(newestOf("x", time.Minute)).stillWaits()
		newer := a.line(newestOf("x", time.Minute))
		after(100 * time.Millisecond)
		if _, err := b.Renew(t.Context(), by(unattended)); !errors.Is(err, lock.NotNewest) {
			t.Errorf("the renewal answers %v", err)
		}
		after(100 * time.Millisecond)
		for _, r := range []*replica{a, b} {
			_, err := r.Renew(t.Context(), by(unattended))
			lostFor(t, err, lock.Superseded)
		}
		newer.waits()
	})
}

// TestAsyncIsSuperseded: the replica that keeps an async entry removes it, and its end has a
// reason that can be asked for.
func TestAsyncIsSuperseded(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s, d := newSharedStore(t), &diary{}
		a, b := s.replica(t, func(c *service.Config) { c.Metrics = d }), s.replica(t, keepsNothing)
		a.hold(lasting(want("x", 0)))
		older := b.post(newestOf("x", time.Hour))
		newer := b.post(newestOf("x", time.Hour))
		after(time.Second)
		a.has(older, lock.Superseded)
		b.has(older, lock.Superseded)
		if st, err := b.state(newer); err != nil || st.Held {
			t.Errorf("the newest is %+v, %v", st, err)
		}
		if n := d.count("waited refused true 0s"); n != 1 {
			t.Errorf("%d refused waits are counted, want 1: %v", n, d)
		}
	})
}
