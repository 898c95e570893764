package service_test

import (
	"context"
	"testing"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service"
	"github.com/fencepost/fencepost/test/bubble"
)

// renew starts the lease again, which must be possible.
func (r *replica) renew(g *service.Grant) *service.Grant {
	r.t.Helper()
	renewed, err := r.Renew(r.t.Context(), by(g))
	if err != nil {
		r.t.Fatalf("renew: %v", err)
	}
	return renewed
}

// TestRenew: at any replica, held or waiting, the lease starts again and nothing
// else changes.
func TestRenew(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		a, b := s.replica(t, func(c *service.Config) { c.MaxHold = time.Second }), s.replica(t)
		held := a.hold(want("orders:1", 0))
		waiting := a.line(want("orders:1", time.Hour)).stillWaits()
		for _, r := range []*replica{a, b} {
			after(20 * time.Second)
			for _, g := range []*service.Grant{held, waiting} {
				got := r.renew(g)
				same(t, g, got)
				if !got.ExpiresAt.Equal(time.Now().Add(ttl)) || got.Held != (g == held) || got.Waited != 0 {
					t.Errorf("renewed: %+v", got)
				}
				if got.Held == (got.Position == 1) {
					t.Errorf("held %t, position %d", got.Held, got.Position)
				}
			}
		}
		after(ttl - 1)
		if len(s.ids()) != 2 {
			t.Error("a renewed lease ended early")
		}
	})
}

// TestRenewTellsWhyItIsLost: at every replica, however late its feed.
func TestRenewTellsWhyItIsLost(t *testing.T) {
	for _, why := range []lock.Reason{lock.Released, lock.Expired, lock.Revoked, lock.WaitTimeout} {
		for _, lag := range []time.Duration{0, 200 * time.Millisecond, 600 * time.Millisecond} {
			t.Run(string(why)+lag.String(), func(t *testing.T) {
				bubble.Test(t, func(t *testing.T) {
					s := newSharedStore(t)
					a, b := s.replica(t), s.replica(t)
					b.store.setLag(running, lag)
					g := a.hold(want("orders:1", 0))
					if err := s.end(g.Entry, why); err != nil {
						t.Fatal(err)
					}
					for _, r := range []*replica{a, b} {
						_, err := r.Renew(t.Context(), by(g))
						lostFor(t, err, why)
						lostFor(t, r.Release(t.Context(), by(g)), why)
						_, err = r.Entry(t.Context(), by(g), 0)
						lostFor(t, err, why)
					}
				})
			})
		}
	}
}

// TestRenewNeverSucceedsAfterTheEnd: the view still shows the entry, and the
// store does not.
func TestRenewNeverSucceedsAfterTheEnd(t *testing.T) {
	for name, f := range map[string]feed{"Frozen": frozen, "Lost": lost} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				s := newSharedStore(t)
				a, b := s.replica(t), s.replica(t)
				g := a.hold(want("orders:1", 0))
				b.store.setFeed(f)
				a.release(g)
				began := time.Now()
				_, err := b.Renew(t.Context(), by(g))
				lostFor(t, err, lock.Unknown)
				if d := time.Since(began); d > 2*time.Second {
					t.Errorf("told after %v", d)
				}
				lostFor(t, b.Release(t.Context(), by(g)), lock.Unknown)
			})
		})
	}
}

// TestRenewAtALateReplica: the client wanted to wait for three seconds, was granted
// the lock in time, and renews later at a replica which still sees it wait.
func TestRenewAtALateReplica(t *testing.T) {
	for name, f := range map[string]feed{"Frozen": frozen, "Lost": lost} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				s := newSharedStore(t)
				a, b := s.replica(t), s.replica(t)
				first := a.hold(want("orders:1", 0))
				line := a.line(want("orders:1", 3*time.Second))
				b.store.setFeed(f)
				a.release(first)
				g := line.holds()
				after(5 * time.Second)
				b.renew(g)
				if _, err := a.Renew(t.Context(), by(g)); err != nil {
					t.Errorf("the holder lost the lock: %v", err)
				}
			})
		})
	}
}

// TestRenewDuringTheEnd: the entry goes while the store is being asked.
func TestRenewDuringTheEnd(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		r := s.replica(t)
		g := r.hold(want("orders:1", 0))
		r.store.on(func(_ context.Context, do func() error) error {
			_ = s.end(g.Entry, lock.Revoked)
			return do()
		}, refresh)
		_, err := r.Renew(t.Context(), by(g))
		lostFor(t, err, lock.Revoked)
	})
}

