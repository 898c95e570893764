package service_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service"
	"github.com/fencepost/fencepost/test/bubble"
)

// same fails unless both grants are of one entry.
func same(t *testing.T, a, b *service.Grant) {
	t.Helper()
	if a.Entry.ID != b.Entry.ID || a.Entry.Number != b.Entry.Number || a.Token != b.Token {
		t.Fatalf("two entries: %+v and %+v", a.Entry, b.Entry)
	}
}

// TestRepeatedWhileItWaits: a repeated request, here or at another replica, joins
// its first one: one place, one token, one fence.
func TestRepeatedWhileItWaits(t *testing.T) {
	for _, lag := range []time.Duration{0, 100 * time.Millisecond, 2 * time.Second} {
		t.Run(lag.String(), func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				s := newSharedStore(t)
				a, b := s.replica(t), s.replica(t)
				b.store.setLag(running, lag)
				holder := a.hold(lasting(want("orders:1", 0)))
				req := keyed("orders:1", time.Minute, "k")
				requests := []*pending{a.line(req), a.line(req), b.line(req)}
				behind := a.line(want("orders:1", time.Minute))
				after(5 * time.Second)
				requests = append(requests, b.line(req))
				if n := len(s.ids()); n != 3 {
					t.Fatalf("%d entries", n)
				}
				a.release(holder)
				first := requests[0].holds()
				for _, p := range requests {
					same(t, first, p.holdsLater())
				}
				behind.waits()
			})
		})
	}
}

// TestRepeatedWhileItHolds: the repeated request is answered with the grant and a
// lease that starts again.
func TestRepeatedWhileItHolds(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		a, b := s.replica(t), s.replica(t)
		for _, wait := range []time.Duration{0, time.Minute} {
			req := keyed("orders:1", wait, fmt.Sprint(wait))
			g := a.hold(req)
			for _, r := range []*replica{a, b} {
				after(20 * time.Second)
				again := r.hold(req)
				same(t, g, again)
				if again.Waited != g.Waited {
					t.Errorf("waited %v, and then %v", g.Waited, again.Waited)
				}
				if !again.ExpiresAt.Equal(time.Now().Add(ttl)) || len(r.store.times(refresh, g.Entry.ID)) != 1 {
					t.Errorf("its lease ends in %v", time.Until(again.ExpiresAt))
				}
			}
			a.release(g)
		}
	})
}

// TestRepeatedAtOnce: the first request and its repetition race at two replicas,
// in every order.
func TestRepeatedAtOnce(t *testing.T) {
	delays := []time.Duration{0, time.Millisecond, 5 * time.Millisecond}
	for _, wait := range []time.Duration{0, time.Minute} {
		for _, da := range delays {
			for _, db := range delays {
				t.Run(fmt.Sprint(wait, da, db), func(t *testing.T) {
					bubble.Test(t, func(t *testing.T) {
						s := newSharedStore(t)
						a, b := s.replica(t), s.replica(t)
						a.store.on(slow(da), enqueue)
						b.store.on(slow(db), enqueue)
						req := keyed("orders:1", wait, "k")
						p, q := a.start(req), b.start(req)
						same(t, p.holdsLater(), q.holdsLater())
						if n := len(s.ids()); n != 1 {
							t.Errorf("%d entries", n)
						}
					})
				})
			}
		}
	}
}

// TestKeyWithOtherParameters: it is refused wherever it arrives, and changes
// nothing.
func TestKeyWithOtherParameters(t *testing.T) {
	change := map[string]func(*service.AcquireRequest){
		"ttl":      func(r *service.AcquireRequest) { r.TTL = ttl + time.Second },
		"wait":     func(r *service.AcquireRequest) { r.Wait += time.Second },
		"try":      func(r *service.AcquireRequest) { r.Wait = 0 },
		"holder":   func(r *service.AcquireRequest) { r.Holder = "worker-2" },
		"metadata": func(r *service.AcquireRequest) { r.Metadata = map[string]string{"job": "2"} },
		"none":     func(r *service.AcquireRequest) { r.Metadata = nil },
		"mode":     func(r *service.AcquireRequest) { r.Claims[0].Mode = lock.Shared },
	}
	req := keyed("orders:1", time.Minute, "k")
	req.Metadata = map[string]string{"job": "1"}
	refusesOthers(t, req, change)
}

