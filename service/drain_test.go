package service_test

import (
	"testing"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/test/bubble"
)

// TestDrain: waiters get their answer at once, with what they need to resume elsewhere and a full
// lease. Their entries keep their positions.
func TestDrain(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		a, b := s.replica(t), s.replica(t)
		holder := a.hold(lasting(want("orders:1", 0)))
		byToken, byKey := a.line(want("orders:1", time.Hour)), a.line(keyed("orders:1", time.Hour, "k"))
		after(7 * time.Second)
		drained := time.Now()
		a.Drain()
		for _, p := range []*pending{byToken, byKey} {
			if e := p.fails(lock.Draining); e.RetryAfter <= 0 || !p.at.Equal(drained) {
				t.Errorf("told %v late: %+v", p.at.Sub(drained), e)
			}
			if p.grant == nil || p.grant.Token == "" || !p.grant.ExpiresAt.Equal(drained.Add(ttl)) {
				t.Fatalf("told with %+v", p.grant)
			}
		}
		a.Close()
		after(ttl - time.Millisecond)
		one, two := b.resume(byToken.grant, time.Minute), b.line(keyed("orders:1", time.Hour, "k"))
		one.waits()
		b.release(holder)
		g := one.holds()
		two.waits()
		same(t, byToken.grant, g)
		b.release(g)
		same(t, byKey.grant, two.holds())
	})
}

// TestDrainingTakesNothingNew: new requests are refused without a trace; holders
// are served to the end.
func TestDrainingTakesNothingNew(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		r := s.replica(t)
		g := r.hold(want("orders:1", 0))
		r.Drain()
		r.Drain() // once is enough
		if !r.Draining() {
			t.Error("does not say that it drains")
		}
		for _, req := range []time.Duration{0, time.Minute} {
			p := r.start(want("orders:2", req))
			if e := p.fails(lock.Draining); e.OutcomeUnknown || e.RetryAfter <= 0 || p.grant != nil {
				t.Errorf("%+v with %+v", e, p.grant)
			}
		}
		if n := len(s.ids()); n != 1 {
			t.Errorf("%d entries", n)
		}
		r.renew(g)
		r.release(g)
	})
}

// TestDrainTellsThePlaces: each waiter learns its own position.
func TestDrainTellsThePlaces(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		r := s.replica(t)
		s.occupy(t, "orders:1")
		line := []*pending{
			r.line(want("orders:1", time.Hour)), r.line(want("orders:1", time.Hour)),
			r.line(want("orders:1", time.Hour)),
		}
		r.Drain()
		for i, p := range line {
			if p.fails(lock.Draining); p.grant.Position != i+1 {
				t.Errorf("waiter %d is told position %d", i+1, p.grant.Position)
			}
		}
	})
}

// TestDrainOfAnUnknownLease: a request that has come back to its entry, of whose lease the
// store does not tell, is not told of a time long ago.
func TestDrainOfAnUnknownLease(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		r := s.replica(t)
		s.occupy(t, "orders:1")
		r.line(keyed("orders:1", time.Hour, "k")).cancel()
		r.store.on(silent, allMethods...)
		p := r.line(keyed("orders:1", time.Hour, "k"))
		began := time.Now()
		r.Drain()
		if p.fails(lock.Draining); p.grant == nil || p.grant.ExpiresAt.Before(began) {
			t.Errorf("told with %+v", p.grant)
		}
	})
}

// TestDrainTellsTheLost: an entry that is gone cannot be resumed elsewhere.
func TestDrainTellsTheLost(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		a, b := s.replica(t), s.replica(t)
		s.occupy(t, "orders:1")
		p := b.line(want("orders:1", time.Hour))
		b.store.setFeed(frozen)
		if err := s.end(p.entry(s, 1), lock.Revoked); err != nil {
			t.Fatal(err)
		}
		b.Drain()
		p.ends(lock.Unknown)
		a.Close()
	})
}

// TestDrainWithoutAStore: waiters get their answer even if the store is lost.
func TestDrainWithoutAStore(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		r := s.replica(t)
		s.occupy(t, "orders:1")
		p := r.line(want("orders:1", time.Hour))
		r.store.on(silent, allMethods...)
		began := time.Now()
		r.Drain()
		if e := p.fails(lock.Draining); !e.OutcomeUnknown {
			t.Error("it is told that its request took no effect, and is in the queue")
		}
		if d := p.at.Sub(began); d > 5*time.Second || p.grant == nil {
			t.Errorf("told after %v with %+v", d, p.grant)
		}
	})
}
