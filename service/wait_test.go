package service_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service"
	"github.com/fencepost/fencepost/test/bubble"
)

// TestKeepsWaitersAlive: while a request waits its lease is started again every
// third of the TTL, or up to a quarter of that sooner, and again at the grant. From
// then on the client renews.
func TestKeepsWaitersAlive(t *testing.T) {
	for _, lease := range []time.Duration{minTTL, ttl} {
		t.Run(lease.String(), func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				s := newSharedStore(t)
				r := s.replica(t)
				holder := r.hold(lasting(want("orders:1", 0)))
				req := want("orders:1", time.Hour)
				req.TTL = lease
				began := time.Now()
				p := r.line(req)
				after(lease * 3 / 2)
				r.release(holder)
				g := p.holds()
				times := r.store.times(refresh, g.Entry.ID)
				renewedInTime(t, append([]time.Time{began}, times[:len(times)-1]...), lease)
				if last := times[len(times)-1]; !last.Equal(began.Add(lease * 3 / 2)) {
					t.Errorf("refreshed at %v at last, not at the grant", last)
				}
				if !g.ExpiresAt.Equal(time.Now().Add(lease)) {
					t.Errorf("a waited grant has %v left", time.Until(g.ExpiresAt))
				}
				after(lease - 1)
				if len(s.ids()) != 1 {
					t.Error("the lease ended early")
				}
				after(1)
				if len(s.ids()) != 0 || len(r.store.times(refresh, g.Entry.ID)) != len(times) {
					t.Error("the replica kept a granted lease alive")
				}
			})
		})
	}
}

// renewedInTime wants the pauses between the times to be of a third of the lease, or up to a
// quarter of that shorter, until one and a half times the lease are over.
func renewedInTime(t *testing.T, times []time.Time, lease time.Duration) {
	t.Helper()
	third, end := lease/3, times[0].Add(lease*3/2)
	for i, at := range times {
		next := end
		if i+1 < len(times) {
			next = times[i+1]
			if next.Sub(at) < third*3/4 {
				t.Errorf("refreshed after %v", next.Sub(at))
			}
		}
		if next.Sub(at) > third {
			t.Errorf("not refreshed for %v", next.Sub(at))
		}
	}
}

// TestCrowdIsNotRenewedInStep: leases that began together, as those of a crowd that comes here when
// another replica has ended, do not start together.
func TestCrowdIsNotRenewedInStep(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		r := s.replica(t)
		r.hold(lasting(want("orders:1", 0)))
		const crowd = 64
		for range crowd {
			r.line(want("orders:1", time.Hour))
		}
		after(ttl / 3)
		times := r.store.times(refresh, "")
		if len(times) != crowd {
			t.Fatalf("%d of %d were renewed after a third of the TTL", len(times), crowd)
		}
		slices.SortFunc(times, time.Time.Compare)
		for i := range times[crowd/8:] {
			if apart := times[i+crowd/8].Sub(times[i]); apart < ttl/3/4/16 {
				t.Errorf("%d are renewed within %v", crowd/8, apart)
			}
		}
	})
}

// TestSlowStoreIsWaitedFor: a store that takes a second for each renewal, as one does under a
// crowd, has the renewals that are asked of it to do once. The waiting requests go on.
func TestSlowStoreIsWaitedFor(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		r := s.replica(t)
		r.hold(lasting(want("orders:1", 0)))
		p := r.line(want("orders:1", time.Hour))
		r.store.on(slow(time.Second), refresh)
		after(ttl)
		p.waits()
		if n := r.store.count(refresh); n > 4 {
			t.Errorf("renewed %d times within a TTL", n)
		}
	})
}

// TestToldInTimeToComeBack: if renewals fail and the feed does not, a waiter gets an error while
// a third of the lease is left, however short it is.
func TestToldInTimeToComeBack(t *testing.T) {
	leases := []time.Duration{minTTL, 4 * time.Second, ttl}
	for more := range 200 { // a renewal ends just before, or after, of few of them
		leases = append(leases, ttl+time.Duration(more)*50*time.Millisecond)
	}
	for _, lease := range leases {
		bubble.Test(t, func(t *testing.T) {
			s := newSharedStore(t)
			r := s.replica(t)
			r.hold(lasting(want("orders:1", 0)))
			r.store.on(silent, refresh)
			req := want("orders:1", time.Hour)
			req.TTL = lease
			p := r.line(req)
			after(lease*2/3 + 700*time.Millisecond)
			if !p.answered() {
				t.Errorf("with a lease of %v it still waits", lease)
			}
		})
	}
}

