package service_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/test/bubble"
)

// TestNoGrantAheadInAnotherHistory: a replica whose feed is interrupted does not take the numbers
// of a restored store for the next ones of its view, and grants nothing that another client holds.
func TestNoGrantAheadInAnotherHistory(t *testing.T) {
	for name, f := range map[string]feed{"lost": lost, "frozen": frozen} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				s := newSharedStore(t)
				b := s.replica(t)
				backup := s.Checkpoint()
				b.release(b.hold(want("x", 0)))
				b.release(b.hold(want("x", 0)))
				b.store.setFeed(f)
				synctest.Wait()
				saw := s.Number()
				s.Restore(backup)
				c := s.replica(t)
				held := c.hold(lasting(want("x", 0)))
				for s.Number() < saw {
					c.hold(lasting(want(fmt.Sprint("filler", s.Number()), 0)))
				}
				p := b.start(lasting(want("x", time.Second)))
				after(3 * time.Second)
				if p.answered() && p.err == nil && p.grant.Held {
					t.Errorf("granted %d while %d holds", p.grant.Entry.Number, held.Entry.Number)
				}
			})
		})
	}
}

// TestNoGrantAheadOfALapsedEntry: the store answers the write after the entry's lease ended, and
// the feed is late.
func TestNoGrantAheadOfALapsedEntry(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		a, b := s.replica(t), s.replica(t)
		a.store.setFeed(frozen)
		a.store.on(late(3*time.Second), enqueue)
		req := want("x", time.Minute)
		req.TTL = minTTL
		p := a.start(req)
		after(2500 * time.Millisecond)
		other := b.hold(lasting(want("x", 0)))
		<-p.done
		if p.err == nil && p.grant.Held {
			t.Errorf("granted %d while %d holds", p.grant.Entry.Number, other.Entry.Number)
		}
	})
}

// TestLateAnswerTellsTheWait: an entry that came to hold before the store answered the write has
// waited since it joined.
func TestLateAnswerTellsTheWait(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		a := s.replica(t)
		h := a.hold(lasting(want("orders:1", 0)))
		a.store.on(late(3*time.Second), enqueue)
		p := a.start(want("orders:1", time.Minute))
		after(2 * time.Second)
		a.release(h)
		if g := p.holdsLater(); g.Waited != 2*time.Second {
			t.Errorf("waited %v, want 2s", g.Waited)
		}
	})
}

// TestAsyncIsToldWhyItIsRefused: another replica takes an entry without a key back before the
// answer.
func TestAsyncIsToldWhyItIsRefused(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		a, b := s.replica(t), s.replica(t, keepsNothing)
		b.store.setFeed(frozen)
		a.hold(lasting(want("orders:1", 0)))
		p := b.start(async(semaphore(3, want("orders:1", time.Hour))))
		after(100 * time.Millisecond)
		b.store.setFeed(running)
		p.fails(lock.ModeMismatch)
	})
}
