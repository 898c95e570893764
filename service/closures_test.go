package service_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencepost/fencepost/audit"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service"
	"github.com/fencepost/fencepost/service/view"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/test/bubble"
)

// closer is a replica at which operators close locks.
func (s *sharedStore) closer(t *testing.T) *replica {
	t.Helper()
	c := newClient(s)
	return s.replicaWith(t, c, func(cfg *service.Config) { cfg.Records = c.inner.Records() })
}

// closing asks that locks of acme are closed for a time.
func closing(locks string, length time.Duration) service.CloseRequest {
	return service.CloseRequest{
		Tenant: "acme", Locks: locks, Until: time.Now().Add(length), Reason: "the stock is counted",
		By: audit.Who{Subject: "ops", Tenant: "home", Scope: "admin"},
	}
}

func (r *replica) closes(req service.CloseRequest) view.Closing {
	r.t.Helper()
	made, err := r.CloseLocks(r.t.Context(), req)
	if err != nil {
		r.t.Fatalf("close: %v", err)
	}
	synctest.Wait()
	return made
}

func (r *replica) opens(id lock.ID) {
	r.t.Helper()
	if err := r.OpenLocks(r.t.Context(), opening(id)); err != nil {
		r.t.Fatalf("open: %v", err)
	}
	synctest.Wait()
}

func opening(id lock.ID) service.OpenRequest {
	return service.OpenRequest{ID: id, Reason: "", By: audit.Who{Subject: "ops", Tenant: "home"}, May: func(string, string) bool { return true }}
}

func (r *replica) standing(n int) []view.Closing {
	r.t.Helper()
	all, err := r.Closures(r.t.Context(), "")
	if err != nil || len(all) != n {
		r.t.Fatalf("%d closures stand, %v, want %d", len(all), err, n)
	}
	return all
}

// TestClosure: who holds goes on, who waits keeps his place, and nobody new is granted, at any
// replica, one that started later included.
func TestClosure(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		a, b := s.closer(t), s.closer(t)
		held := a.hold(lasting(want("orders:1", 0)))
		waiter := b.line(lasting(want("orders:1", time.Minute)))
		c := a.closes(closing("orders:*", 20*time.Second))

		late := s.replica(t)
		for _, r := range []*replica{a, b, late} {
			for _, name := range []string{"orders:1", "orders:2"} {
				refused := r.start(want(name, 0)).fails(lock.Closed)
				if refused.Closing == nil || !refused.Closing.Until.Equal(c.Entry.Closing.Until) || refused.Closing.Reason != "the stock is counted" || refused.RetryAfter != 20*time.Second {
					t.Errorf("%s is refused with %+v", name, refused)
				}
			}
			if _, err := r.Renew(t.Context(), by(held)); err != nil {
				t.Errorf("the holder cannot renew: %v", err)
			}
			r.release(r.hold(want("stock:1", 0)))
			q, err := r.Lock(t.Context(), lock.Ref{Tenant: "acme", Name: "orders:1"}, true)
			if err != nil || q.Closing == nil || len(q.Holders) != 1 || len(q.Waiters) != 1 {
				t.Errorf("a look shows %+v, %v", q, err)
			}
		}
		newcomer := late.line(lasting(want("orders:2", time.Minute)))
		late.release(held)
		waiter.waits()
		if q, _ := a.Lock(t.Context(), lock.Ref{Tenant: "acme", Name: "orders:1"}, true); len(q.Holders) != 0 || q.Waiting != 1 {
			t.Errorf("after the release it has %+v", q.Queue)
		}
		if late.standing(1); len(s.onRecord(t)) != 1 {
			t.Error("it is not on record")
		}
		after(20 * time.Second) // it ends by itself
		waiter.holds()
		newcomer.holds()
		b.standing(0)
		if left := s.Entries(); len(left) != 2 {
			t.Errorf("the store has %v", left)
		}
	})
}

// TestOpenLocks: who waits is granted at once, and both are on record.
func TestOpenLocks(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		a, b := s.closer(t), s.closer(t)
		c := a.closes(closing("x", time.Hour))
		waiter := a.line(want("x", time.Minute))
		not := opening(c.Entry.ID)
		not.May = func(tenant, locks string) bool { return tenant != "acme" || locks != "x" }
		coded(t, b.OpenLocks(t.Context(), not), lock.NotFound)
		b.opens(c.Entry.ID)
		waiter.holds()
		coded(t, b.OpenLocks(t.Context(), opening(c.Entry.ID)), lock.NotFound)
		rows := s.onRecord(t)
		if len(rows) != 2 || rows[0].Action != audit.OpenLocks && rows[1].Action != audit.OpenLocks || rows[0].Tenant != "acme" {
			t.Errorf("on record: %+v", rows)
		}
		after(time.Second)
		if left := s.Entries(); len(left) != 1 {
			t.Errorf("the store has %v", left)
		}
	})
}