// TestWrittenLate: a request whose entry had to wait to be written is not held open for
// longer than others.
func TestWrittenLate(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		r := s.replica(t, func(c *service.Config) { c.MaxHold = 20 * time.Second })
		r.hold(lasting(want("orders:1", 0)))
		r.store.on(slow(8*time.Second), enqueue)
		began := time.Now()
		r.line(want("orders:1", time.Hour)).stillWaits()
		if took := time.Since(began); took != 20*time.Second {
			t.Errorf("the request was held open for %v", took)
		}
	})
}

// TestAbandonedWaitLapses: no replica renews an entry after its request has ended.
func TestAbandonedWaitLapses(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		r := s.replica(t)
		r.hold(lasting(want("orders:1", 0)))
		g := r.line(want("orders:1", time.Hour)).stillWaits()
		after(time.Until(g.ExpiresAt) - 1)
		if len(s.ids()) != 2 {
			t.Fatal("the entry lapsed before its lease was over")
		}
		after(1)
		if len(s.ids()) != 1 {
			t.Fatal("the entry outlived its lease")
		}
		_, err := r.Entry(t.Context(), by(g), time.Minute)
		lostFor(t, err, lock.Expired)
	})
}

// TestRemovedWaiterIsTold: a waiter whose entry is gone learns at once that it is, and why. It is
// not granted later.
func TestRemovedWaiterIsTold(t *testing.T) {
	for _, why := range []lock.Reason{lock.Expired, lock.Released, lock.Revoked, lock.WaitTimeout} {
		for _, lag := range []time.Duration{0, 600 * time.Millisecond} {
			t.Run(string(why)+" "+lag.String(), func(t *testing.T) {
				bubble.Test(t, func(t *testing.T) {
					s := newSharedStore(t)
					a, b := s.replica(t), s.replica(t)
					b.store.setLag(running, lag)
					holder := a.hold(want("orders:1", 0))
					p := b.line(want("orders:1", time.Minute))
					after(5 * time.Second)
					next := b.line(want("orders:1", time.Minute))
					after(time.Second)
					began := time.Now()
					if err := s.end(p.entry(s, 1), why); err != nil {
						t.Fatal(err)
					}
					a.release(holder)
					p.ends(why)
					took(t, began, lag)
					next.holdsLater()
				})
			})
		}
	}
}

// entry is the one at the index among all entries.
func (p *pending) entry(s *sharedStore, i int) *lock.Entry {
	p.t.Helper()
	all := s.Entries()
	if len(all) <= i {
		p.t.Fatalf("%d entries", len(all))
	}
	return all[i]
}

// TestExpiresAsItComesToHold: the view sees the entry at the head of the queue
// while the store has dropped it already. It is not granted.
func TestExpiresAsItComesToHold(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		a, b := s.replica(t), s.replica(t)
		b.store.setLag(running, 100*time.Millisecond)
		holder := a.hold(want("orders:1", 0))
		p := b.line(want("orders:1", time.Minute))
		after(5 * time.Second)
		a.release(holder)
		after(50 * time.Millisecond)
		if err := s.end(p.entry(s, 0), lock.Expired); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		p.ends(lock.Expired)
		took(t, began, 100*time.Millisecond)
	})
}

// TestLeaseCountsFromTheQuestion: the lease counts from before the question to the store, because
// the time of its action is unknown.
func TestLeaseCountsFromTheQuestion(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		r := newSharedStore(t).replica(t)
		r.store.on(late(500*time.Millisecond), refresh, enqueue, remaining)
		began := time.Now()
		holder := r.start(want("orders:1", 0)).holdsLater()
		if !holder.ExpiresAt.Equal(began.Add(ttl)) {
			t.Errorf("acquired until %v", holder.ExpiresAt)
		}
		p := r.line(want("orders:1", time.Minute))
		after(5 * time.Second)
		began = time.Now()
		if g := r.renew(holder); !g.ExpiresAt.Equal(began.Add(ttl)) {
			t.Errorf("renewed until %v", g.ExpiresAt)
		}
		began = time.Now()
		r.release(holder)
		if g := p.holdsLater(); !g.ExpiresAt.Equal(began.Add(ttl)) ||
			!p.at.Equal(began.Add(500*time.Millisecond)) {
			t.Errorf("granted until %v", g.ExpiresAt)
		}
	})
}

