package service_test

import (
	"testing"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/test/bubble"
)

// TestManyOfOneKey: each request that waits on an entry renews its lease and is woken with it, so
// at most a hundred may, by key or token. Further ones are rejected at once, cost the store
// nothing, and do not affect the waiting ones.
func TestManyOfOneKey(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		r := s.replica(t)
		held := r.hold(lasting(want("orders:1", 0)))
		req := keyed("orders:1", time.Hour, "k")
		place := r.start(req).stillWaits()
		var all []*pending
		for range 100 {
			all = append(all, r.line(req))
		}
		writes := r.store.count(enqueue)
		for _, over := range []*pending{r.start(req), r.resume(place, time.Minute)} {
			if e := over.fails(lock.Overloaded); e.RetryAfter == 0 || e.OutcomeUnknown {
				t.Errorf("%+v", e)
			}
		}
		if n := r.store.count(enqueue); n != writes {
			t.Errorf("%d writes for those who were refused", n-writes)
		}
		r.line(keyed("orders:1", time.Hour, "another"))
		for _, p := range all[50:] {
			p.cancel()
			<-p.done
		}
		all = append(all[:50], r.line(req), r.resume(place, time.Minute))
		r.release(held)
		for _, p := range all {
			same(t, p.holds(), all[0].grant)
		}
	})
}
