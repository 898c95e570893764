package service_test

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service"
	"github.com/fencepost/fencepost/test/bubble"
)

// anyOf asks for some of the locks.
func anyOf(some int, wait time.Duration, names ...string) service.AcquireRequest {
	req := want(names[0], wait)
	req.Set, req.Any = true, some
	for _, name := range names[1:] {
		req.Claims = append(req.Claims, lock.Claim{Name: name, Mode: lock.Exclusive})
	}
	return req
}

// locksOf returns the names of a grant's locks.
func locksOf(g *service.Grant) string {
	var names []string
	for _, c := range g.Entry.Claims {
		names = append(names, c.Name)
	}
	return strings.Join(names, " ")
}

// has wants a grant of just these locks.
func hasLocks(t *testing.T, g *service.Grant, want string) *service.Grant {
	t.Helper()
	if locksOf(g) != want || !g.Held {
		t.Fatalf("has %q, held %t, want %q", locksOf(g), g.Held, want)
	}
	return g
}

// TestPoolIsGivenInTheOrderOfTheRequests: an earlier request gets the first lock that is free, and
// of several free ones the first that it named.
func TestPoolIsGivenInTheOrderOfTheRequests(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		r := newSharedStore(t).replica(t)
		g := hasLocks(t, r.hold(lasting(anyOf(1, 0, "c", "a", "b"))), "c")
		if g.Waited != 0 || g.Entry.Any != 1 || !g.ExpiresAt.Equal(time.Now().Add(time.Hour)) {
			t.Errorf("granted with %+v", g)
		}
		two := hasLocks(t, r.hold(lasting(anyOf(2, time.Minute, "a", "b", "c"))), "a b")
		first, second := r.line(anyOf(1, time.Minute, "c", "b")), r.line(anyOf(1, time.Minute, "c", "b"))
		whole := r.line(anyOf(2, time.Minute, "a", "b"))
		after(time.Second)
		r.release(g)
		if got := hasLocks(t, first.holds(), "c"); got.Waited != time.Second ||
			got.Entry.Number < two.Entry.Number {
			t.Errorf("granted with %+v", got)
		}
		second.waits()
		r.release(two)
		hasLocks(t, second.holds(), "b")
		whole.waits()
		r.release(second.grant)
		hasLocks(t, whole.holds(), "a b")
	})
}

// TestPoolThatIsBusy: a try, and a wait that is over, leave all queues. They read none, because
// queues are long.
func TestPoolThatIsBusy(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		r := s.replica(t)
		for _, name := range []string{"a", "b"} {
			r.hold(lasting(want(name, 0)))
		}
		p := r.start(anyOf(1, 0, "b", "a"))
		if p.fails(lock.Held); len(p.grant.Busy) != 2 {
			t.Errorf("refused with %+v", p.grant)
		}
		r.line(anyOf(1, time.Second, "b", "a")).fails(lock.TimedOut)
		if n := len(s.ids()); n != 2 {
			t.Errorf("%d entries are left, want 2", n)
		}
		if n := r.store.count(queue); n != 0 {
			t.Errorf("read %d queues of the store", n)
		}
	})
}

// TestPoolThatIsDecidedTwice: two replicas that wait for one entry both decide; they answer alike.
func TestPoolThatIsDecidedTwice(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		one, other := s.replica(t), s.replica(t)
		a, b := one.hold(want("a", 0)), one.hold(want("b", 0))
		req := anyOf(1, time.Minute, "a", "b")
		req.IdempotencyKey = "k"
		first, second := one.line(req), other.line(req)
		one.store.on(slow(100*time.Millisecond), narrow) // it chooses a, and is late
		other.store.setFeed(frozen)
		one.release(a)
		other.store.setFeed(running)
		one.release(b)
		x, y := first.holdsLater(), second.holdsLater()
		if x.Token != y.Token || locksOf(x) != locksOf(y) || len(x.Entry.Claims) != 1 {
			t.Errorf("the replicas answered %q and %q", locksOf(x), locksOf(y))
		}
	})
}