// TestGoneClient: whatever a client that went away wanted is taken back at once,
// at whatever moment it went.
func TestGoneClient(t *testing.T) {
	moments := map[string]func(t *testing.T, s *sharedStore, r *replica){
		"BeforeTheEnqueue": func(t *testing.T, _ *sharedStore, r *replica) {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if g, err := r.Acquire(ctx, want("orders:1", time.Minute)); err == nil {
				t.Errorf("granted %+v", g)
			}
		},
		"DuringTheEnqueue": func(_ *testing.T, _ *sharedStore, r *replica) {
			r.store.on(first(1, slow(time.Second)), enqueue)
			p := r.line(want("orders:1", time.Minute))
			after(500 * time.Millisecond)
			p.cancel()
			p.waits() // what is on its way is not given up
			<-p.done
		},
		"AtTheGrant": func(t *testing.T, s *sharedStore, r *replica) {
			holder := r.hold(want("orders:1", 0))
			p := r.line(want("orders:1", time.Minute))
			after(time.Second)
			r.store.on(func(_ context.Context, do func() error) error {
				p.cancel()
				return do()
			}, refresh)
			r.release(holder)
			<-p.done
			if p.err == nil || r.store.count(refresh) == 0 {
				t.Errorf("granted %+v", p.grant)
			}
		},
	}
	for name, goes := range moments {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				s := newSharedStore(t)
				r := s.replica(t)
				goes(t, s, r)
				began := time.Now()
				synctest.Wait()
				took(t, began, 0)
				if ids := s.ids(); len(ids) != 0 {
					t.Errorf("left behind: %v", ids)
				}
				r.hold(want("orders:1", 0))
			})
		})
	}
}

// TestGoneWhileItLeft: a client goes away while its wait ends and the store does not
// answer. Its entry is taken back as soon as the store does.
func TestGoneWhileItLeft(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		r := s.replica(t)
		r.hold(lasting(want("orders:1", 0)))
		p := r.line(want("orders:1", 5*time.Second))
		r.store.on(first(1, func(context.Context, func() error) error {
			p.cancel()
			return unavailable(false)
		}), remove)
		after(5 * time.Second)
		if <-p.done; p.grant != nil {
			t.Errorf("granted %+v", p.grant)
		}
		after(time.Second)
		if ids := s.ids(); len(ids) != 1 {
			t.Errorf("left behind: %v", ids)
		}
	})
}

func TestGoneWaiterMakesRoom(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		r := s.replica(t)
		holder := r.hold(want("orders:1", 0))
		p, next := r.line(want("orders:1", time.Minute)), r.line(want("orders:1", time.Minute))
		id := p.entry(s, 1).ID
		p.cancel()
		if synctest.Wait(); len(s.ids()) != 2 {
			t.Fatalf("left in the queue: %v", s.ids())
		}
		if s.reasonOf(id) != "" {
			t.Errorf("recorded as %q although nobody was told of it", s.reasonOf(id))
		}
		next.waits()
		r.release(holder)
		next.holds()
	})
}

// TestGoneClientAndStore: if the store does not answer, the entry ends with its lease.
func TestGoneClientAndStore(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		r := s.replica(t)
		p := r.second()
		r.store.on(silent, remove)
		p.cancel()
		after(ttl - 1)
		if len(s.ids()) != 2 {
			t.Fatal("the entry is gone too early for a lapse")
		}
		after(1)
		if len(s.ids()) != 1 {
			t.Error("somebody kept the entry alive")
		}
	})
}

// second is next in line, behind a holder that stays.
func (r *replica) second() *pending {
	r.t.Helper()
	r.hold(lasting(want("orders:1", 0)))
	return r.line(want("orders:1", time.Minute))
}

// TestGoneClientWithAKey: the entry keeps its place for its lease, and the client
// finds it again, at any replica.
func TestGoneClientWithAKey(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		a, b := s.replica(t), s.replica(t)
		holder := a.hold(lasting(want("orders:1", 0)))
		for _, back := range []time.Duration{0, ttl - time.Millisecond} {
			p := a.start(keyed("orders:1", time.Hour, "k"))
			p.cancel()
			after(back)
			if len(s.ids()) != 2 {
				t.Fatal("the entry was not kept")
			}
		}
		p := b.line(keyed("orders:1", time.Hour, "k"))
		a.release(holder)
		if g := p.holds(); g.Entry.Number != holder.Entry.Number+1 {
			t.Errorf("came back to %+v", g.Entry)
		}
	})
}