func TestKeyWithAnotherLimit(t *testing.T) {
	req := semaphore(2, keyed("orders:1", time.Minute, "k"))
	refusesOthers(t, req, map[string]func(*service.AcquireRequest){
		"limit": func(r *service.AcquireRequest) { r.Claims[0].Limit = 3 },
	})
}

// TestKeyOfASet: a key is one set of the tenant, whatever its locks are.
func TestKeyOfASet(t *testing.T) {
	locks := func(names ...string) func(*service.AcquireRequest) {
		return func(r *service.AcquireRequest) {
			r.Set, r.Claims = true, nil
			for _, name := range names {
				r.Claims = append(r.Claims, lock.Claim{Name: name, Mode: lock.Exclusive})
			}
		}
	}
	req := keyed("", time.Minute, "k")
	locks("b", "c")(&req)
	refusesOthers(t, req, map[string]func(*service.AcquireRequest){
		"other": locks("d", "e"), "first": locks("a", "c"), "last": locks("b", "d"),
		"more": locks("a", "b", "c"), "fewer": locks("c"),
	})
}

// refusesOthers repeats a request, changed in each of the ways.
func refusesOthers(
	t *testing.T, req service.AcquireRequest, change map[string]func(*service.AcquireRequest),
) {
	t.Helper()
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		a, b := s.replica(t), s.replica(t)
		b.store.setFeed(frozen) // it learns of the entry by its own write only
		g := a.hold(lasting(req))
		for _, field := range slices.Sorted(maps.Keys(change)) {
			other := lasting(req)
			other.Claims = slices.Clone(req.Claims)
			change[field](&other)
			for _, r := range []*replica{a, b} {
				p := r.start(other)
				if e := p.fails(lock.IdempotencyMismatch); e.OutcomeUnknown {
					t.Errorf("%s: may have had an effect", field)
				}
			}
		}
		if diff := cmp.Diff([]lock.ID{g.Entry.ID}, s.ids()); diff != "" {
			t.Errorf("entries (-want +got):\n%s", diff)
		}
		same(t, g, a.hold(lasting(req)))
	})
}

// TestKeysAreOfOneLock: a key means nothing to another lock or tenant.
func TestKeysAreOfOneLock(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		r := s.replica(t)
		foreign := keyed("orders:1", time.Minute, "k")
		foreign.Tenant = "globex"
		grants := []*service.Grant{
			r.hold(keyed("orders:1", time.Minute, "k")), r.hold(keyed("orders:2", time.Minute, "k")),
			r.hold(foreign),
		}
		ids := map[lock.ID]bool{}
		for _, g := range grants {
			ids[g.Entry.ID] = true
		}
		if len(ids) != 3 {
			t.Errorf("%d entries of 3 requests", len(ids))
		}
		r.line(keyed("orders:1", time.Minute, "other"))
	})
}

// TestKeyAfterTheEnd: for ten minutes the key answers why its entry ended, at
// every replica, also at one that starts later. Then it is free.
func TestKeyAfterTheEnd(t *testing.T) {
	for _, why := range []lock.Reason{lock.Released, lock.Expired, lock.Revoked, lock.WaitTimeout} {
		t.Run(string(why), func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				s := newSharedStore(t)
				a, b := s.replica(t), s.replica(t)
				g := a.hold(keyed("orders:1", time.Minute, "k"))
				if err := s.end(g.Entry, why); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				replicas := []*replica{a, b}
				if why != lock.Expired { // that is recorded nowhere
					replicas = append(replicas, s.replica(t))
				}
				for _, wait := range []time.Duration{0, 10*time.Minute - time.Second} {
					after(wait)
					for _, r := range replicas {
						r.start(keyed("orders:1", time.Minute, "k")).ends(why)
					}
				}
				if n := a.store.count(enqueue) + b.store.count(enqueue); n != 1 {
					t.Errorf("%d writes", n)
				}
				after(3 * time.Minute)
				for _, r := range replicas {
					g := r.hold(keyed("orders:1", time.Minute, "k"))
					after(time.Second)
					g2 := a.hold(keyed("orders:1", time.Minute, "k"))
					same(t, g, g2)
				}
			})
		})
	}
}

