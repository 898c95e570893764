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

// asked returns what a renewal tells the holder.
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
		a.line(want("orders:1", time.Hour))
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

// TestAskOfASet: only those are asked who hold what the set waits for.
func TestAskOfASet(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		r := s.replica(t)
		a := r.hold(lasting(want("a", 0)))
		shared := lasting(want("b", 0))
		shared.Claims[0].Mode = lock.Shared
		b := r.hold(shared)
		both := lasting(as("w1", asking(time.Minute, wantSet(time.Hour, "a", "b"))))
		both.Claims[1].Mode = lock.Shared
		r.line(both)
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
		r := s.replica(t)
		for _, c := range []struct {
			req  service.AcquireRequest
			says string
		}{
			{asking(0, want("a", 0)), "request_release needs wait_seconds"},
			{
				asking(-time.Millisecond, want("a", time.Hour)),
				"request_release.within_seconds must be between 0 and 86400",
			},
			{
				asking(25*time.Hour, want("a", time.Hour)),
				"request_release.within_seconds must be between 0 and 86400",
			},
		} {
			_, err := r.Acquire(t.Context(), c.req)
			if e := coded(t, err, lock.InvalidRequest); !strings.HasPrefix(e.Detail, c.says) {
				t.Errorf("%q, want %q", e.Detail, c.says)
			}
		}
		k := asking(time.Minute, keyed("b", time.Hour, "k"))
		r.hold(k)
		_, err := r.Acquire(t.Context(), asking(time.Second, keyed("b", time.Hour, "k")))
		coded(t, err, lock.IdempotencyMismatch)
	})
}

// TestMostAsksOfOneLockAreCounted: a renewal counts a bounded number of the entries that ask, and
// the request of the first stands whichever others leave.
func TestMostAsksOfOneLockAreCounted(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		r := s.replica(t)
		held := r.hold(lasting(want("a", 0)))
		first := r.line(as("first", asking(0, want("a", time.Hour))))
		second := r.line(as("second", asking(0, want("a", time.Hour))))
		for range 110 {
			r.line(asking(0, want("a", time.Hour)))
		}
		second.cancel()
		<-second.done
		synctest.Wait()
		if got := r.asked(held); got.Waiting != 100 || got.By != "first" {
			t.Errorf("the holder is told %+v", got)
		}
		r.release(held)
		<-first.done
		if got := r.asked(first.grant); got.Waiting != 100 || got.By == "first" {
			t.Errorf("the next holder is told %+v", got)
		}
	})
}
