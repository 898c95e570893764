package service_test

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/quota"
	"github.com/fencepost/fencepost/service"
	"github.com/fencepost/fencepost/test/bubble"
)

// exceeds reports whether p was refused for a limit, with so many in use.
func (p *pending) exceeds(t *testing.T, l quota.Limit, limit, used int) {
	t.Helper()
	e := p.fails(lock.QuotaExceeded)
	if q := e.Quota; q == nil || *q != (lock.Exceeded{Name: l.String(), Limit: limit, Used: used}) ||
		e.RetryAfter == 0 || e.OutcomeUnknown {
		t.Errorf("refused with %+v, %+v; want %s with %d of %d", e, q, l, used, limit)
	}
}

// foreign is the same request of another tenant.
func foreign(req service.AcquireRequest) service.AcquireRequest {
	req.Tenant = "globex"
	return req
}

func noted(req service.AcquireRequest, bytes int) service.AcquireRequest {
	req.Metadata = map[string]string{"k": strings.Repeat("v", bytes-1)}
	return req
}

// TestLimitOfHeldLocks: each held lock counts, each lock of a set, and each holder of a
// semaphore. Waiters do not count, and are granted in order. Other tenants have their own limit.
func TestLimitOfHeldLocks(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		r := s.replica(
			t, func(c *service.Config) { c.Limits = limited(quota.Overrides{"held_locks": 4}) },
		)
		set := r.hold(lasting(pair("a", "b")))
		place := semaphore(9, lasting(want("s", 0)))
		r.hold(place)
		r.start(lasting(pair("c", "d"))).exceeds(t, quota.HeldLocks, 4, 3)
		last := r.hold(place)
		r.start(place).exceeds(t, quota.HeldLocks, 4, 4)
		r.start(want("c", time.Minute)).exceeds(t, quota.HeldLocks, 4, 4)
		waits := r.line(want("a", time.Minute))
		r.hold(foreign(want("c", 0)))
		r.release(set)
		waits.holds()
		r.hold(want("c", 0))
		r.start(want("d", 0)).exceeds(t, quota.HeldLocks, 4, 4)
		r.release(last)
		r.hold(want("d", 0))
	})
}

// TestLimitOfWaiting: waiters count in all and at each lock. A try still learns that a lock is
// held.
func TestLimitOfWaiting(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		r := s.replica(t, func(c *service.Config) {
			c.Limits = limited(quota.Overrides{"waiting": 3, "waiting_per_lock": 2})
		})
		r.hold(lasting(pair("a", "b")))
		first := r.line(want("a", time.Minute))
		wide := pair("a", "b")
		wide.Wait = time.Minute
		r.line(wide)
		r.start(want("a", time.Minute)).exceeds(t, quota.WaitingPerLock, 2, 2)
		r.start(wide).exceeds(t, quota.WaitingPerLock, 2, 2)
		r.line(want("b", time.Minute))
		r.start(want("b", time.Minute)).exceeds(t, quota.Waiting, 3, 3)
		r.start(want("a", 0)).fails(lock.Held)
		r.hold(want("c", 0))
		first.cancel()
		synctest.Wait()
		r.line(want("a", time.Minute))
	})
}

// TestTriesBesideWaiters: a try learns that the lock is held even if the replica does not know
// that yet and the limit of waiters is reached.
func TestTriesBesideWaiters(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		r := s.replica(t, func(c *service.Config) { c.Limits = limited(quota.Overrides{"waiting": 0}) })
		r.store.on(slow(time.Second), enqueue)
		first, second := r.start(want("a", 0)), r.start(want("a", 0))
		after(2 * time.Second)
		if <-first.done; first.err != nil { // either may be written first
			first, second = second, first
		}
		first.holds()
		second.fails(lock.Held)
		r.start(want("a", time.Minute)).exceeds(t, quota.Waiting, 0, 0)
	})
}

