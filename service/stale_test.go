package service_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service"
	"github.com/fencepost/fencepost/store/memory"
	"github.com/fencepost/fencepost/test/bubble"
)

// kept fails unless the entry of a grant is there for as long as was said.
func (s *sharedStore) keeps(t *testing.T, g *service.Grant) {
	t.Helper()
	if !s.has(g.Entry.ID) {
		t.Errorf("granted until %v, and gone %v before that", g.ExpiresAt, time.Until(g.ExpiresAt))
	}
}

func (s *sharedStore) has(id lock.ID) bool {
	for _, x := range s.ids() {
		if x == id {
			return true
		}
	}
	return false
}

// TestTimesOutLate: an entry that came to hold elsewhere is not taken out of its
// queue by the replica where its wait is over, and whose view is behind.
func TestTimesOutLate(t *testing.T) {
	for name, late := range map[string]func(*client){
		"Late":   func(c *client) { c.setLag(running, time.Second) },
		"Frozen": func(c *client) { c.setFeed(frozen) },
	} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				s := newSharedStore(t)
				a, b := s.replica(t), s.replica(t)
				holder := b.hold(lasting(want("orders:1", 0)))
				req := keyed("orders:1", 10*time.Second, "k")
				p, q := a.line(req), b.line(req)
				after(9500 * time.Millisecond)
				late(a.store)
				b.release(holder)
				g := q.holds()
				after(2 * time.Second)
				s.keeps(t, g)
				same(t, g, p.holdsLater())
			})
		})
	}
}

// TestTimesOutBehindAnother: the blocking entry is gone, but another one blocks.
func TestTimesOutBehindAnother(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		a, b := s.replica(t), s.replica(t)
		holder := b.hold(lasting(want("orders:1", 0)))
		next := b.line(want("orders:1", time.Minute))
		p := a.line(want("orders:1", 10*time.Second))
		after(9500 * time.Millisecond)
		a.store.setFeed(frozen)
		b.release(holder)
		g := next.holds()
		after(2 * time.Second)
		p.fails(lock.TimedOut)
		if ids := s.ids(); len(ids) != 1 || ids[0] != g.Entry.ID {
			t.Errorf("entries: %v", ids)
		}
	})
}

// TestRenewalTimesOutLate: the same for an entry without a waiting request.
func TestRenewalTimesOutLate(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		brief := func(c *service.Config) { c.MaxHold = time.Second }
		a, b := s.replica(t), s.replica(t, brief)
		holder := b.hold(lasting(want("orders:1", 0)))
		g := b.start(lasting(keyed("orders:1", 5*time.Second, "k"))).stillWaits()
		after(4 * time.Second)
		a.store.on(func(ctx context.Context, do func() error) error { // the next one holds meanwhile
			a.store.on(nil, remove)
			b.release(holder)
			return do()
		}, remove)
		if again, err := a.Renew(t.Context(), by(g)); err != nil || !again.Held {
			t.Errorf("renewed: %+v, %v", again, err)
		}
		s.keeps(t, g)
	})
}

// TestTryGivesWayLate: a try that found the lock held by a view that is behind does
// not take away what the client's second attempt was granted elsewhere.
func TestTryGivesWayLate(t *testing.T) {
	for name, gone := range map[string]bool{"ClientStays": false, "ClientGone": true} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				s := newSharedStore(t)
				a, b := s.replica(t), s.replica(t)
				a.store.setLag(running, 100*time.Millisecond)
				a.store.on(late(120*time.Millisecond), enqueue)
				holder := b.hold(lasting(want("orders:1", 0))) // which a has not seen yet
				req := keyed("orders:1", 0, "k")
				p := a.start(req)
				after(60 * time.Millisecond)
				if gone {
					p.cancel()
				}
				b.release(holder)
				g := b.start(req).holds()
				after(3 * time.Second)
				s.keeps(t, g)
				if !gone {
					same(t, g, p.holdsLater())
				}
			})
		})
	}
}

// TestSemaphoreGivesWay: the removal is conditional on as many blockers as the limit. Above the
// number that can be compared it is unconditional.
func TestSemaphoreGivesWay(t *testing.T) {
	for _, limit := range []int{2, lock.MaxBlockers, lock.MaxBlockers + 1} {
		bubble.Test(t, func(t *testing.T) {
			s := newSharedStore(t)
			a, b := s.replica(t), s.replica(t)
			var holders []*service.Grant
			for range limit {
				holders = append(holders, b.hold(lasting(semaphore(limit, want("orders:1", 0)))))
			}
			req := semaphore(limit, keyed("orders:1", 10*time.Second, "k"))
			p, q := a.line(req), b.line(req)
			after(9500 * time.Millisecond)
			a.store.setFeed(frozen)
			b.release(holders[limit-1])
			g := q.holds()
			after(2 * time.Second)
			if limit <= lock.MaxBlockers {
				s.keeps(t, g)
				p.holdsLater()
			} else if p.fails(lock.TimedOut); s.has(g.Entry.ID) {
				t.Error("it was decided by more than may be compared")
			}
		})
	}
}

