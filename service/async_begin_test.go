package service_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service"
	"github.com/fencepost/fencepost/test/bubble"
)

// begins fails unless the entry holds for all of its lease from now on.
func (r *replica) begins(g *service.Grant) {
	r.t.Helper()
	now := r.isHeld(g)
	// by how much it may have been renewed before
	if left := time.Until(now.ExpiresAt); left < g.Entry.TTL-250*time.Millisecond {
		r.t.Errorf("held for %v, want a full lease of %v", left, g.Entry.TTL)
	}
}

// TestAsyncFloor: an entry came to hold while nothing could be granted. With the fence
// floor that ends this it has another number, and its lease begins.
func TestAsyncFloor(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		for age := range 10 * time.Second / time.Second {
			s := newSharedStore(t)
			r := s.replica(t)
			r.holdsWithoutTrust(time.Hour)
			after(time.Minute + age*time.Second)
			if err := s.Raise(2_000_000); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			left := s.Entries()
			if len(left) != 1 {
				t.Fatalf("%v are left", left)
			}
			if d, err := r.store.inner.Remaining(t.Context(), left[0]); err != nil || d != ttl {
				t.Errorf("it has a lease of %v, %v, want a full one", d, err)
			}
			after(ttl)
			if left := s.Entries(); len(left) != 0 {
				t.Errorf("it was kept, and nobody claimed it: %v", left)
			}
		}
	})
}

// TestAsyncFloorAfterTheGrant: a fence floor gives another number to an entry that came to
// hold before. Its lease goes on.
func TestAsyncFloorAfterTheGrant(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		r := s.replica(t)
		holder := r.hold(lasting(want("orders:1", 0)))
		g := r.post(want("orders:1", time.Hour))
		r.release(holder)
		r.begins(g)
		after(10 * time.Second)
		if err := s.Raise(2_000_000); err != nil {
			t.Fatal(err)
		}
		after(ttl - 10*time.Second)
		if left := s.Entries(); len(left) != 0 {
			t.Errorf("nobody claimed it, and it is there: %v", left)
		}
	})
}

// TestAsyncGrantInAGap: an entry joins and is granted while its replica has no feed. Its full
// lease begins exactly when the feed returns.
func TestAsyncGrantInAGap(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		r, other := s.replica(t), s.replica(t, keepsNothing)
		r.hold(lasting(want("orders:2", 0)))
		for range 2 {
			r.store.setFeed(lost)
			holder := other.hold(lasting(want("orders:1", 0)))
			g := other.post(want("orders:1", time.Hour))
			after(2 * time.Second)
			other.release(holder)
			after(2 * time.Second)
			r.store.setFeed(running)
			synctest.Wait()
			other.begins(g)
			after(ttl - time.Second)
			r.store.setFeed(lost)
			synctest.Wait()
			r.store.setFeed(running)
			after(time.Second)
			other.has(g, lock.Expired)
		}
	})
}

// TestAsyncGrantSeenAtOnce: a replica that is late hears at one time that an entry joined
// and that it came to hold.
func TestAsyncGrantSeenAtOnce(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		r, other := s.replica(t), s.replica(t, keepsNothing)
		holder := other.hold(lasting(want("orders:1", 0)))
		r.store.setFeed(frozen)
		g := other.post(want("orders:1", time.Hour))
		after(2 * time.Second)
		other.release(holder)
		r.store.setFeed(running)
		synctest.Wait()
		other.begins(g)
	})
}

// TestAsyncGrantOfAnAbsentKeeper: an entry is granted while its keeper has stopped and is still
// on the list. The replica that takes over begins the lease, and no replica does so later.
func TestAsyncGrantOfAnAbsentKeeper(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s, c := newSharedStore(t), &crew{}
		c.set("a")
		a, b := s.replica(t, c.join("a")), s.replica(t, c.join("b"))
		holder := b.hold(lasting(want("orders:1", 0)))
		g := b.post(want("orders:1", time.Hour))
		after(5 * time.Minute)
		a.store.on(silent, allMethods...)
		a.store.setFeed(lost)
		b.release(holder)
		after(5 * time.Second)
		c.set("b")
		b.begins(g)
		for _, live := range []string{"nobody", "b", "nobody", "b"} {
			after(5 * time.Second)
			c.set(live)
		}
		after(10 * time.Second)
		b.has(g, lock.Expired)
	})
}

// TestAsyncGrantBegunBefore: a replica that takes over a share does not restart the lease of an
// old grant.
func TestAsyncGrantBegunBefore(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s, c := newSharedStore(t), &crew{}
		c.set("a")
		a, b := s.replica(t, c.join("a")), s.replica(t, c.join("b"))
		holder := b.hold(lasting(want("orders:1", 0)))
		g := b.post(want("orders:1", time.Hour))
		a.release(holder)
		b.begins(g)
		after(11 * time.Second)
		c.set("b")
		after(ttl - 11*time.Second)
		b.has(g, lock.Expired)
	})
}

// TestAsyncGrantAsItIsHandedOver: an entry is granted just after its replica has left it to a
// replica that has only started. The latter cannot know whether the lease began.
func TestAsyncGrantAsItIsHandedOver(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s, c := newSharedStore(t), &crew{}
		c.set("a")
		a := s.replica(t, c.join("a"))
		holder := a.hold(lasting(want("orders:1", 0)))
		g := a.post(want("orders:1", time.Hour))
		after(time.Minute)
		a.store.setFeed(frozen)
		other := s.replica(t, keepsNothing)
		other.release(holder)
		b := s.replica(t, c.join("b"))
		c.set("b")
		after(time.Second)
		a.store.setFeed(running)
		synctest.Wait()
		b.begins(g)
		after(ttl)
		b.has(g, lock.Expired)
	})
}