// TestKeyThatJustEnded: the entry ends at one replica while a retry arrives at another, which
// does not know yet. The store does, and writes nothing, whichever client holds the lock by then.
func TestKeyThatJustEnded(t *testing.T) {
	for _, state := range []string{"Free", "Held"} {
		for _, wait := range []time.Duration{0, time.Minute} {
			t.Run(fmt.Sprint(state, wait), func(t *testing.T) {
				bubble.Test(t, func(t *testing.T) {
					s := newSharedStore(t)
					a, b := s.replica(t), s.replica(t)
					b.store.setLag(running, 100*time.Millisecond)
					req := keyed("orders:1", wait, "k")
					a.release(a.hold(req))
					var left []lock.ID
					if state == "Held" && wait > 0 {
						left = append(left, s.occupy(t, "orders:1").ID)
					}
					began := time.Now()
					b.start(req).ends(lock.Released)
					took(t, began, 0) // the store knows, however late the view is
					synctest.Wait()
					if ids := s.ids(); !slices.Equal(ids, left) {
						t.Errorf("left in the store: %v", ids)
					}
				})
			})
		}
	}
}

// TestKeyUsedAgain: one replica has forgotten that the key was used before, the
// other has not. The entry that the first one granted is not the other's to take
// back.
func TestKeyUsedAgain(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		a, b := s.replica(t), s.replica(t)
		b.release(b.hold(want("warm-up", 0))) // begins a generation of b's, as of a's
		after(50 * time.Second)
		a.release(a.hold(keyed("orders:1", time.Minute, "k")))
		after(10*time.Minute + 30*time.Second)
		b.store.setFeed(lost)
		b.store.setFeed(running) // what is remembered in the store is now news to b
		synctest.Wait()
		late := s.replica(t) // as it is to a replica that just started
		after(time.Minute)
		g := a.hold(keyed("orders:1", time.Minute, "k"))
		for _, r := range []*replica{b, late} {
			p := r.start(keyed("orders:1", time.Minute, "k"))
			same(t, g, p.holdsLater())
		}
		if diff := cmp.Diff([]lock.ID{g.Entry.ID}, s.ids()); diff != "" {
			t.Errorf("entries (-want +got):\n%s", diff)
		}
	})
}

// TestLateViewHasTheFirstEntry: the key was used up elsewhere, and this replica hears
// of the first entry, but not yet of its end, when it has already written a second.
// The first one's turn is not the second one's.
func TestLateViewHasTheFirstEntry(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		a, b := s.replica(t), s.replica(t)
		b.store.setLag(running, 50*time.Millisecond)
		first := a.hold(keyed("orders:1", time.Minute, "k"))
		after(30 * time.Millisecond)
		a.release(first)
		after(10 * time.Millisecond)
		b.start(keyed("orders:1", time.Minute, "k")).ends(lock.Released)
		if ids := s.ids(); len(ids) != 0 {
			t.Errorf("left behind: %v", ids)
		}
	})
}

// TestRefusedTryLeavesItsKey: nothing was written, so nothing has ended.
func TestRefusedTryLeavesItsKey(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		r := newSharedStore(t).replica(t)
		holder := r.hold(want("orders:1", 0))
		for range 2 {
			r.start(keyed("orders:1", 0, "k")).fails(lock.Held)
		}
		r.release(holder)
		r.hold(keyed("orders:1", 0, "k"))
	})
}

