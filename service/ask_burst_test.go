package service_test

import (
	"testing"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service"
	"github.com/fencepost/fencepost/service/view"
	"github.com/fencepost/fencepost/test/bubble"
)

// burst has many begin at once, and returns those that wait; of the others one may hold, and the rest is refused.
func (r *replica) burst(n int, req service.AcquireRequest) (waits []*pending) {
	r.t.Helper()
	var all []*pending
	for range n {
		all = append(all, r.start(req))
	}
	after(2 * time.Second)
	for _, p := range all {
		switch {
		case !p.answered():
			waits = append(waits, p)
		case p.err != nil:
			coded(r.t, p.err, lock.QuotaExceeded)
		}
	}
	return waits
}

// TestBurstOfAsks: of many who come at once, before the feed tells of any, no more ask than there
// is room for at the replica that is asked; also if the lock was free when they came.
func TestBurstOfAsks(t *testing.T) {
	for name, free := range map[string]bool{"held": false, "free": true} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				s := newSharedStore(t)
				a, b := s.replica(t), s.replica(t)
				var held *service.Grant
				if !free {
					held = a.hold(lasting(want("a", 0)))
				}
				for _, r := range []*replica{a, b} {
					r.store.setLag(running, time.Second)
				}
				waits := a.burst(3*view.MaxAsksPerLock, asking(0, want("a", time.Hour)))
				if len(waits) > view.MaxAsksPerLock || len(waits) < view.MaxAsksPerLock-1 {
					t.Errorf("%d wait that ask, want %d", len(waits), view.MaxAsksPerLock)
				}
				if more := b.burst(10, asking(0, want("a", time.Hour))); len(more) > 1 {
					t.Errorf("later another replica lets %d ask", len(more))
				}
				if held != nil && a.asked(held).Waiting != view.MaxAsksPerLock {
					t.Errorf("the holder is told %+v", a.asked(held))
				}
				for _, p := range waits {
					p.cancel()
					<-p.done
				}
				after(2 * time.Second)
				if again := a.burst(2, asking(0, want("a", time.Hour))); len(again) == 0 {
					t.Error("there is no room again")
				}
			})
		})
	}
}

// TestBurstOfLaterAsks: the same of those who ask while they wait. What failed for certain does
// not count, and what nothing was heard of does for a minute.
func TestBurstOfLaterAsks(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		r := s.replica(t, func(c *service.Config) { c.MaxHold = time.Second })
		held := r.hold(lasting(want("a", 0)))
		var waits []*service.Grant
		for range view.MaxAsksPerLock + 50 {
			waits = append(waits, r.line(lasting(want("a", time.Hour))).stillWaits())
		}
		r.store.setLag(running, 10*time.Second)
		let := 0
		for _, w := range waits {
			switch err := r.RequestRelease(t.Context(), by(w), time.Minute); {
			case err == nil:
				let++
			default:
				coded(t, err, lock.QuotaExceeded)
			}
		}
		if let != view.MaxAsksPerLock {
			t.Errorf("%d were let ask, want %d", let, view.MaxAsksPerLock)
		}
		after(20 * time.Second)
		if got := r.asked(held); got.Waiting != view.MaxAsksPerLock {
			t.Errorf("the holder is told %+v", got)
		}
	})
}