// TestPoolThatIsGrantedAtTheEndOfAWait: a grant by another replica stays, and a request whose view
// stands still gets what came free.
func TestPoolThatIsGrantedAtTheEndOfAWait(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		one, other := s.replica(t), s.replica(t)
		a, b := one.hold(lasting(want("a", 0))), one.hold(lasting(want("b", 0)))
		waits := other.line(anyOf(1, 40*time.Second, "a", "b"))
		other.store.setFeed(frozen)
		other.store.on(slow(time.Second), remove)
		after(40*time.Second + time.Millisecond) // its last look showed that both are taken
		one.release(a)
		e := s.Entries()[1]
		g, err := one.Renew(t.Context(), service.TokenRequest{
			Tenant: e.Tenant, Set: true, ID: e.ID, Token: one.Token(e),
		})
		if err != nil {
			t.Fatal(err)
		}
		if got := waits.holdsLater(); got.Token != hasLocks(t, g, "a").Token || locksOf(got) != "a" {
			t.Errorf("the replicas answered %q and %q", locksOf(g), locksOf(got))
		}
		other.store.setFeed(running)
		late := other.line(anyOf(1, 40*time.Second, "b", "a"))
		other.store.setFeed(frozen)
		after(time.Second)
		one.release(b)
		late.waits()
		hasLocks(t, late.holdsLater(), "b")
	})
}

// TestPoolWithoutAFeed: a replica that is cut off from the feed reads the queues itself.
func TestPoolWithoutAFeed(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		r, other := s.replica(t), s.replica(t)
		held, b := other.hold(lasting(want("a", 0))), other.hold(lasting(want("b", 0)))
		r.store.setFeed(lost)
		synctest.Wait()
		p := r.line(anyOf(1, time.Minute, "a", "b"))
		try := r.start(anyOf(1, 0, "a", "b"))
		try.fails(lock.Held)
		other.release(held)
		hasLocks(t, p.holdsLater(), "a")
		other.release(b)
		hasLocks(t, r.start(anyOf(1, 0, "a", "b")).holdsLater(), "b")
	})
}

// TestPoolOfUnknownOutcome: a try whose grant has an unknown outcome does not learn that the locks
// are held. It may hold one of them, and a retry with its key gets it.
func TestPoolOfUnknownOutcome(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		r, other := s.replica(t), s.replica(t)
		r.store.setFeed(frozen)
		a := other.hold(lasting(want("a", 0)))
		other.hold(lasting(want("b", 0)))
		r.store.on(slow(100*time.Millisecond), queue)
		r.store.on(first(1, deaf), narrow)
		req := anyOf(1, 0, "a", "b")
		req.IdempotencyKey = "k"
		try := r.start(req)
		after(500 * time.Millisecond) // it has seen that it waits, and looks a last time
		other.release(a)
		if e := try.fails(lock.StoreUnavailable); !e.OutcomeUnknown {
			t.Errorf("answered %+v", e)
		}
		hasLocks(t, other.start(req).holdsLater(), "a")
	})
}

// lossy is a store in which a person has deleted what shows an entry of a pool in one queue.
type lossy struct {
	*client
	lacks string
	reads atomic.Int64
}

func (l *lossy) Queue(ctx context.Context, r lock.Ref) ([]*lock.Entry, uint64, error) {
	if l.reads.Add(1) > 1000 {
		return nil, 0, unavailable(false)
	}
	entries, number, err := l.client.Queue(ctx, r)
	if r.Name == l.lacks {
		entries = slices.DeleteFunc(entries, func(e *lock.Entry) bool { return e.Any > 0 })
	}
	return entries, number, err
}

// TestPoolThatIsMissingInAQueue: a replica that reads the queues itself does not read them again
// and again for an entry that one of them lacks. It grants another lock.
func TestPoolThatIsMissingInAQueue(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		other, l := s.replica(t), &lossy{client: newClient(s), lacks: "b"}
		r := s.replicaWith(t, l.client, func(c *service.Config) { c.Store = l })
		a := other.hold(lasting(want("a", 0)))
		other.hold(lasting(want("b", 0)))
		r.store.setFeed(lost)
		synctest.Wait()
		p := r.line(anyOf(1, time.Minute, "a", "b"))
		after(time.Second)
		if n := l.reads.Load(); n > 50 {
			t.Fatalf("%d reads in a second", n)
		}
		other.release(a)
		hasLocks(t, p.holdsLater(), "a")
	})
}