// TestReasonsAreForgotten: after the ten minutes there is only 'unknown'.
func TestReasonsAreForgotten(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		a, b := s.replica(t), s.replica(t)
		for _, before := range []time.Duration{6 * time.Minute, 59 * time.Second} { // others went before
			a.release(a.hold(want("orders:2", 0)))
			after(before)
		}
		g := a.hold(want("orders:1", 0))
		a.release(g)
		for _, step := range []struct {
			wait time.Duration
			why  lock.Reason
		}{
			{0, lock.Released}, {10 * time.Minute, lock.Released}, {time.Minute + time.Second, lock.Unknown},
		} {
			after(step.wait)
			for began, r := time.Now(), []*replica{a, b}; len(r) > 0; r = r[1:] {
				lostFor(t, r[0].Release(t.Context(), by(g)), step.why)
				took(t, began, 0)
			}
			a.release(a.hold(want("orders:2", 0))) // others go on
		}
	})
}

// TestRenewPastTheWait: a client that renews a waiting entry past its wait learns that, and the
// entry leaves the queue.
func TestRenewPastTheWait(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		r := s.replica(t, func(c *service.Config) { c.MaxHold = time.Second })
		r.hold(lasting(want("orders:1", 0)))
		g := r.line(want("orders:1", 20*time.Second)).stillWaits()
		after(18 * time.Second)
		r.renew(g)
		after(time.Second)
		_, err := r.Renew(t.Context(), by(g))
		lostFor(t, err, lock.WaitTimeout)
		if len(s.ids()) != 1 || s.reasonOf(g.Entry.ID) != lock.WaitTimeout {
			t.Errorf("%d entries, reason %q", len(s.ids()), s.reasonOf(g.Entry.ID))
		}
	})
}

// TestRenewOfAHolderPastTheWait: how long it was ready to wait says nothing about
// how long it may hold.
func TestRenewOfAHolderPastTheWait(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		r := newSharedStore(t).replica(t)
		g := r.hold(want("orders:1", time.Second))
		after(10 * time.Second)
		r.renew(g)
	})
}

// TestRenewBeforeTheFeed: an entry that this replica has not seen yet is found.
func TestRenewBeforeTheFeed(t *testing.T) {
	for _, lag := range []time.Duration{100 * time.Millisecond, 5 * time.Second} {
		t.Run(lag.String(), func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				s := newSharedStore(t)
				a, b := s.replica(t), s.replica(t)
				b.store.setLag(running, lag)
				g := a.hold(want("orders:1", 0))
				began := time.Now()
				same(t, g, b.renew(g))
				if d := time.Since(began); d > 250*time.Millisecond {
					t.Errorf("found after %v", d)
				}
				if soon := lag < 250*time.Millisecond; soon == (b.store.count(queue) > 0) {
					t.Errorf("the store was asked %d times", b.store.count(queue))
				}
				b.release(g)
			})
		})
	}
}

// TestRelease: it frees exactly the entry, and a repetition finds it released.
func TestRelease(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		a, b := s.replica(t), s.replica(t)
		g := a.hold(want("orders:1", 0))
		next := b.line(want("orders:1", time.Minute))
		b.release(g)
		newer := next.holds()
		for _, r := range []*replica{a, b} {
			lostFor(t, r.Release(t.Context(), by(g)), lock.Released)
		}
		a.renew(newer)
	})
}

// TestReleaseOutlivesItsClient: a client that goes away leaves no release half
// done.
func TestReleaseOutlivesItsClient(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		r := s.replica(t)
		g := r.hold(want("orders:1", 0))
		r.store.on(slow(time.Second), remove)
		p := r.begin(
			t.Context(),
			func(ctx context.Context) (*service.Grant, error) { return nil, r.Release(ctx, by(g)) },
		)
		after(500 * time.Millisecond)
		p.cancel()
		<-p.done
		if len(s.ids()) != 0 {
			t.Error("not released")
		}
	})
}

// TestStoreUnavailable: what the store cannot answer is not taken for a loss.
func TestStoreUnavailable(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		r := s.replica(t)
		g := r.hold(lasting(want("orders:1", 0)))
		r.store.on(broken, refresh)
		r.store.on(first(1, deaf), remove)
		_, err := r.Renew(t.Context(), by(g))
		coded(t, err, lock.StoreUnavailable)
		if e := coded(t, r.Release(t.Context(), by(g)), lock.StoreUnavailable); !e.OutcomeUnknown {
			t.Errorf("%+v", e)
		}
		lostFor(t, r.Release(t.Context(), by(g)), lock.Released)
	})
}

// TestEntry: a look does not touch the lease.
func TestEntry(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		r := s.replica(t)
		g := r.hold(want("orders:1", 0))
		after(10 * time.Second)
		for _, wait := range []time.Duration{0, time.Minute} {
			got, err := r.Entry(t.Context(), by(g), wait)
			if err != nil || !got.Held || !got.ExpiresAt.Equal(g.ExpiresAt) || r.store.count(refresh) != 0 {
				t.Errorf("%+v, %v", got, err)
			}
		}
	})
}
