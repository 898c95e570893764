package etcd

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencepost/fencepost/test/bubble"
)

// TestManyOfATenantEndEvenly: one after the other, however many there are, and no other tenant's waits for that.
func TestManyOfATenantEndEvenly(t *testing.T) {
	for _, n := range []int{100, 400, 2000} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				r := withRemovals(t)
				for i := range n {
					r.starts(lasts(uint64(i), int64(i)))
				}
				for i := range 10 {
					r.starts(of(fmt.Sprint("other-", i), lasts(uint64(n+i), int64(n+i))))
				}
				<-time.After(2*time.Second + expiryTick)
				within := min(time.Duration(n)*turnsApart, turnsWithin)
				for part := range 4 {
					synctest.Wait()
					gone, even := r.gone(), n*part/4
					if len(gone) != 11 || gone["acme"] < even || gone["acme"] > even+n/10+10 {
						t.Errorf("%v of %d, and of ten others one, are gone after %d quarters, want some %d", gone, n, part, even)
					}
					<-time.After(within / 4)
				}
				<-time.After(expiryTick)
				if gone := r.gone(); gone["acme"] != n {
					t.Errorf("%v of %d are gone after all turns", gone, n)
				}
			})
		})
	}
}

// gone is how many were removed, by tenant.
func (r *removals) gone() map[string]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	gone := map[string]int{}
	for _, e := range r.removed {
		gone[e.Tenant]++
	}
	return gone
}

// TestRenewedWhileItWaitsForItsTurn: it goes on then, for its whole TTL, and waits for a turn again.
func TestRenewedWhileItWaitsForItsTurn(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		r := withRemovals(t)
		for i := range 100 {
			r.starts(lasts(uint64(i), int64(i)))
		}
		r.expires(t, 2*time.Second+100*turnsApart/2, 51)
		for i := range 100 {
			if renewed, ok := r.times.renewing(int64(i)); ok {
				renewed(nil)
			}
		}
		r.expires(t, 2*time.Second-time.Millisecond, 51)
		r.expires(t, expiryTick, 52)
		r.expires(t, 100*turnsApart, 100)
	})
}

// TestTurnsAreForgotten: a tenant of the past takes no memory.
func TestTurnsAreForgotten(t *testing.T) {
	all, now := turns{last: map[string]time.Time{}}, time.Now()
	for i := range 1000 {
		all.next(fmt.Sprint("tenant-", i), now)
	}
	all.next("acme", now.Add(turnsWithin-time.Millisecond))
	if at := all.next("acme", now.Add(turnsWithin)); len(all.last) != 1 || at.Sub(now) != turnsWithin+time.Millisecond {
		t.Errorf("turns of %d tenants are kept, and the next one is %v from now", len(all.last), at.Sub(now))
	}
}
