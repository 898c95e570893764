package service_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service"
	"github.com/fencepost/fencepost/service/view"
	"github.com/fencepost/fencepost/test/bubble"
)

// asking has a request ask those who hold to finish.
func asking(within time.Duration, req service.AcquireRequest) service.AcquireRequest {
	req.AskWithin = &within
	return req
}

func (r *replica) ask(g *service.Grant, within time.Duration) error {
	r.t.Helper()
	req := by(g)
	if g.Entry.Set {
		req = bySet(g)
	}
	err := r.RequestRelease(r.t.Context(), req, within)
	synctest.Wait()
	return err
}

// asked is what the holder is told with a renewal.
func (r *replica) asked(g *service.Grant) view.Asked {
	r.t.Helper()
	if got := r.renew(g); got.Asked != nil {
		return *got.Asked
	}
	return view.Asked{}
}

// TestAskWhenJoining: a holder learns of it at any replica with his next renewal, from those
// who wait at that moment, and also from a replica that has started since.
func TestAskWhenJoining(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		a, b := s.replica(t), s.replica(t)
		held := a.hold(lasting(want("orders:1", 0)))
		if got := a.asked(held); got != (view.Asked{}) {
			t.Errorf("before anybody asks: %+v", got)
		}
		began := time.Now().UTC().Round(0)
		first := b.line(as("w1", asking(time.Minute, want("orders:1", time.Hour))))
		after(time.Second)
		a.line(want("orders:1", time.Hour)) // who does not ask
		second := a.line(as("w2", asking(10*time.Second, want("orders:1", time.Hour))))
		want := view.Asked{Since: began, By: "w1", Waiting: 2, Wished: began.Add(11 * time.Second)}
		for _, r := range []*replica{a, b, s.replica(t)} {
			if got := r.asked(held); got != want {
				t.Errorf("the holder is told %+v, want %+v", got, want)
			}
		}
		if g, err := a.Entry(t.Context(), by(held), 0); err != nil || g.Asked == nil || *g.Asked != want {
			t.Errorf("who looks is told %+v, %v", g, err)
		}
		first.cancel()
		synctest.Wait()
		want = view.Asked{Since: began.Add(time.Second), By: "w2", Waiting: 1, Wished: want.Wished}
		if got := b.asked(held); got != want {
			t.Errorf("when the first is gone: %+v, want %+v", got, want)
		}
		second.cancel()
		synctest.Wait()
		if got := b.asked(held); got != (view.Asked{}) {
			t.Errorf("when nobody asks any more: %+v", got)
		}
	})
}

// TestAskLater: an entry asks while it waits; to repeat it changes nothing, and what a replica
// that starts knows is the same.
func TestAskLater(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		a, b := s.replica(t, func(c *service.Config) { c.MaxHold = time.Second }), s.replica(t)
		held := a.hold(lasting(want("orders:1", 0)))
		waits := a.line(lasting(as("w1", want("orders:1", time.Hour)))).stillWaits()
		began := time.Now().UTC().Round(0)
		if err := b.ask(waits, time.Minute); err != nil {
			t.Fatal(err)
		}
		after(time.Second)
		for _, r := range []*replica{a, b, s.replica(t)} {
			if err := r.ask(waits, 0); err != nil {
				t.Error(err)
			}
		}
		for _, r := range []*replica{a, b, s.replica(t)} {
			if got, want := r.asked(held), (view.Asked{Since: began, By: "w1", Waiting: 1, Wished: began.Add(time.Minute)}); got != want {
				t.Errorf("the holder is told %+v, want %+v", got, want)
			}
		}
		a.release(held)
		coded(t, b.ask(waits, 0), lock.AlreadyHeld)
		next := a.line(lasting(want("orders:1", time.Hour))).stillWaits()
		if got := a.asked(waits); got != (view.Asked{}) {
			t.Errorf("the next holder is told %+v", got)
		}
		a.release(next)
		lostFor(t, b.ask(next, 0), lock.Released)
		foreign := service.TokenRequest{Tenant: "other", Name: "orders:1", Token: waits.Token}
		coded(t, b.RequestRelease(t.Context(), foreign, 0), lock.TokenMismatch)
	})
}