// TestPoolByToken: a request with its token grants an entry that can choose.
func TestPoolByToken(t *testing.T) {
	for name, ask := range map[string]func(*replica, *service.Grant) (*service.Grant, error){
		"renew": func(r *replica, g *service.Grant) (*service.Grant, error) {
			return r.Renew(r.t.Context(), by(g))
		},
		"look": func(r *replica, g *service.Grant) (*service.Grant, error) {
			return r.Entry(r.t.Context(), by(g), 0)
		},
		"wait": func(r *replica, g *service.Grant) (*service.Grant, error) {
			return r.Entry(r.t.Context(), by(g), time.Second)
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				r := newSharedStore(t).replica(t)
				a := r.hold(lasting(want("a", 0)))
				r.hold(lasting(want("b", 0)))
				req := anyOf(1, time.Hour, "b", "a")
				req.Hold = time.Second
				waits := r.start(req).stillWaits()
				if waits.Position != 1 || len(waits.Places) != 2 || waits.Places[0].Position != 1 {
					t.Errorf("waits at %+v", waits)
				}
				r.release(a)
				g, err := ask(r, waits)
				if err != nil {
					t.Fatal(err)
				}
				hasLocks(t, g, "a")
				if g, err = ask(r, waits); err != nil {
					t.Fatal(err)
				}
				r.release(hasLocks(t, g, "a"))
			})
		})
	}
}

// TestAsyncPool: the replicas keep its entry, and take the first lock that comes free.
func TestAsyncPool(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		r := newSharedStore(t).replica(t)
		hasLocks(t, r.post(lasting(anyOf(1, time.Hour, "b", "a"))), "b")
		a := r.hold(lasting(want("a", 0)))
		g := r.post(anyOf(1, time.Hour, "b", "a"))
		if g.Held || len(g.Places) != 2 {
			t.Fatalf("answered %+v", g)
		}
		over := r.post(anyOf(1, time.Minute, "b", "a"))
		after(2 * time.Minute)
		r.has(over, lock.WaitTimeout)
		r.release(a)
		hasLocks(t, r.isHeld(g), "a")
		after(ttl)
		r.has(g, lock.Expired)
	})
}

// TestPoolKey: a retry repeats how many locks it asks for, and their order.
func TestPoolKey(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		r := newSharedStore(t).replica(t)
		ask := func(some int, names ...string) *pending {
			req := lasting(anyOf(some, time.Minute, names...))
			req.IdempotencyKey = "k"
			return r.start(req)
		}
		g := hasLocks(t, ask(1, "c", "b", "a").holds(), "c")
		if again := ask(1, "c", "b", "a").holds(); again.Token != g.Token || !again.Replayed {
			t.Errorf("the retry got %+v", again)
		}
		ask(1, "a", "b", "c").fails(lock.IdempotencyMismatch)
		ask(2, "c", "b", "a").fails(lock.IdempotencyMismatch)
		ask(0, "c", "b", "a").fails(lock.IdempotencyMismatch)
	})
}

// TestPoolBounds: it asks for one lock at least, and for no more than it names.
func TestPoolBounds(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		r := newSharedStore(t).replica(t)
		for _, some := range []int{-1, 3} {
			if e := r.start(anyOf(some, 0, "a", "b")).fails(lock.InvalidRequest); e.Field != "any" {
				t.Errorf("any %d is refused with %+v", some, e)
			}
		}
		one := want("a", 0)
		one.Any = 1
		r.start(one).fails(lock.InvalidRequest)
		hasLocks(t, r.hold(anyOf(2, 0, "b", "a")), "a b")
	})
}

// TestClosedLocksOfAPool are left out when a request joins, as long as enough others are open.
func TestClosedLocksOfAPool(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		r, book := s.closable(false)
		for _, name := range []string{"a", "b"} {
			if _, err := book.Close(t.Context(), closeRequest(name)); err != nil {
				t.Fatal(err)
			}
		}
		r.start(anyOf(2, 0, "a", "b", "c")).fails(lock.Closed)
		hasLocks(t, r.hold(lasting(anyOf(1, 0, "a", "b", "c"))), "c")
		hasLocks(t, r.hold(anyOf(1, 0, "a", "e", "c", "d")), "e")
		var names []string
		for _, e := range s.Entries() {
			for _, c := range e.Claims {
				names = append(names, c.Name)
			}
		}
		slices.Sort(names)
		if diff := cmp.Diff([]string{"c", "e"}, names); diff != "" {
			t.Errorf("entries have (-want +got):\n%s", diff)
		}
	})
}
