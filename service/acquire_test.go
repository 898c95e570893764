package service_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/test/bubble"
)

func TestFreeLockIsGrantedAtOnce(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		r := s.replica(t)
		began := time.Now()
		g := r.hold(want("orders:1", time.Minute))
		took(t, began, 0)
		if g.Waited != 0 || !g.ExpiresAt.Equal(began.Add(ttl)) || g.Entry.Number != 101 || g.Token == "" {
			t.Errorf("grant %+v of %+v", g, g.Entry)
		}
		if diff := cmp.Diff(map[string]int{enqueue: 1}, r.store.counts()); diff != "" {
			t.Errorf("an uncontended acquire is not one write (-want +got):\n%s", diff)
		}
	})
}

// takenBack is the answer of a store that wrote the entry late, and took it back itself.
func takenBack(context.Context, func() error) error {
	return &lock.Error{
		Code: lock.StoreUnavailable, RetryAfter: time.Second, Cause: store.ErrNotWritten,
	}
}

// TestTakenBackIsAskedForAgain: if the store itself removes the entry of a request, the service
// writes another one, as long as the client can get its answer in time.
func TestTakenBackIsAskedForAgain(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		r := s.replica(t)
		var took []lock.ID
		r.store.on(first(2, func(ctx context.Context, do func() error) error {
			after(time.Second)
			return takenBack(ctx, do)
		}), enqueue)
		began := time.Now()
		g, err := r.Acquire(t.Context(), want("orders:1", time.Minute))
		if err != nil || !g.Held {
			t.Fatalf("Acquire: %+v, %v", g, err)
		}
		for _, c := range r.store.calls {
			if c.method == enqueue {
				took = append(took, c.id)
			}
		}
		if len(took) != 3 || took[0] == took[1] || took[1] == took[2] || took[2] != g.Entry.ID {
			t.Errorf("the request was written as %v, and is %s", took, g.Entry.ID)
		}
		if !g.Entry.EnqueuedAt.Equal(began) || !g.Entry.WaitUntil.Equal(began.Add(time.Minute)) ||
			!g.ExpiresAt.After(began.Add(ttl)) {
			t.Errorf("it is %+v, for a request of %v, till %v", g.Entry, began, g.ExpiresAt)
		}
	})
}

// TestTakenBackTooLate: a store that goes on taking back is not asked for longer than a client is
// to wait for an answer, and the answer says that nothing of the request is left.
func TestTakenBackTooLate(t *testing.T) {
	for name, then := range map[string]fault{"Again": takenBack, "AndSilent": silent} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				r := newSharedStore(t).replica(t)
				slowly := func(ctx context.Context, do func() error) error {
					pause(ctx, 1500*time.Millisecond)
					return takenBack(ctx, do)
				}
				var calls atomic.Int64
				r.store.on(func(ctx context.Context, do func() error) error {
					if calls.Add(1) == 1 {
						return slowly(ctx, do)
					}
					pause(ctx, time.Second)
					return then(ctx, do)
				}, enqueue)
				began := time.Now()
				_, err := r.Acquire(t.Context(), want("orders:1", 0))
				var e *lock.Error
				if !errors.As(err, &e) || e.Code != lock.StoreUnavailable || e.OutcomeUnknown {
					t.Errorf("Acquire: %v", err)
				}
				if d := time.Since(began); d > 5*time.Second {
					t.Errorf("the answer came after %v", d)
				}
			})
		})
	}
}

// wakes counts how often a waiting request went to sleep: it asks for Done each
// time.
type wakes struct {
	context.Context
	n *atomic.Int64
}

func (w wakes) Done() <-chan struct{} {
	w.n.Add(1)
	return w.Context.Done()
}

