package service_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/quota"
	"github.com/fencepost/fencepost/service"
	"github.com/fencepost/fencepost/test/bubble"
)

// pair tries to get two locks.
func pair(a, b string) service.AcquireRequest {
	req := want(a, 0)
	req.Set, req.Claims = true, append(req.Claims, lock.Claim{Name: b, Mode: lock.Exclusive})
	return req
}

// limited are the limits of every tenant with some that differ from the standard.
func limited(o quota.Overrides) func(string) *quota.Limits {
	limits := o.Over(quota.Standard())
	return func(string) *quota.Limits { return limits }
}

// TestTenantWithoutPlaces: a tenant whose entries take as many places as one may is
// refused more, before anything is written. What it has goes on, and so do others.
func TestTenantWithoutPlaces(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		r := s.replica(t, func(c *service.Config) { c.Limits = limited(quota.Overrides{"places": 4}) })
		g := r.hold(pair("a", "b"))
		again := keyed("a", time.Minute, "k")
		r.line(again)
		r.start(pair("c", "d")).fails(lock.QuotaExceeded)
		held := r.hold(want("c", 0))
		for _, wait := range []time.Duration{0, time.Minute} {
			if e := r.start(want("d", wait)).fails(
				lock.QuotaExceeded,
			); e.RetryAfter == 0 || e.OutcomeUnknown {
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
		r.store.setFeed(running) // the places are counted again
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

// TestTenantWithoutRenewals: a tenant whose async entries need as many renewals as the
// replicas make for one is refused more. Longer leases need fewer, those that hold need
// none, and others' entries do not count.
func TestTenantWithoutRenewals(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		r := s.replica(
			t,
			func(c *service.Config) { c.Limits = limited(quota.Overrides{"async_renewals_per_second": 1}) },
		)
		holder := r.hold(lasting(want("a", 0)))
		var waits []*service.Grant
		for range 9 { // each of them 0.107 a second
			waits = append(waits, r.post(want("a", time.Hour)))
		}
		if e := r.start(async(want("a", time.Hour))).fails(
			lock.QuotaExceeded,
		); e.RetryAfter == 0 || e.OutcomeUnknown {
			t.Errorf("%+v", e)
		}
		r.post(lasting(want("a", time.Hour)))
		r.line(want("a", time.Hour)) // whose client is connected
		foreign := want("a", time.Hour)
		foreign.Tenant = "globex"
		r.post(foreign)
		r.store.setFeed(lost)
		synctest.Wait()
		r.store.setFeed(running) // the renewals are counted again
		synctest.Wait()
		r.start(async(want("a", time.Hour))).fails(lock.QuotaExceeded)
		r.release(waits[8])
		r.post(want("a", time.Hour))
		r.start(async(want("a", time.Hour))).fails(lock.QuotaExceeded)
		r.release(holder) // the first of them holds
		r.isHeld(waits[0])
		r.post(want("a", time.Hour))
		r.start(async(want("a", time.Hour))).fails(lock.QuotaExceeded)
	})
}