// TestCycleAfterAList: one of two replicas lists again, and does not know the entry that caused a
// rejection and has left since. Both still reach one decision.
func TestCycleAfterAList(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		a, b := s.replica(t), s.replica(t)
		a.hold(lasting(as("w1", want("x", 0))))
		b.hold(lasting(as("w2", want("y", 0))))
		synctest.Wait()
		b.store.setFeed(lost)
		first := a.line(as("w1", want("y", time.Minute)))
		stays := b.line(as("w2", want("x", 10*time.Minute)))
		first.cancel()
		after(10 * time.Millisecond)
		b.store.setFeed(running)
		synctest.Wait()
		stays.waits()
		a.start(as("w1", want("y", 10*time.Minute))).fails(lock.Deadlock)
		stays.waits()
	})
}

// TestCycleThatIsNoMore: a replica rejects an entry because of a cycle from which another entry
// has just left. The entry continues to wait.
func TestCycleThatIsNoMore(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		a, b := s.replica(t), s.replica(t)
		a.hold(lasting(as("w1", want("x", 0))))
		g2 := b.hold(lasting(as("w2", want("y", 0))))
		b.store.setLag(running, 100*time.Millisecond)
		after(time.Second)
		leaves := a.line(as("w1", want("y", time.Minute)))
		stays := b.line(as("w2", want("x", 10*time.Minute)))
		after(50 * time.Millisecond)
		leaves.cancel() // b hears of it, and of the cycle, before
		after(time.Second)
		stays.waits()
		if err := a.Release(t.Context(), by(g2)); err != nil {
			t.Fatal(err)
		}
		after(time.Second)
		if n := len(s.ids()); n != 2 {
			t.Errorf("%d entries", n)
		}
	})
}

// TestModeThatNoLongerDisagrees: the entry by which another one's mode was rejected has
// left, as the replica that refuses it has not heard yet.
func TestModeThatNoLongerDisagrees(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		a, b := s.replica(t), s.replica(t)
		b.store.setLag(running, 100*time.Millisecond)
		first := a.hold(want("x", time.Minute))
		second := b.start(semaphore(2, keyed("x", time.Minute, "k")))
		after(50 * time.Millisecond)
		a.release(first)
		again := a.hold(semaphore(2, keyed("x", time.Minute, "k")))
		same(t, again, second.holdsLater())
		after(time.Second)
		s.keeps(t, again)
	})
}

// TestRenewedAtALateReplica: after a client has learnt of its grant, no replica reports that it
// waits.
func TestRenewedAtALateReplica(t *testing.T) {
	for name, unseen := range map[string]bool{"SeenWaiting": false, "Unseen": true} {
		for _, lag := range []time.Duration{100 * time.Millisecond, time.Minute} {
			t.Run(name+lag.String(), func(t *testing.T) {
				bubble.Test(t, func(t *testing.T) {
					s := newSharedStore(t)
					a, b := s.replica(t), s.replica(t)
					holder := a.hold(lasting(want("orders:1", 0)))
					if unseen {
						b.store.setLag(running, lag)
						after(time.Second)
					}
					p := a.line(lasting(want("orders:1", time.Minute)))
					b.store.setLag(running, lag)
					a.release(holder)
					g := p.holds()
					for what, ask := range map[string]func() (*service.Grant, error){
						"renewal": func() (*service.Grant, error) { return b.Renew(t.Context(), by(g)) },
						"look":    func() (*service.Grant, error) { return b.Entry(t.Context(), by(g), 0) },
					} {
						if got, err := ask(); err != nil || !got.Held {
							t.Errorf("%s: %+v, %v", what, got, err)
						}
					}
				})
			})
		}
	}
}

// TestStillWaitingAtALateReplica: when a request has been held open for as long as it
// may be, its client is not told to wait on for what it holds.
func TestStillWaitingAtALateReplica(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		a, b := s.replica(t), s.replica(t)
		holder := a.hold(lasting(want("orders:1", 0)))
		p := b.line(lasting(want("orders:1", 10*time.Minute)))
		b.store.setFeed(frozen)
		a.release(holder)
		p.holdsLater()
	})
}

// TestWithdrawnDuringAGap: it was not used up, and is not called expired.
func TestWithdrawnDuringAGap(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		a, b := s.replica(t), s.replica(t)
		b.store.setFeed(frozen)
		holder := s.occupy(t, "orders:1")
		synctest.Wait()
		req := keyed("orders:1", 0, "k")
		p := b.start(req) // writes, because its view is late
		after(100 * time.Millisecond)
		a.store.setFeed(lost)
		p.fails(lock.Held) // and has taken it back
		if err := s.end(holder, lock.Released); err != nil {
			t.Fatal(err)
		}
		a.store.setFeed(running)
		synctest.Wait()
		a.hold(req)
	})
}