// TestHandOverWakesTheNextInLine: each of 100 waiters is granted in order, at the instant of the
// release. The release wakes only the next waiter and the one eight positions behind it, which
// prepares its lease if it waits for long.
func TestHandOverWakesTheNextInLine(t *testing.T) {
	const waiters = 100
	bubble.Test(t, func(t *testing.T) {
		r := newSharedStore(t).replica(t)
		holder := r.hold(want("orders:1", 0))
		line := make([]*pending, waiters)
		sleeps := make([]atomic.Int64, waiters)
		for i := range line {
			ctx := wakes{t.Context(), &sleeps[i]}
			line[i] = r.begin(t.Context(), func(context.Context) (*service.Grant, error) {
				return r.Acquire(ctx, want("orders:1", time.Hour))
			})
			line[i].waits()
		}
		count := func() []int64 {
			n := make([]int64, waiters)
			for i := range sleeps {
				n[i] = sleeps[i].Load()
			}
			return n
		}
		before := count()
		for i, p := range line {
			after(10 * time.Millisecond)
			released := time.Now()
			r.release(holder)
			next := p.holds()
			if !p.at.Equal(released) || next.Entry.Number <= holder.Entry.Number {
				t.Fatalf(
					"waiter %d was granted %v late, fence %d after %d", i, p.at.Sub(released), next.Entry.Number,
					holder.Entry.Number,
				)
			}
			if woken := time.Duration(i+1) * 10 * time.Millisecond; next.Waited != woken {
				t.Fatalf("waiter %d waited %v, want %v", i, next.Waited, woken)
			}
			now := count()
			if ready := i + 8; next.Waited > 125*time.Millisecond && ready < waiters {
				before[ready] = now[ready]
			}
			if !slices.Equal(now[i+1:], before[i+1:]) {
				t.Fatalf("hand-over %d woke more than the next in line: %v, before %v", i, now, before)
			}
			holder = next
		}
	})
}

// TestWakesAreCounted: the count of the test above sees a wake-up. A lost feed wakes all waiters.
func TestWakesAreCounted(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		r := newSharedStore(t).replica(t)
		r.hold(want("orders:1", 0))
		var sleeps atomic.Int64
		ctx := wakes{t.Context(), &sleeps}
		p := r.begin(t.Context(), func(context.Context) (*service.Grant, error) {
			return r.Acquire(ctx, want("orders:1", time.Second))
		})
		p.waits()
		before := sleeps.Load()
		r.store.setFeed(lost)
		if p.waits(); before == 0 || sleeps.Load() != before+1 {
			t.Errorf("%d sleeps, then %d", before, sleeps.Load())
		}
		p.fails(lock.TimedOut)
	})
}

// TestWaitersAreAskedNothing: neither a hand-over nor the wait before it costs
// the store more than the writes themselves, while leases are fresh.
func TestWaitersAreAskedNothing(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		r := newSharedStore(t).replica(t)
		holder := r.hold(want("orders:1", 0))
		p := r.line(want("orders:1", time.Minute))
		after(100 * time.Millisecond)
		r.release(holder)
		p.holds()
		if diff := cmp.Diff(map[string]int{enqueue: 2, remove: 1}, r.store.counts()); diff != "" {
			t.Errorf("calls to the store (-want +got):\n%s", diff)
		}
	})
}

// TestGrantAtTheDeadline: the lock comes free as the wait ends. Either answer is
// right; the entry must agree with it.
func TestGrantAtTheDeadline(t *testing.T) {
	for range 20 {
		bubble.Test(t, func(t *testing.T) {
			s := newSharedStore(t)
			r := s.replica(t)
			holder := r.hold(want("orders:1", 0))
			p := r.line(want("orders:1", time.Second))
			after(time.Second - time.Nanosecond)
			r.begin(t.Context(), func(ctx context.Context) (*service.Grant, error) {
				pause(ctx, time.Nanosecond)
				return nil, r.Release(ctx, by(holder))
			})
			<-p.done
			synctest.Wait()
			if granted := p.err == nil && p.grant.Held; granted != (len(s.ids()) == 1) {
				t.Fatalf("granted: %t (%v), and in the store are %v", granted, p.err, s.ids())
			}
		})
	}
}