// TestClosureIsChecked refuses what cannot be, before anything is written.
func TestClosureIsChecked(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		r := s.closer(t)
		for field, change := range map[string]func(*service.CloseRequest){
			"locks":  func(c *service.CloseRequest) { c.Locks = "" },
			"reason": func(c *service.CloseRequest) { c.Reason = "why not" },
			"until":  func(c *service.CloseRequest) { c.Until = time.Now() },
			"until ": func(c *service.CloseRequest) { c.Until = time.Now().Add(lock.MaxClosing + time.Second) },
		} {
			req := closing("x", time.Hour)
			change(&req)
			_, err := r.CloseLocks(t.Context(), req)
			if e := coded(t, err, lock.InvalidRequest); e.Field+" " != field+" " && e.Field != "until" {
				t.Errorf("%s: %v", field, err)
			}
		}
		for range lock.MaxClosures - 1 {
			r.closes(closing("x", time.Hour))
		}
		r.closes(closing("x", 20*time.Second)) // whose end is the next one
		_, err := r.CloseLocks(t.Context(), closing("x", time.Hour))
		if e := coded(t, err, lock.QuotaExceeded); e.RetryAfter > 20*time.Second || e.RetryAfter < 10*time.Second {
			t.Errorf("it may be tried again after %v", e.RetryAfter)
		}
		if n := len(s.onRecord(t)); n != lock.MaxClosures {
			t.Errorf("%d are on record", n)
		}
		other := closing("x", time.Hour)
		other.Tenant = "other"
		r.closes(other)
	})
}

// TestTryAtAReplicaThatIsLate: it wrote its entry before it knew of the closure, and gives way to that.
func TestTryAtAReplicaThatIsLate(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		a, late := s.closer(t), s.replica(t)
		late.store.setFeed(frozen)
		c := a.closes(closing("x", time.Hour))
		if e := late.start(want("x", 0)).fails(lock.Closed); e.Closing == nil {
			t.Errorf("%+v", e)
		}
		key := late.start(keyed("x", 0, "k"))
		key.fails(lock.Closed)
		waiter := late.line(want("x", time.Minute))
		after(2 * time.Second)
		waiter.waits()
		a.opens(c.Entry.ID)
		waiter.holdsLater()
	})
}

// TestReplicaThatDoesNotKnowTheEnd: its view still has the closure, and the store has none.
func TestReplicaThatDoesNotKnowTheEnd(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		a, late := s.closer(t), s.replica(t)
		c := a.closes(closing("x", time.Hour))
		late.store.setFeed(frozen)
		a.opens(c.Entry.ID)
		late.start(keyed("x", 0, "k")).holdsLater()
		if g := a.start(keyed("x", 0, "k")).holds(); g.Entry.Tenant != "acme" {
			t.Errorf("%+v", g)
		}
	})
}

// TestReadWhileAClosureEnds: a replica whose feed stands reads the queue while locks are closed. Before
// it reads the closures the entry in front leaves, and then the closure ends: the entry never held.
func TestReadWhileAClosureEnds(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		a, late := s.closer(t), s.replica(t)
		late.store.setFeed(frozen)
		c := a.closes(closing("x", time.Hour))
		g := a.post(want("x", time.Hour))
		reads := 0
		late.store.on(func(ctx context.Context, do func() error) error {
			err := do()
			if reads++; reads != 2 { // the first finds the entry
				return err
			}
			if gone := a.Release(ctx, by(g)); gone != nil {
				t.Error(gone)
			}
			if opened := a.OpenLocks(ctx, opening(c.Entry.ID)); opened != nil {
				t.Error(opened)
			}
			return err
		}, queue)
		if got, err := late.state(g); err == nil {
			t.Errorf("it is told that the entry is there, held: %v", got.Held)
		}
	})
}

// TestTimeoutsWhileClosed: a wait ends though nobody is in front.
func TestTimeoutsWhileClosed(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		r := s.closer(t)
		r.closes(closing("x", time.Hour))
		began := time.Now()
		waiter := r.line(want("x", 5*time.Second))
		if e := waiter.fails(lock.TimedOut); e.Closing == nil || e.RetryAfter != 30*time.Second {
			t.Errorf("%+v", e)
		}
		took(t, began, 5*time.Second)
	})
}

// TestRollOfAnother: the replica that was asked stops before it has written who holds. Another one
// does; until then, a replica that started meanwhile does not say that somebody waits who holds.
func TestRollOfAnother(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		a, b := s.closer(t), s.closer(t)
		held := b.hold(lasting(want("x", 0)))
		b.line(lasting(want("x", time.Minute)))
		a.unrecorded()
		a.closes(closing("x", time.Hour))
		late := s.replica(t)
		_, err := late.Renew(t.Context(), by(held))
		coded(t, err, lock.StoreUnavailable)
		after(3 * time.Second)
		for _, r := range []*replica{a, b, late} {
			if g, err := r.Renew(t.Context(), by(held)); err != nil || !g.Held {
				t.Errorf("the holder is told %+v, %v", g, err)
			}
		}
	})
}

