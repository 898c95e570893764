package service_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/test/bubble"
)

// TestRefusedBeforeTheRequest: a retry finds its entry rejected in a stale view, because of an
// entry that has left since. It is granted.
func TestRefusedBeforeTheRequest(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		a, b := s.replica(t), s.replica(t)
		a.store.setLag(running, 50*time.Millisecond) // so that it does not refuse before it writes
		holder := b.hold(lasting(want("orders:1", 0)))
		req := lasting(keyed("orders:1", time.Minute, "k"))
		req.Claims[0] = lock.Claim{Name: "orders:1", Mode: lock.Semaphore, Limit: 2, Permits: 1}
		p := a.line(req)
		after(20 * time.Millisecond)
		b.store.setFeed(frozen)
		p.fails(lock.ModeMismatch)
		b.release(holder)
		b.start(req).holdsLater()
	})
}

// TestRefusedBeforeAnUnansweredRequest: a repeated request finds its entry refused in a view
// that is late, and the store does not answer whether it is there. It is not told that it is
// refused, and is granted when it comes again.
func TestRefusedBeforeAnUnansweredRequest(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		a, b := s.replica(t), s.replica(t)
		a.store.setLag(running, 50*time.Millisecond) // so that it does not refuse before it writes
		holder := b.hold(lasting(want("orders:1", 0)))
		req := lasting(keyed("orders:1", time.Minute, "k"))
		req.Claims[0] = lock.Claim{Name: "orders:1", Mode: lock.Semaphore, Limit: 2, Permits: 1}
		p := a.line(req)
		after(20 * time.Millisecond)
		b.store.setFeed(frozen)
		p.fails(lock.ModeMismatch)
		b.release(holder)
		b.store.on(silent, remove)
		if e := b.start(req).fails(lock.StoreUnavailable); !e.OutcomeUnknown {
			t.Errorf("%+v", e)
		}
		b.store.on(nil, remove)
		b.start(req).holdsLater()
	})
}

// TestRefusedBeforeTheFirstAnswer: a repeated request hears that its entry was refused and
// taken back before the store has said anything of it: that was before the request.
func TestRefusedBeforeTheFirstAnswer(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		a, b, c := s.replica(t), s.replica(t), s.replica(t)
		a.store.setLag(running, 50*time.Millisecond) // so that it does not refuse before it writes
		holder := b.hold(lasting(want("orders:1", 0)))
		a.store.on(slow(time.Second), remove)
		// refused, and holds before it is taken back
		counted := a.start(semaphore(2, lasting(want("orders:1", time.Minute))))
		req := lasting(keyed("orders:1", time.Minute, "k"))
		p := c.line(req)
		b.store.setFeed(frozen)
		b.release(holder)
		p.fails(lock.ModeMismatch)
		after(2 * time.Second)
		a.release(counted.holds())
		b.store.on(silent, refresh)
		again := b.start(req)
		again.waits()
		b.store.setFeed(running)
		again.holdsLater()
	})
}

// TestRefusedTwice: two requests of one key wait at two replicas when their entry is rejected.
// Both learn the reason, whichever removes the entry.
func TestRefusedTwice(t *testing.T) {
	for name, lag := range map[string]time.Duration{"Together": 0, "Late": 100 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				s := newSharedStore(t)
				a, b := s.replica(t), s.replica(t)
				a.hold(lasting(as("w1", want("x", 0))))
				b.hold(lasting(as("w2", want("y", 0))))
				synctest.Wait()
				b.store.setLag(running, lag)
				a.store.setLag(running, 50*time.Millisecond) // so that it does not refuse before it writes
				after(time.Second)
				stays := s.replica(t).line(as("w1", want("y", time.Minute)))
				req := as("w2", keyed("x", time.Minute, "k"))
				p, q := a.start(req), b.start(req)
				p.fails(lock.Deadlock)
				q.fails(lock.Deadlock)
				stays.waits()
			})
		})
	}
}
