package service_test

import (
	"testing"
	"time"

	"github.com/fencepost/fencepost/service"
	"github.com/fencepost/fencepost/test/bubble"
)

// TestRenewalSharesNoOlderRead: a replica whose feed lags reads the queue to answer a renewal. A
// read that began before the question does not count, because another replica may have reported
// the grant meanwhile.
func TestRenewalSharesNoOlderRead(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		a, b := s.replica(t), s.replica(t, func(c *service.Config) { c.MaxHold = time.Second })
		holder := b.hold(lasting(want("orders:1", 0)))
		g := b.start(lasting(want("orders:1", time.Hour))).stillWaits()
		after(time.Second)
		a.store.setFeed(frozen)
		s.occupy(t, "other") // the view is behind
		a.store.on(first(1, late(600*time.Millisecond)), queue)
		go func() { _, _ = a.Renew(t.Context(), by(g)) }()
		after(300 * time.Millisecond) // the read is under way, and its answer is late
		b.release(holder)
		after(10 * time.Millisecond)
		told, err := b.Renew(t.Context(), by(g))
		if err != nil || !told.Held {
			t.Fatalf("%+v, %v", told, err)
		}
		again, err := a.Renew(t.Context(), by(g))
		if err != nil || !again.Held {
			t.Errorf(
				"after %d was told that it holds, a renewal elsewhere is answered: held %v, position %d, %v",
				told.Entry.Number, again.Held, again.Position, err,
			)
		}
	})
}