func TestTry(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		a, b := s.replica(t), s.replica(t)
		holder := a.hold(want("orders:1", 0))
		a.line(want("orders:1", time.Minute))
		began := time.Now()
		p := b.start(want("orders:1", 0))
		p.fails(lock.Held)
		took(t, began, 0)
		if len(p.grant.Holders) != 1 || p.grant.Holders[0].Entry.ID != holder.Entry.ID ||
			p.grant.Waiters != 1 {
			t.Errorf("told of holders %+v and %d waiters", p.grant.Holders, p.grant.Waiters)
		}
		if p.grant.Token != "" || b.store.count(enqueue) != 0 {
			t.Errorf("a refused try wrote %d entries, token %q", b.store.count(enqueue), p.grant.Token)
		}
	})
}

// TestTryAfterAReleaseElsewhere: after a client has released the lock, no other replica reports
// to it that the lock is held.
func TestTryAfterAReleaseElsewhere(t *testing.T) {
	for _, lag := range []time.Duration{0, 100 * time.Millisecond, 3 * time.Second} {
		t.Run(fmt.Sprint(lag), func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				s := newSharedStore(t)
				a, b := s.replica(t), s.replica(t)
				b.store.setLag(running, lag)
				holder := a.hold(want("orders:1", 0))
				after(lag)
				a.release(holder)
				b.start(want("orders:1", 0)).holdsLater()
			})
		})
	}
}

// TestTimeoutShorterThanTheFeed: a wait that ends before the feed tells anything
// is decided by the store.
func TestTimeoutShorterThanTheFeed(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		r := s.replica(t)
		r.store.setLag(running, time.Second)
		s.occupy(t, "another")
		began := time.Now()
		r.start(want("free", 100*time.Millisecond)).holdsLater()
		p := r.start(want("free", 100*time.Millisecond))
		p.fails(lock.TimedOut)
		took(t, began, 200*time.Millisecond)
		if n := len(s.ids()); n != 2 {
			t.Errorf("%d entries are left, want the holders", n)
		}
	})
}

// TestHoldLimit: a request is held open for a limited time. The entry waits on,
// and its client comes back to the same place by its token or by its key.
func TestHoldLimit(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		a, b := s.replica(t), s.replica(t)
		holder, ahead := a.hold(lasting(want("orders:1", 0))), a.line(
			lasting(want("orders:1", 24*time.Hour)),
		)
		began, req := time.Now(), keyed("orders:1", 3*time.Minute, "k")
		g := a.line(req).stillWaits()
		took(t, began, hold)
		if g.Position != 2 || g.Token == "" || g.ExpiresAt.Before(began.Add(hold+ttl*2/3)) ||
			g.ExpiresAt.After(began.Add(hold+ttl)) {
			t.Errorf("still waiting at %d until %v", g.Position, g.ExpiresAt)
		}
		for _, again := range []*pending{b.resume(g, time.Hour), a.start(req)} {
			if g2 := again.stillWaits(); g2.Entry.Number != g.Entry.Number || g2.Token != g.Token {
				t.Errorf("came back to %+v", g2.Entry)
			}
			took(t, began, 2*hold)
		}
		if g := b.resume(g, time.Second).stillWaits(); g.Position != 2 {
			t.Errorf("position %d", g.Position)
		}
		took(t, began, 2*hold+time.Second)
		last := b.resume(g, time.Hour)
		a.release(holder)
		a.release(ahead.stillWaits())
		if got := last.holds(); got.Entry.Number != g.Entry.Number || got.Token != g.Token {
			t.Errorf("granted %+v", got)
		}
	})
}

