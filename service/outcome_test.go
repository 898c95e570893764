package service_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/test/bubble"
)

// TestUnknownOutcome: the answer to the write is lost. No client can come back for the entry. The
// store itself removes it, because a check by the service could come before a late write commits.
func TestUnknownOutcome(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		r := s.replica(t)
		r.store.on(first(1, deaf), enqueue)
		began := time.Now()
		p := r.start(want("orders:1", time.Minute))
		if e := p.fails(lock.StoreUnavailable); !e.OutcomeUnknown || p.grant != nil {
			t.Errorf("%+v with %+v", e, p.grant)
		}
		took(t, began, 0)
		after(ttl / 2)
		if n := r.store.count(queue) + r.store.count(remove); n != 0 {
			t.Errorf("the store was asked %d times", n)
		}
	})
}

// TestUnknownOutcomeOfALostStore: if the store stays away, the orphan lapses.
func TestUnknownOutcomeOfALostStore(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		r := s.replica(t)
		r.store.on(deaf, enqueue)
		r.store.on(silent, queue, remove)
		r.start(want("orders:1", time.Minute)).fails(lock.StoreUnavailable)
		after(ttl - 1)
		if len(s.ids()) != 1 {
			t.Fatal("there is no orphan")
		}
		after(1)
		if len(s.ids()) != 0 {
			t.Error("somebody kept the orphan alive")
		}
	})
}

// TestUnknownOutcomeWithAKey: the client comes back for the entry, so it stays,
// and is found at any replica.
func TestUnknownOutcomeWithAKey(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		a, b := s.replica(t), s.replica(t)
		b.store.setLag(running, 100*time.Millisecond)
		a.store.on(first(1, deaf), enqueue)
		req := keyed("orders:1", time.Minute, "k")
		p := a.start(req)
		if e := p.fails(lock.StoreUnavailable); !e.OutcomeUnknown {
			t.Errorf("%+v", e)
		}
		g := b.start(req).holdsLater()
		if g.Entry.Number != 101 {
			t.Errorf("a second entry: %+v", g.Entry)
		}
		same(t, g, a.hold(req))
	})
}

// TestKnownFailure: what surely did not happen leaves nothing to look for.
func TestKnownFailure(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		r := s.replica(t)
		r.store.on(broken, enqueue)
		p := r.start(want("orders:1", time.Minute))
		if e := p.fails(lock.StoreUnavailable); e.OutcomeUnknown || r.store.count(queue) != 0 {
			t.Errorf("%+v, and the queue was read %d times", e, r.store.count(queue))
		}
	})
}

// TestCloseTidiesUp: Close waits for what is still to be removed.
func TestCloseTidiesUp(t *testing.T) {
	tidy := map[string]func(r *replica){
		"GoneClient": func(r *replica) {
			r.store.on(slow(3*time.Second), remove)
			p := r.line(want("orders:1", time.Minute))
			p.cancel()
			<-p.done
		},
	}
	for name, leave := range tidy {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				s := newSharedStore(t)
				r := s.replica(t)
				s.occupy(t, "orders:1")
				synctest.Wait()
				leave(r)
				if n := len(s.ids()); n != 2 {
					t.Fatalf("%d entries", n)
				}
				r.Close()
				if n := len(s.ids()); n != 1 {
					t.Errorf("%d entries after Close", n)
				}
			})
		})
	}
}

// TestCloseWithoutAStore: Close ends in time although nothing can be removed.
func TestCloseWithoutAStore(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		r := s.replica(t)
		r.store.on(deaf, enqueue)
		r.store.on(silent, queue, remove)
		r.start(want("orders:1", time.Minute)).fails(lock.StoreUnavailable)
		began := time.Now()
		r.Close()
		if d := time.Since(began); d > callLimit {
			t.Errorf("Close took %v", d)
		}
		if !r.Draining() {
			t.Error("it does not say that it takes nothing new")
		}
	})
}