// TestUnsettledClosureEnds: nobody is left who knows who held.
func TestUnsettledClosureEnds(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		ref := lock.ClosuresOf("acme")
		locks, _ := lock.ParsePattern("x")
		first := s.replica(t)
		g := first.hold(lasting(want("x", 0)))
		first.Close()
		if _, _, err := s.insert(&lock.Entry{
			ID: service.NumberedID(1), Tenant: ref.Tenant, Claims: []lock.Claim{{Name: ref.Name, Mode: lock.Exclusive}}, TTL: lock.MaxTTL,
			EnqueuedAt: time.Now(), Closing: &lock.Closing{Locks: locks, Until: time.Now().Add(time.Hour), Reason: "the stock is counted", By: "ops"},
		}); err != nil {
			t.Fatal(err)
		}
		late := s.closer(t)
		_, err := late.Renew(t.Context(), by(g))
		coded(t, err, lock.StoreUnavailable)
		_, err = late.CloseLocks(t.Context(), closing("x", time.Hour)) // it could not tell who holds
		coded(t, err, lock.StoreUnavailable)
		after(16 * time.Second)
		if g, err := late.Renew(t.Context(), by(g)); err != nil || !g.Held {
			t.Errorf("%+v, %v", g, err)
		}
	})
}

// TestGivesWayWhileItStands: a replica does not know that the closure has ended, and that another
// one has granted the entry whose wait is over there.
func TestGivesWayWhileItStands(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		a, late := s.closer(t), s.replica(t)
		c := a.closes(closing("x", time.Hour))
		req := lasting(keyed("x", 5*time.Second, "k"))
		waiter := late.line(req)
		late.store.setFeed(frozen)
		a.opens(c.Entry.ID)
		g := a.start(req).holds()
		if told := waiter.holdsLater(); told.Entry.ID != g.Entry.ID {
			t.Errorf("%s holds, and %s", told.Entry.ID, g.Entry.ID)
		}
		a.release(g)
	})
}

// TestRenewalWhileInDoubt: a replica that does not know yet who held begins the lease anew of a
// holder, also of one that had waited and whose wait would be over by now.
func TestRenewalWhileInDoubt(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		first := s.closer(t)
		before := first.hold(want("x", 0))
		waiter := first.line(want("x", 5*time.Second))
		first.release(before)
		g := waiter.holds()
		after(6 * time.Second)
		first.unrecorded()
		first.closes(closing("x", time.Hour))
		late := s.replica(t)
		_, err := late.Renew(t.Context(), by(g))
		coded(t, err, lock.StoreUnavailable)
		if n := len(late.store.times(refresh, g.Entry.ID)); n != 1 {
			t.Errorf("its lease was begun anew %d times", n)
		}
	})
}

// TestLooksWhileInDoubt: a replica that does not know who held shows no holder as one who waits, and
// puts nothing of the kind on record.
func TestLooksWhileInDoubt(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		a, b := s.closer(t), s.closer(t)
		g := b.hold(lasting(want("x", 0)))
		a.unrecorded()
		a.closes(closing("x", time.Hour))
		late := s.closer(t)
		_, err := late.Lock(t.Context(), ref("x"), true)
		coded(t, err, lock.StoreUnavailable)
		late.revokeFails(revoking(g), lock.StoreUnavailable)
		if _, err := late.Lock(t.Context(), ref("y"), true); err != nil {
			t.Errorf("a lock of which nothing is in doubt: %v", err)
		}
		after(3 * time.Second)
		if q, err := late.Lock(t.Context(), ref("x"), true); err != nil || len(q.Holders) != 1 {
			t.Errorf("%+v, %v", q, err)
		}
		if done := late.revoke(revoking(g)); !done.Held {
			t.Error("the record says that it waited")
		}
	})
}

// TestRollThatALateReplicaDoesNotSee: it listed before who held was written, and its feed stands since.
// It does not end the closure.
func TestRollThatALateReplicaDoesNotSee(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		a := s.closer(t)
		a.unrecorded()
		a.closes(closing("x", time.Minute))
		late := s.replica(t)
		late.store.setFeed(frozen)
		a.store.on(nil, enqueue)
		after(20 * time.Second)
		if all := a.standing(1); !all[0].Recorded {
			t.Error("who held was not written")
		}
		late.store.setFeed(running)
		after(time.Second)
		if all := late.standing(1); !all[0].Recorded {
			t.Error("the late replica does not know who held")
		}
		after(40 * time.Second)
		late.standing(0)
	})
}

// TestClosureEndsWithoutRoll: who held can never be written, and its time is over all the same.
func TestClosureEndsWithoutRoll(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		r := s.closer(t)
		r.unrecorded()
		r.closes(closing("x", 10*time.Second))
		after(9 * time.Second)
		r.standing(1)
		after(3 * time.Second)
		r.standing(0)
	})
}

// unrecorded has the replica begin closures, and write nothing after them.
func (r *replica) unrecorded() {
	var asked atomic.Int32
	r.store.on(func(_ context.Context, do func() error) error {
		if asked.Add(1) > 1 {
			return store.Unavailable(errors.New("it stopped"), "put", false)
		}
		return do()
	}, enqueue)
}
