package service_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/test/bubble"
)

// TestGivesWayAtLast: a request reports that the lock is held while the store cannot confirm the
// removal of its entry. The entry does not block others until its lease ends.
func TestGivesWayAtLast(t *testing.T) {
	for _, req := range []string{"", "k"} {
		bubble.Test(t, func(t *testing.T) {
			s := newSharedStore(t)
			r := s.replica(t)
			r.store.setFeed(frozen) // it does not learn which entry is in front
			held := s.occupy(t, "orders:1")
			var asked atomic.Int64
			r.store.on(func(ctx context.Context, do func() error) error {
				if n := asked.Add(1); n > 1 && n < 5 {
					return unavailable(false)
				}
				return do()
			}, queue)
			r.start(lasting(keyed("orders:1", 0, req))).fails(lock.Held)
			after(5 * time.Second)
			if ids := s.ids(); len(ids) != 1 || ids[0] != held.ID {
				t.Errorf("left in the store: %v", ids)
			}
		})
	}
}

// TestGrantToAnotherRequestStays: a try with a key cannot be removed at once, and its entry is
// granted. Another request with the key gets the grant, and the late removal leaves it.
func TestGrantToAnotherRequestStays(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		a, b := s.replica(t), s.replica(t)
		a.store.setFeed(frozen) // it does not learn which entry is in front
		held := s.occupy(t, "orders:1")
		var asked atomic.Int64
		a.store.on(func(ctx context.Context, do func() error) error {
			if asked.Add(1) > 1 && asked.Load() < 5 {
				return unavailable(false)
			}
			return do()
		}, queue)
		req := lasting(keyed("orders:1", 0, "k"))
		a.start(req).fails(lock.Held)
		if err := s.end(held, lock.Released); err != nil {
			t.Fatal(err)
		}
		g := b.hold(req)
		after(5 * time.Second)
		if ids := s.ids(); len(ids) != 1 || ids[0] != g.Entry.ID {
			t.Errorf("left in the store: %v", ids)
		}
	})
}

// TestKeyThatEndedUnseen: a repeated request finds its entry in a view that is late.
// The store knows better, and says why it ended.
func TestKeyThatEndedUnseen(t *testing.T) {
	for _, wait := range []time.Duration{0, time.Minute} {
		bubble.Test(t, func(t *testing.T) {
			s := newSharedStore(t)
			a, b := s.replica(t), s.replica(t)
			req := keyed("orders:1", wait, "k")
			g := a.hold(req)
			b.store.setFeed(frozen)
			a.release(g)
			b.start(req).ends(lock.Released)
			if n := len(s.ids()); n != 0 {
				t.Errorf("%d entries", n)
			}
		})
	}
}

// TestWaitThatWasOver: a repeated request finds its entry in a view that is late, where
// its wait is over. It was over before the request began, when the lock may have been
// held; now that is free.
func TestWaitThatWasOver(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		a, b := s.replica(t), s.replica(t)
		req := keyed("orders:1", 10*time.Second, "k")
		holder := a.hold(lasting(want("orders:1", 0)))
		p := a.line(req)
		b.store.setFeed(frozen)
		p.fails(lock.TimedOut)
		a.release(holder)
		b.store.on(broken, refresh)
		b.store.on(func(_ context.Context, do func() error) error {
			b.store.setFeed(running)
			return do()
		}, remove)
		b.start(req).ends(lock.WaitTimeout)
	})
}

// TestGrantThatIsYetToBeTold: a feed that resumes has many events before a release. A waiter need
// not wait for that.
func TestGrantThatIsYetToBeTold(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		a, b := s.replica(t), s.replica(t)
		holder := a.hold(lasting(want("orders:1", 0)))
		p := b.line(lasting(want("orders:1", time.Minute)))
		b.store.setFeed(lost)
		a.release(holder)
		b.store.setFeed(retelling)
		began := time.Now()
		p.holdsLater()
		if took := p.at.Sub(began); took > time.Second {
			t.Errorf("it is told after %v", took)
		}
	})
}
