package service_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service"
	"github.com/fencepost/fencepost/test/bubble"
)

// TestAsyncWithoutAFeed: an entry that was accepted while the only replica did not see what
// happens is kept, for as long as that lasts, and its wait ends in time.
func TestAsyncWithoutAFeed(t *testing.T) {
	for name, f := range map[string]feed{"frozen": frozen, "lost": lost} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				s := newSharedStore(t)
				r := s.replica(t)
				holder := r.hold(lasting(want("orders:1", 0)))
				r.store.setFeed(f)
				post := func(wait time.Duration) *service.Grant {
					p := r.start(async(want("orders:1", wait)))
					return p.stillWaits()
				}
				short, given, long := post(2*time.Minute), post(time.Hour), post(time.Hour)
				after(5 * time.Minute)
				if s.has(short.Entry.ID) || !s.has(given.Entry.ID) || !s.has(long.Entry.ID) {
					t.Errorf(
						"left are %v, of %v, whose wait was over, %v and %v", s.ids(), short.Entry.ID, given.Entry.ID,
						long.Entry.ID,
					)
				}
				if k := r.store.count(refresh); k > 150 {
					t.Errorf("renewed %d times", k)
				}
				r.release(given)
				after(time.Minute)
				r.store.setFeed(running)
				after(5 * time.Minute)
				r.waitsAt(long, 1)
				if n := r.Kept(); n != 1 {
					t.Errorf("%d entries are kept, want one", n)
				}
				r.release(holder)
				r.begins(long)
			})
		})
	}
}

// TestAsyncGivenAndNotKept: a replica does not keep forever an entry that it wrote,
// that is another's to keep, and that ended before it saw it.
func TestAsyncGivenAndNotKept(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		r := s.replica(t, keepsNothing)
		r.hold(lasting(want("orders:1", 0)))
		r.store.setFeed(lost)
		g := r.start(async(want("orders:1", time.Hour))).stillWaits()
		r.release(g)
		r.store.setFeed(running)
		synctest.Wait()
		if n := r.Kept(); n != 0 {
			t.Errorf("%d entries are remembered", n)
		}
	})
}

// TestAsyncRefusedWithoutAView: a replica that has not seen for long what happens accepts
// nothing that has to be kept, and writes nothing.
func TestAsyncRefusedWithoutAView(t *testing.T) {
	t.Run("lost", func(t *testing.T) { refusedWithoutAView(t, lost) })
	t.Run("retelling", func(t *testing.T) { refusedWithoutAView(t, retelling) })
}

func refusedWithoutAView(t *testing.T, f feed) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		r := s.replica(t)
		r.hold(lasting(want("orders:1", 0)))
		known := r.post(keyed("orders:1", time.Hour, "known"))
		r.store.setFeed(lost)
		synctest.Wait()
		s.occupy(t, "orders:2")
		r.store.setFeed(f)
		after(3*time.Second + time.Millisecond)
		before := r.store.count(enqueue)
		if e := r.start(async(want("orders:1", time.Hour))).fails(
			lock.StoreUnavailable,
		); e.OutcomeUnknown {
			t.Errorf("it may have taken effect: %v", &e)
		}
		if e := r.start(async(keyed("orders:1", time.Hour, "k"))).fails(
			lock.StoreUnavailable,
		); !e.OutcomeUnknown {
			t.Errorf("an earlier request cannot have taken effect: %v", &e)
		}
		same(t, known, r.start(async(keyed("orders:1", time.Hour, "known"))).stillWaits())
		if n := r.store.count(enqueue); n != before {
			t.Errorf("%d were written", n-before)
		}
		r.store.setFeed(running)
		synctest.Wait()
		r.post(want("orders:1", time.Hour))
	})
}
