package service_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/fencepost/fencepost/service"
	"github.com/fencepost/fencepost/test/bubble"
)

// of is the request of another tenant.
func of(tenant string, req service.AcquireRequest) service.AcquireRequest {
	req.Tenant = tenant
	return req
}

// TestAsyncTurns: the store is slow, and two tenants have more entries than can be renewed.
// A third keeps what it has, and a grant of its does not wait for theirs.
func TestAsyncTurns(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		r := s.replica(t)
		for i := range 3 {
			r.hold(lasting(of(fmt.Sprint("tenant", i), want("orders:1", 0))))
		}
		for range 1000 {
			r.post(of("tenant0", want("orders:1", time.Hour)))
			r.post(of("tenant1", want("orders:1", time.Hour)))
		}
		var few []*service.Grant
		for range 20 {
			few = append(few, r.post(of("tenant2", want("orders:1", time.Hour))))
		}
		r.store.on(slow(time.Second), refresh)
		after(5 * time.Minute)
		for i, g := range few {
			r.waitsAt(g, i+1)
		}
		if n := len(s.Entries()); n < 300 || n > 1800 {
			t.Errorf("%d entries are there, which is not more than can be renewed", n)
		}
	})
}

// TestAsyncGrantBesideManyOfAnother: a lease begins with the grant, although another tenant
// has more entries than can be renewed.
func TestAsyncGrantBesideManyOfAnother(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		r, other := s.replica(t), s.replica(t, keepsNothing)
		holder := other.hold(lasting(want("orders:1", 0)))
		g := other.post(want("orders:1", time.Hour))
		other.hold(lasting(of("many", want("orders:1", 0))))
		for range 1500 {
			other.post(of("many", want("orders:1", time.Hour)))
		}
		r.store.on(slow(time.Second), refresh)
		for range 10 {
			after(1500 * time.Millisecond)
		}
		other.release(holder)
		if calls := r.store.times(refresh, g.Entry.ID); len(calls) == 0 ||
			!calls[len(calls)-1].Equal(time.Now()) {
			t.Errorf("the lease is begun at none of %v, and it is %v", calls, time.Now())
		}
	})
}