// TestModeRefusedTwice is the same for a mode.
func TestModeRefusedTwice(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		a, b := s.replica(t), s.replica(t)
		a.store.setLag(running, 50*time.Millisecond)
		b.store.setLag(running, 100*time.Millisecond)
		after(time.Second)
		s.replica(t).hold(lasting(want("x", 0)))
		req := semaphore(2, keyed("x", time.Minute, "k"))
		p, q := a.start(req), b.start(req)
		p.fails(lock.ModeMismatch)
		q.fails(lock.ModeMismatch)
	})
}

// TestWaitedByItsClock: the wait time uses the clock of the request's start, even if the store
// shows the grant at the last moment.
func TestWaitedByItsClock(t *testing.T) {
	for _, off := range []time.Duration{-time.Hour, time.Hour} {
		bubble.Test(t, func(t *testing.T) {
			s := newSharedStore(t)
			a := s.replica(
				t, func(c *service.Config) { c.Now = func() time.Time { return time.Now().Add(off) } },
			)
			holder := s.occupy(t, "orders:1")
			p := a.line(want("orders:1", 10*time.Second))
			a.store.setFeed(frozen)
			if err := s.end(holder, lock.Released); err != nil {
				t.Fatal(err)
			}
			if g := p.holdsLater(); g.Waited != 10*time.Second {
				t.Errorf("waited %v", g.Waited)
			}
		})
	}
}

// TestTryBehindAnOldView: a try is repeated at a replica whose view shows a holder that is gone,
// as the store shows at the removal. The present queue cannot be read. The answer does not claim
// that the lock is held, because the replica does not know.
func TestTryBehindAnOldView(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		a, b := s.replica(t), s.replica(t)
		a.store.setFeed(frozen)
		holder := b.hold(lasting(want("orders:1", 0)))
		a.store.on(broken, remove)
		req := keyed("orders:1", 0, "k")
		a.start(req).fails(lock.Held) // and its entry stays for a while
		a.store.setFeed(running)
		after(time.Second)
		a.store.setFeed(frozen)
		b.release(holder)
		a.store.on(nil, remove)
		a.store.on(broken, queue)
		if err := a.start(req).fails(lock.StoreUnavailable); !err.OutcomeUnknown {
			t.Errorf("it says that nothing is left: %v", err)
		}
		a.store.on(nil, queue)
		a.store.setFeed(running)
		a.start(req).holdsLater()
	})
}

// TestKeyInUseAgain: an entry expired, and before that was recorded, as stores do a moment
// later, its key was used again. A replica that has not seen the second entry answers with
// it, and not that the first one expired.
func TestKeyInUseAgain(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := &sharedStore{memory.NewServer(memory.Config{Number: 100, ExpiryRecord: time.Minute}), t}
		t.Cleanup(s.Close)
		a := s.replica(t)
		req := keyed("orders:1", 0, "k")
		first := a.start(req).holdsLater()
		after(ttl)
		a.store.setLag(running, 100*time.Millisecond)
		again := s.replica(t).start(req).holdsLater() // a replica that has just listed
		if again.Entry.Number == first.Entry.Number {
			t.Fatal("the first entry has not expired")
		}
		same(t, again, a.start(req).holdsLater())
	})
}

// TestLeaseOfAJoinedEntry: a repeated request finds its entry in the store, at a replica
// whose view is late. The lease has run since the first request, and starts again.
func TestLeaseOfAJoinedEntry(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		a, b := s.replica(t), s.replica(t)
		b.store.setFeed(frozen)
		req := keyed("orders:1", 0, "k")
		first := a.hold(req)
		after(ttl * 2 / 3)
		again := b.start(req).holdsLater()
		same(t, first, again)
		<-time.After(time.Until(again.ExpiresAt) - time.Millisecond)
		if !s.has(again.Entry.ID) {
			t.Errorf("the lease was to last until %v", again.ExpiresAt)
		}
	})
}

// TestKeyTakenAgainUnseen: the entry of a request is withdrawn by another one with its key,
// which then takes the lock by an entry of its own. The first one's replica, whose view is
// late, asks the store, and does not take the second entry for the one that it wrote.
func TestKeyTakenAgainUnseen(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		a, b := s.replica(t), s.replica(t)
		b.store.setFeed(frozen)
		req := keyed("orders:1", 0, "k")
		var second *service.Grant
		b.store.on(first(1, func(_ context.Context, do func() error) error {
			if err := s.end(s.Entries()[0], lock.Withdrawn); err != nil {
				t.Error(err)
			}
			g, err := a.Acquire(t.Context(), req)
			if second = g; err != nil {
				t.Error(err)
			}
			return do()
		}), queue)
		same(t, b.start(req).holdsLater(), second)
	})
}
