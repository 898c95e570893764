package service_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/store/memory"
	"github.com/fencepost/fencepost/test/bubble"
)

// lostFuture tells the shelf of a number that it has not reached.
func (r *replica) lostFuture() {
	r.t.Helper()
	if err := r.store.inner.Distrust(r.t.Context(), 1_000_000); err != nil {
		r.t.Fatal(err)
	}
}

// holdsWithoutTrust grants an async entry after its store has lost its past.
func (r *replica) holdsWithoutTrust(wait time.Duration) {
	r.t.Helper()
	holder := r.hold(lasting(want("orders:1", 0)))
	r.post(want("orders:1", wait))
	r.lostFuture()
	r.release(holder)
}

// TestNoGrantWithoutTrust: requests wait from before the store lost its past. An unknown client
// may have been granted the lock in the lost part. So the service grants none of them, whichever
// way its replica learns of the next holder, and however the client asks.
func TestNoGrantWithoutTrust(t *testing.T) {
	for name, f := range map[string]feed{"View": running, "Store": frozen, "List": lost} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				s := newSharedStore(t)
				a, b := s.replica(t), s.replica(t)
				holder, other := a.hold(lasting(want("orders:1", 0))), a.hold(lasting(want("orders:2", 0)))
				p, q := b.line(lasting(want("orders:1", time.Minute))), b.line(
					lasting(keyed("orders:2", time.Minute, "k")),
				)
				b.store.setFeed(f)
				a.lostFuture()
				a.release(holder)
				a.release(other)
				for _, p := range []*pending{p, q} {
					if e := p.fails(lock.FenceFloorRequired); !e.OutcomeUnknown || p.grant == nil || p.grant.Held {
						t.Errorf("%+v with %+v", e, p.grant)
					}
				}
				b.store.setFeed(running)
				synctest.Wait()
				for _, p := range []*pending{p, q} {
					a.wantsTrust(p.grant)
					b.wantsTrust(p.grant)
				}
			})
		})
	}
}

// wantsTrust asks in each way about an entry that holds but was not granted.
func (r *replica) wantsTrust(g *service.Grant) {
	r.t.Helper()
	if _, err := r.Renew(r.t.Context(), by(g)); !coded(
		r.t, err, lock.FenceFloorRequired,
	).OutcomeUnknown {
		r.t.Error("the lease was renewed, which may not be told")
	}
	for _, wait := range []time.Duration{0, time.Second} {
		again, err := r.Entry(r.t.Context(), by(g), wait)
		if coded(r.t, err, lock.FenceFloorRequired); again != nil && again.Held {
			r.t.Errorf("asked for %v: %+v", wait, again)
		}
	}
}

// TestWaitsInARestoredStore: a backup takes the place of a store under waiting requests,
// and the feed, which went on, cannot tell.
func TestWaitsInARestoredStore(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		r := s.replica(t)
		holder := r.hold(lasting(want("orders:1", 0)))
		p := r.line(lasting(want("orders:1", time.Minute)))
		backup := s.Checkpoint()
		r.release(r.hold(want("orders:2", 0)))
		s.Restore(backup)
		if err := s.end(holder.Entry, lock.Expired); err != nil {
			t.Fatal(err)
		}
		p.fails(lock.FenceFloorRequired)
	})
}

// TestHoldersWithoutTrust: holders from before continue, and a new holder learns of its grant
// when the store is trusted again.
func TestHoldersWithoutTrust(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		a, b := s.replica(t), s.replica(t)
		g, holder := a.hold(lasting(want("orders:1", 0))), a.hold(lasting(want("orders:2", 0)))
		p := a.line(lasting(want("orders:2", time.Minute)))
		if err := b.store.inner.Distrust(t.Context(), holder.Entry.Number+5); err != nil {
			t.Fatal(err)
		}
		for _, r := range []*replica{a, b} {
			r.store.setFeed(lost)
			synctest.Wait()
			r.store.setFeed(running) // they list again
			synctest.Wait()
			if again, err := r.Renew(t.Context(), by(g)); err != nil || !again.Held {
				t.Errorf("renewed: %+v, %v", again, err)
			}
		}
		a.release(holder)
		p.fails(lock.FenceFloorRequired)
		for _, r := range []*replica{a, b} {
			r.wantsTrust(p.grant)
		}
		now := s.Checkpoint()
		// without what was recorded of the loss
		s.Restore(memory.Checkpoint{Number: now.Number, Entries: now.Entries})
		synctest.Wait()
		for _, r := range []*replica{a, b} {
			if again, err := r.Renew(t.Context(), by(p.grant)); err != nil || !again.Held {
				t.Errorf("with trust: %+v, %v", again, err)
			}
		}
	})
}

// belowFloor is a replica's store that does not know of a fence floor until it reads what
// the store remembers of itself.
type belowFloor struct {
	store.Store
	floor uint64
	read  atomic.Bool
}

func (b *belowFloor) below(number uint64) uint64 {
	if b.read.Load() {
		return number
	}
	return number - b.floor
}

func (b *belowFloor) Queue(ctx context.Context, r lock.Ref) ([]*lock.Entry, uint64, error) {
	entries, number, err := b.Store.Queue(ctx, r)
	for i, e := range entries {
		seen := *e
		seen.Number = b.below(e.Number)
		entries[i] = &seen
	}
	return entries, b.below(number), err
}

func (b *belowFloor) Newest(ctx context.Context) (uint64, error) {
	number, err := b.Store.Newest(ctx)
	return b.below(number), err
}

func (b *belowFloor) Distrust(context.Context, uint64) error {
	b.read.Store(true)
	return nil
}

// TestTokenAboveAFloorThatIsNotKnown: another replica has set a fence floor, and has granted a
// lock since. A client sends the token to this replica, whose feed lags. The number proves no
// loss, and the answer does not report a lost lock.
func TestTokenAboveAFloorThatIsNotKnown(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		late := &belowFloor{floor: 50}
		a := s.replica(t)
		b := s.replica(t, func(c *service.Config) { late.Store, c.Store = c.Store, late })
		b.store.setFeed(frozen)
		g := a.hold(lasting(want("orders:1", 0)))
		if again, err := b.Renew(t.Context(), by(g)); err != nil || !again.Held {
			t.Errorf("renewed: %+v, %v", again, err)
		}
		set := want("orders:2", 0)
		set.Set = true
		h := a.hold(lasting(set))
		late.read.Store(false)
		time.AfterFunc(time.Second, func() { b.store.setFeed(running) })
		req := by(h)
		req.Name, req.Set = "", true
		if again, err := b.Renew(t.Context(), req); err != nil || !again.Held {
			t.Errorf("renewed as a set: %+v, %v", again, err)
		}
	})
}
