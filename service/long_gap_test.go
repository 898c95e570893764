package service_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/test/bubble"
)

// TestReasonAfterALongGap: an entry was released while its replica did not see it, or stood
// still, for longer than the store remembers why. It is not said to have expired.
func TestReasonAfterALongGap(t *testing.T) {
	for name, f := range map[string]feed{"cut off": lost, "stood still": frozen} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				s := newSharedStore(t)
				r, other := s.replica(t), s.replica(t)
				for gap, why := range map[time.Duration]lock.Reason{
					5 * time.Minute: lock.Released, 20 * time.Minute: lock.Unknown,
				} {
					g := other.hold(lasting(want("orders:1", 0)))
					r.store.setFeed(f)
					other.release(g)
					after(gap)
					r.store.setFeed(lost)
					synctest.Wait()
					r.store.setFeed(running)
					synctest.Wait()
					r.has(g, why)
				}
			})
		})
	}
}

// TestReasonAfterALongSilence: nothing happened for long, which the replica knows, and then
// an entry expires in a short gap.
func TestReasonAfterALongSilence(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		r := s.replica(t)
		g := r.hold(lasting(want("orders:1", 0)))
		after(59 * time.Minute)
		if ok, err := r.Current(t.Context()); !ok || err != nil {
			t.Fatalf("current: %t, %v", ok, err)
		}
		r.store.setFeed(lost)
		after(2 * time.Minute)
		s.Forget()
		r.store.setFeed(running)
		synctest.Wait()
		r.has(g, lock.Expired)
	})
}