// TestTryFindsItsWaitingEntry: the entry of a try waits, because its replica died
// before it could take it back. The repeated try does not wait with it.
func TestTryFindsItsWaitingEntry(t *testing.T) {
	for name, f := range map[string]feed{"Seen": running, "Unseen": frozen} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				s := newSharedStore(t)
				a, b := s.replica(t), s.replica(t)
				a.store.on(silent, remove)
				a.store.setFeed(frozen)
				b.store.setFeed(f)
				other := s.occupy(t, "orders:1")
				dead := a.start(keyed("orders:1", 0, "k"))
				after(300 * time.Millisecond)
				if len(s.ids()) != 2 {
					t.Fatalf("no entry was left behind: %v", s.ids())
				}
				began := time.Now()
				b.start(keyed("orders:1", 0, "k")).fails(lock.Held)
				if d := time.Since(began); d > time.Second {
					t.Errorf("a try took %v", d)
				}
				if diff := cmp.Diff([]lock.ID{other.ID}, s.ids()); diff != "" {
					t.Errorf("left behind (-want +got):\n%s", diff)
				}
				dead.fails(lock.Held)
				if err := s.end(other, lock.Released); err != nil {
					t.Fatal(err)
				}
				b.store.setFeed(running)
				synctest.Wait() // a late view may refuse a try again
				b.start(keyed("orders:1", 0, "k")).holdsLater()
			})
		})
	}
}

// TestTwoTriesOfOneKey: they write one entry. When one of them removes it, the other does not
// take that for an end by another client.
func TestTwoTriesOfOneKey(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		a, b := s.replica(t), s.replica(t)
		a.store.setFeed(frozen)
		b.store.setFeed(frozen)
		s.occupy(t, "orders:1")
		p := a.line(keyed("orders:1", 0, "k"))
		after(time.Millisecond)
		q := b.line(keyed("orders:1", 0, "k"))
		p.fails(lock.Held)
		q.fails(lock.Held)
		if n := len(s.ids()); n != 1 {
			t.Errorf("%d entries", n)
		}
	})
}

// TestTryRejoinsWhatWasTakenBack: another replica takes back the entry of a repeated
// try, which this one does not hear of. That says nothing of the lock, which is free.
func TestTryRejoinsWhatWasTakenBack(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		a, b := s.replica(t), s.replica(t)
		a.store.on(silent, remove)
		a.store.setFeed(frozen)
		holder := s.occupy(t, "orders:1")
		dead := a.start(keyed("orders:1", 0, "k"))
		after(300 * time.Millisecond) // b sees it wait
		b.store.setFeed(frozen)
		for _, e := range s.Entries() {
			if e.ID != holder.ID && !s.End(e, lock.Withdrawn) {
				t.Fatal("the try is gone")
			}
		}
		if err := s.end(holder, lock.Released); err != nil {
			t.Fatal(err)
		}
		b.start(keyed("orders:1", 0, "k")).holdsLater()
		dead.fails(lock.Held)
	})
}

// TestTryOfAKeyThatEnds: the entry that a repeated try joined is released, and its
// replica hears of neither. The key is used up; the lock was free all the time.
func TestTryOfAKeyThatEnds(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		a, b := s.replica(t), s.replica(t)
		b.store.setFeed(frozen)
		g := a.hold(keyed("orders:1", 0, "k"))
		p := b.line(keyed("orders:1", 0, "k"))
		after(100 * time.Millisecond)
		a.release(g)
		p.ends(lock.Released)
	})
}

// TestKeyBehindALateView: whether a key is used up is for the store to say. What it
// grants does not wait for the view.
func TestKeyBehindALateView(t *testing.T) {
	for _, wait := range []time.Duration{0, time.Minute} {
		bubble.Test(t, func(t *testing.T) {
			r := newSharedStore(t).replica(t)
			r.store.setFeed(frozen)
			began := time.Now()
			r.line(keyed("orders:1", wait, "k")).holdsLater()
			took(t, began, 250*time.Millisecond)
		})
	}
}

// TestKeyOfASetBelongsToItsSubject: another subject's use of the key is another entry.
func TestKeyOfASetBelongsToItsSubject(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		a, b := s.replica(t), s.replica(t)
		set := func(subject, name string) service.AcquireRequest {
			req := lasting(wantSet(0, name))
			req.Subject, req.IdempotencyKey = subject, "nightly"
			return req
		}
		scratch := a.hold(set("scratch", "scratch:1"))
		pay := b.hold(set("pay", "pay:1"))
		if scratch.Entry.ID == pay.Entry.ID {
			t.Error("two subjects share an entry")
		}
		same(t, pay, a.hold(set("pay", "pay:1")))
	})
}