// TestGoneClientWithAToken: a client that waits by a token can also come back by it.
func TestGoneClientWithAToken(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		a, b := s.replica(t, func(c *service.Config) { c.MaxHold = time.Second }), s.replica(t)
		holder := a.hold(lasting(want("orders:1", 0)))
		g := a.line(want("orders:1", time.Hour)).stillWaits()
		p := b.resume(g, time.Minute)
		p.cancel()
		after(ttl - 1)
		p = b.resume(g, time.Minute)
		p.waits()
		a.release(holder)
		same(t, g, p.holds())
	})
}

// TestGoneClientWithAKeyLapses: if it never comes back, its place is given up.
func TestGoneClientWithAKeyLapses(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		r := s.replica(t)
		r.hold(lasting(want("orders:1", 0)))
		p := r.line(keyed("orders:1", time.Hour, "k"))
		p.cancel()
		after(ttl)
		if len(s.ids()) != 1 || r.store.count(refresh) != 0 {
			t.Errorf("%d entries, %d refreshes", len(s.ids()), r.store.count(refresh))
		}
		r.start(keyed("orders:1", time.Hour, "k")).ends(lock.Expired)
	})
}

// TestStoreTellsWhatTheFeedDoesNot: the feed is silent, and the store shows that the waiter's
// entry is gone. Then it is gone, whether it seemed to wait or to hold, and the waiter learns it
// within the keepalive and a second.
func TestStoreTellsWhatTheFeedDoesNot(t *testing.T) {
	for name, f := range map[string]feed{"Frozen": frozen, "Lost": lost} {
		for _, seems := range []string{"Waiting", "Held"} {
			t.Run(name+seems, func(t *testing.T) {
				bubble.Test(t, func(t *testing.T) {
					s := newSharedStore(t)
					a, b := s.replica(t), s.replica(t)
					holder := a.hold(lasting(want("orders:1", 0)))
					p := b.line(want("orders:1", 45*time.Second))
					after(5 * time.Second)
					if seems == "Held" { // and during that check, the feed stops and the entry goes
						b.store.on(first(1, func(_ context.Context, do func() error) error {
							b.store.setFeed(f)
							_ = s.end(p.entry(s, 0), lock.Expired)
							return do()
						}), refresh)
						a.release(holder)
					} else {
						b.store.setFeed(f)
						if err := s.end(p.entry(s, 1), lock.Expired); err != nil {
							t.Fatal(err)
						}
					}
					began := time.Now()
					p.ends(lock.Unknown)
					limit := time.Second
					switch {
					case seems == "Waiting" && f == frozen:
						limit += ttl / 3 // the next keepalive
					case seems == "Waiting":
						limit += time.Second // the next direct read
					}
					if d := p.at.Sub(began); d > limit {
						t.Errorf("told after %v", d)
					}
				})
			})
		}
	}
}

// TestKeepAliveSurvivesAMoment: no waiter loses its position while the store does not answer for
// a moment.
func TestKeepAliveSurvivesAMoment(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		r := s.replica(t)
		holder := r.hold(lasting(want("orders:1", 0)))
		p := r.line(want("orders:1", time.Hour))
		r.store.on(first(2, silent), refresh)
		after(40 * time.Second)
		p.waits()
		r.release(holder)
		p.holds()
	})
}

// TestUnreachableStoreIsTold: if the store stays away, the waiter learns it, and how to resume,
// before its lease is over.
func TestUnreachableStoreIsTold(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		r := s.replica(t)
		holder := r.hold(lasting(want("orders:1", 0)))
		began := time.Now()
		p := r.line(want("orders:1", time.Hour))
		r.store.on(silent, refresh)
		p.fails(lock.StoreUnavailable)
		if d := p.at.Sub(began); d > ttl {
			t.Errorf("told after %v", d)
		}
		r.store.on(nil, refresh)
		again := r.resume(p.grant, time.Minute)
		again.waits()
		r.release(holder)
		if g := again.holds(); g.Token != p.grant.Token {
			t.Errorf("resumed %+v", g.Entry)
		}
	})
}