// TestBounds: what the request asks for is checked before anything is written.
func TestBounds(t *testing.T) {
	pairs := map[string]string{}
	for i := range lock.MaxMetadata + 1 {
		pairs[fmt.Sprint(i)] = ""
	}
	cases := map[string]func(*service.AcquireRequest){
		"ttl_seconds":  func(r *service.AcquireRequest) { r.TTL = minTTL - 1 },
		"wait_seconds": func(r *service.AcquireRequest) { r.Wait = -1 },
		"holder": func(r *service.AcquireRequest) {
			r.Holder = strings.Repeat("ä", lock.MaxHolderLength+1)
		},
		"metadata":      func(r *service.AcquireRequest) { r.Metadata = pairs },
		"ttl_seconds ":  func(r *service.AcquireRequest) { r.TTL = time.Hour + 1 },
		"wait_seconds ": func(r *service.AcquireRequest) { r.Wait = 24*time.Hour + 1 },
		"holder ":       func(r *service.AcquireRequest) { r.Holder = "\xff" },
		"metadata ": func(r *service.AcquireRequest) {
			r.Metadata = map[string]string{"k": strings.Repeat("v", lock.MaxMetadataSize)}
		},
	}
	bubble.Test(t, func(t *testing.T) {
		r := newSharedStore(t).replica(t)
		for field, spoil := range cases {
			req := want("orders:1", time.Second)
			spoil(&req)
			_, err := r.Acquire(t.Context(), req)
			if e := coded(t, err, lock.InvalidRequest); e.Field != strings.TrimSpace(field) {
				t.Errorf("%s: the field at fault is %q", field, e.Field)
			}
		}
		if n := r.store.counts(); len(n) != 0 {
			t.Errorf("the store was asked: %v", n)
		}
		req := want("orders:1", 24*time.Hour)
		req.TTL, req.Holder = time.Hour, strings.Repeat("ä", lock.MaxHolderLength)
		r.hold(req)
	})
}

// TestTryBehindALateFeed: a try is not to wait, even where the view cannot tell.
func TestTryBehindALateFeed(t *testing.T) {
	for name, given := range map[string]struct {
		feed feed
		hold time.Duration
	}{
		"Frozen": {frozen, 0}, "Lost": {lost, 0},
		"FrozenAndNotHeldOpen": {frozen, 1}, "LostAndNotHeldOpen": {lost, 1},
	} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				s := newSharedStore(t)
				a, b := s.replica(t), s.replica(t)
				b.store.setFeed(given.feed)
				holder := a.hold(want("orders:1", 0))
				began := time.Now()
				req := want("orders:1", 0)
				req.Hold = given.hold
				p := b.start(req)
				p.fails(lock.Held)
				if d := p.at.Sub(began); d > time.Second {
					t.Errorf("it took %v", d)
				}
				synctest.Wait()
				if diff := cmp.Diff([]lock.ID{holder.Entry.ID}, s.ids()); diff != "" {
					t.Errorf("a refused try left something behind (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestWaitTimesOut(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		r := s.replica(t)
		holder := r.hold(want("orders:1", 0))
		p, other := r.line(want("orders:1", 3*time.Second)), r.line(want("orders:1", time.Minute))
		began, id := time.Now(), s.ids()[1]
		if e := p.fails(lock.TimedOut); e.RetryAfter <= 0 {
			t.Errorf("no Retry-After: %+v", e)
		}
		took(t, began, 3*time.Second)
		if len(p.grant.Holders) != 1 || p.grant.Holders[0].Entry.ID != holder.Entry.ID ||
			p.grant.Waiters != 1 {
			t.Errorf("told of holders %+v and %d waiters", p.grant.Holders, p.grant.Waiters)
		}
		if h := p.grant.Holders[0]; !h.Since.Equal(holder.Entry.EnqueuedAt) ||
			!h.ExpiresAt.Equal(holder.ExpiresAt) {
			t.Errorf("holder since %v until %v", h.Since, h.ExpiresAt)
		}
		if slices.Contains(s.ids(), id) || s.reasonOf(id) != lock.WaitTimeout {
			t.Errorf("the entry is still there, or left for the reason %q", s.reasonOf(id))
		}
		r.release(holder)
		other.holds()
	})
}
