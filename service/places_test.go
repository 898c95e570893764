package service_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service"
)

// pair tries to get two locks.
func pair(a, b string) service.AcquireRequest {
	req := want(a, 0)
	req.Set, req.Claims = true, append(req.Claims, lock.Claim{Name: b, Mode: lock.Exclusive})
	return req
}

// TestTenantWithoutPlaces: a tenant whose entries take as many places as one may is
// refused more, before anything is written. What it has goes on, and so do others.
func TestTenantWithoutPlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf(t)
		r := s.replica(t, func(c *service.Config) { c.MaxPlaces = 4 })
		g := r.hold(pair("a", "b"))
		again := keyed("a", time.Minute, "k")
		r.line(again)
		r.start(pair("c", "d")).fails(lock.QuotaExceeded)
		held := r.hold(want("c", 0))
		for _, wait := range []time.Duration{0, time.Minute} {
			if e := r.start(want("d", wait)).fails(lock.QuotaExceeded); e.RetryAfter == 0 || e.Ambiguous {
				t.Errorf("%+v", e)
			}
		}
		if n := r.store.count(enqueue); n != 3 {
			t.Errorf("%d writes", n)
		}
		r.start(want("c", 0)).fails(lock.Held)
		r.line(again)
		foreign := want("d", 0)
		foreign.Tenant = "globex"
		r.hold(foreign)
		r.store.setFeed(lost)
		synctest.Wait()
		r.store.setFeed(running) // the places are counted anew
		synctest.Wait()
		r.start(want("d", 0)).fails(lock.QuotaExceeded)
		r.release(held)
		r.hold(want("d", 0))
		if err := s.end(g.Entry, lock.Expired); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		r.hold(pair("e", "f"))
	})
}