// TestLimitOfSetsAndMetadata: sets count, held or waiting, and so do the bytes of metadata, which a
// list counts again.
func TestLimitOfSetsAndMetadata(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		r := s.replica(t, func(c *service.Config) {
			c.Limits = limited(quota.Overrides{"sets": 2, "metadata_bytes": 100})
		})
		held := r.hold(lasting(pair("a", "b")))
		waiting := pair("a", "c")
		waiting.Wait = time.Hour
		r.line(waiting)
		r.start(pair("d", "e")).exceeds(t, quota.Sets, 2, 2)
		full := r.hold(lasting(noted(want("d", 0), 60)))
		r.start(noted(want("e", 0), 41)).exceeds(t, quota.MetadataBytes, 100, 60)
		r.line(noted(want("d", time.Hour), 40))
		r.store.setFeed(lost)
		synctest.Wait()
		r.store.setFeed(running)
		synctest.Wait()
		r.start(noted(want("e", 0), 1)).exceeds(t, quota.MetadataBytes, 100, 100)
		r.start(pair("f", "g")).exceeds(t, quota.Sets, 2, 2)
		r.hold(want("e", 0))
		r.release(full)
		r.hold(noted(want("f", 0), 60))
		r.release(held)
		r.hold(pair("g", "h"))
	})
}

// TestLimitInABurst: what comes while the first of it is being written is counted too: a limit
// holds at one replica however much comes at once. Who fails has taken nothing, and of many who
// want one free lock only one is expected to hold.
func TestLimitInABurst(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		r := s.replica(t, func(c *service.Config) {
			c.Limits = limited(quota.Overrides{"held_locks": 5, "waiting": 3})
		})
		r.store.on(slow(time.Second), enqueue)
		names := strings.Split("abcdefghijkl", "")
		for _, code := range []lock.Code{lock.StoreUnavailable, ""} { // first it all fails
			if code != "" {
				r.store.on(broken, enqueue)
			}
			var all []*pending
			for _, name := range names {
				all = append(all, r.start(want(name, 0)))
			}
			after(2 * time.Second)
			held, refused := 0, 0
			for _, p := range all {
				switch <-p.done; {
				case p.err == nil:
					held++
				case errors.Is(p.err, lock.QuotaExceeded):
					refused++
				case !errors.Is(p.err, lock.StoreUnavailable):
					t.Error(p.err)
				}
			}
			if code == "" && (held != 5 || refused != len(names)-5) || code != "" && refused != 0 {
				t.Errorf("%d hold, %d are refused", held, refused)
			}
			r.store.on(slow(time.Second), enqueue)
		}
	})
}

// TestLimitOnOneLock: of many who want one free lock at once one is going to hold, and those who
// wait for it are no more than may.
func TestLimitOnOneLock(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		r := s.replica(t, func(c *service.Config) {
			c.Limits = limited(quota.Overrides{"held_locks": 1, "waiting_per_lock": 3})
		})
		r.store.on(slow(time.Second), enqueue)
		var all []*pending
		for range 6 {
			all = append(all, r.start(want("a", time.Minute)))
		}
		for _, p := range all[4:] {
			p.exceeds(t, quota.WaitingPerLock, 3, 3)
		}
		after(10 * time.Second)
		held, waits := 0, 0
		for _, p := range all[:4] {
			if p.answered() && p.err == nil {
				held++
			} else {
				waits++
			}
		}
		if held != 1 || waits != 3 {
			t.Errorf("%d hold and %d wait", held, waits)
		}
	})
}

// TestLoweredLimit: what is beyond a limit that is lowered stays, and goes on; nothing is added, at
// any replica. A view that is late counts what it has, so a limit may be exceeded by what others
// write meanwhile.
func TestLoweredLimit(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		var limits atomic.Pointer[quota.Limits]
		limits.Store(quota.Standard())
		follows := func(c *service.Config) {
			c.Limits = func(string) *quota.Limits { return limits.Load() }
		}
		r, other := s.replica(t, follows), s.replica(t, follows)
		var held []*service.Grant
		for _, name := range []string{"a", "b", "c"} {
			held = append(held, r.hold(want(name, 0)))
		}
		limits.Store(quota.Overrides{"held_locks": 2}.Over(quota.Standard()))
		for _, at := range []*replica{r, other} {
			at.start(want("d", 0)).exceeds(t, quota.HeldLocks, 2, 3)
		}
		if _, err := other.Renew(t.Context(), by(held[0])); err != nil {
			t.Error(err)
		}
		r.release(held[0])
		r.start(want("d", 0)).exceeds(t, quota.HeldLocks, 2, 2)
		other.store.setFeed(frozen)
		r.release(held[1])
		r.hold(want("d", 0))
		other.release(held[2])
		other.start(want("e", 0)).exceeds(t, quota.HeldLocks, 2, 2) // by its view
		other.store.setFeed(running)
		synctest.Wait()
		other.hold(want("e", 0))
	})
}