// TestAskAtOneMoment: two replicas write it at once, and the answer to one is lost. It is one
// request.
func TestAskAtOneMoment(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		a, b := s.replica(t, func(c *service.Config) { c.MaxHold = time.Second }), s.replica(t)
		held := a.hold(lasting(want("orders:1", 0)))
		waits := a.line(lasting(want("orders:1", time.Hour))).stillWaits()
		b.store.setLag(running, 100*time.Millisecond) // it does not know that another one asked
		for _, r := range []*replica{a, b} {
			if err := r.RequestRelease(t.Context(), by(waits), time.Minute); err != nil {
				t.Fatal(err)
			}
		}
		after(time.Second)
		if got := b.asked(held); got.Waiting != 1 {
			t.Errorf("the holder is told %+v", got)
		}
	})
}

// TestAskOfWhoHeld: that an entry holds is not told by what a replica remembers alone, whose feed
// is interrupted, nor by a store that lost its past.
func TestAskOfWhoHeld(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		a, b := s.replica(t), s.replica(t)
		gone, there := a.hold(lasting(want("orders:1", 0))), a.hold(lasting(want("orders:2", 0)))
		b.store.setFeed(frozen)
		a.release(gone)
		lostFor(t, b.ask(gone, 0), lock.Unknown)
		coded(t, b.ask(there, 0), lock.AlreadyHeld)
		a.lostFuture()
		coded(t, b.ask(there, 0), lock.FenceFloorRequired)
		b.store.setFeed(running)
	})
}

// TestAskOfASet: only those are asked who hold what the set waits for.
func TestAskOfASet(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		r := s.replica(t, func(c *service.Config) { c.MaxHold = time.Second })
		a := r.hold(lasting(want("a", 0)))
		shared := lasting(want("b", 0))
		shared.Claims[0].Mode = lock.Shared
		b := r.hold(shared)
		both := lasting(as("w1", wantSet(time.Hour, "a", "b")))
		both.Claims[1].Mode = lock.Shared
		set := r.line(both).stillWaits()
		if err := r.ask(set, time.Minute); err != nil {
			t.Fatal(err)
		}
		if got := r.asked(a); got.Waiting != 1 || got.By != "w1" {
			t.Errorf("who holds what it waits for is told %+v", got)
		}
		if got := r.asked(b); got.Waiting != 0 {
			t.Errorf("who is not in its way is told %+v", got)
		}
	})
}

func TestBadAsks(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		r := s.replica(t, func(c *service.Config) { c.MaxHold = time.Second })
		for _, c := range []struct {
			req  service.AcquireRequest
			says string
		}{
			{asking(0, want("a", 0)), "request_release needs wait_seconds"},
			{asking(-time.Millisecond, want("a", time.Hour)), "request_release.within_seconds must be between 0 and 86400"},
			{asking(25*time.Hour, want("a", time.Hour)), "request_release.within_seconds must be between 0 and 86400"},
		} {
			_, err := r.Acquire(t.Context(), c.req)
			if e := coded(t, err, lock.InvalidRequest); !strings.HasPrefix(e.Detail, c.says) {
				t.Errorf("%q, want %q", e.Detail, c.says)
			}
		}
		r.hold(lasting(want("a", 0)))
		waits := r.line(lasting(want("a", time.Hour))).stillWaits()
		for _, within := range []time.Duration{-1, 25 * time.Hour} {
			coded(t, r.ask(waits, within), lock.InvalidRequest)
		}
		k := asking(time.Minute, keyed("b", time.Hour, "k"))
		r.hold(k)
		_, err := r.Acquire(t.Context(), asking(time.Second, keyed("b", time.Hour, "k")))
		coded(t, err, lock.IdempotencyMismatch)
	})
}

// TestTooManyAsk: what a holder is told, and what it costs, is bounded for each lock, also by
// who asks when he joins.
func TestTooManyAsk(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		r := s.replica(t)
		held := r.hold(lasting(want("a", 0)))
		quiet := r.line(lasting(keyed("a", time.Hour, "quiet")))
		var all []*pending
		for range view.MaxAsksPerLock {
			all = append(all, r.line(asking(0, want("a", time.Hour))))
		}
		_, err := r.Acquire(t.Context(), asking(0, want("a", time.Hour)))
		coded(t, err, lock.QuotaExceeded)
		quiet.cancel()
		<-quiet.done
		if got := r.asked(held); got.Waiting != view.MaxAsksPerLock {
			t.Errorf("the holder is told %+v", got)
		}
		r.hold(asking(0, want("b", time.Hour))) // it need not wait
		for _, p := range all {
			p.cancel()
			<-p.done
		}
		synctest.Wait()
		r.line(asking(0, want("a", time.Hour))) // there is room again
	})
}