// TestOwnLocksHaveNoLimit: what replicas agree on among themselves goes on whatever the limits are.
func TestOwnLocksHaveNoLimit(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		r := s.replica(
			t, func(c *service.Config) { c.Limits = limited(quota.Overrides{"held_locks": 0, "places": 0}) },
		)
		r.start(want("a", 0)).exceeds(t, quota.Places, 0, 0)
		own := want("a", 0)
		own.Tenant = lock.OwnTenant
		r.hold(own)
	})
}

// TestLimitOfAKey: a retry with an idempotency key is the same entry, and needs no quota for it.
func TestLimitOfAKey(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		r := s.replica(
			t, func(c *service.Config) { c.Limits = limited(quota.Overrides{"held_locks": 1}) },
		)
		r.store.on(slow(time.Second), enqueue)
		first, second := r.start(keyed("a", 0, "k")), r.start(keyed("a", 0, "k"))
		after(2 * time.Second)
		if a, b := first.holds(), second.holds(); a.Token != b.Token {
			t.Error("a retry is another entry")
		}
		r.start(keyed("b", 0, "k")).fails(lock.QuotaExceeded)
		r.start(keyed("a", 0, "k")).holds()
		if used := r.Used("acme"); used[quota.HeldLocks] != 1 || used[quota.Places] != 1 ||
			used[quota.Waiting] != 0 {
			t.Errorf("%v is used", used)
		}
	})
}

// TestLimitOfHoldersAndCallbacks: who a request says it is for and where it is called count as
// metadata; the holder that the bearer token names does not.
func TestLimitOfHoldersAndCallbacks(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		r := s.replica(
			t, func(c *service.Config) { c.Limits = limited(quota.Overrides{"metadata_bytes": 100}) },
		)
		r.hold(lasting(want("a", 0)))
		named := lasting(want("b", 0))
		named.Holder, named.Named = strings.Repeat("h", 60), true
		r.hold(named)
		called := lasting(calledAt("https://example.org/" + strings.Repeat("p", 21)))
		r.start(called).exceeds(t, quota.MetadataBytes, 100, 60)
		called.Callback.URL = called.Callback.URL[:40]
		if _, err := r.Acquire(t.Context(), called); err != nil {
			t.Errorf("there is room for the callback: %v", err)
		}
		if used := r.Used("acme"); used[quota.MetadataBytes] != 100 {
			t.Errorf("in use: %v", used)
		}
		r.hold(lasting(want("c", 0)))
		r.start(noted(want("d", 0), 1)).exceeds(t, quota.MetadataBytes, 100, 100)
	})
}

// TestKeyOfAnother: a request whose key another one is being written with that asks for something
// else is refused, and not let in as that one.
func TestKeyOfAnother(t *testing.T) {
	for range 12 { // which of the two is written is left to chance if both are let in
		keyOfAnother(t)
	}
}

func keyOfAnother(t *testing.T) {
	t.Helper()
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		r := s.replica(t, func(c *service.Config) {
			c.Limits = limited(quota.Overrides{"held_locks": 1, "metadata_bytes": 100, "places": 100})
		})
		r.hold(lasting(want("x", 0)))
		r.store.on(slow(time.Second), enqueue)
		small, large := wantSet(time.Minute, "x", "y"), lasting(noted(wantSet(0, "a", "b", "c"), 2000))
		small.IdempotencyKey, large.IdempotencyKey = "k", "k"
		first := r.line(small)
		r.start(large).fails(lock.IdempotencyMismatch)
		first.cancel()
		<-first.done
		if used := r.Used("acme"); used[quota.HeldLocks] != 1 || used[quota.MetadataBytes] != 0 {
			t.Errorf("in use: %v", used)
		}
	})
}

// TestKeyedRetryAtALateReplica: its entry is there, and so no limit keeps it out.
func TestKeyedRetryAtALateReplica(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		most := func(c *service.Config) { c.Limits = limited(quota.Overrides{"held_locks": 1}) }
		a, b := s.replica(t, most), s.replica(t, most)
		old := a.hold(lasting(want("old", 0)))
		synctest.Wait()
		b.store.setLag(running, 50*time.Millisecond)
		a.release(old)
		req := lasting(keyed("new", 0, "k"))
		a.hold(req) // the answer is lost
		b.start(req).holdsLater()
	})
}
