package service_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service"
	"github.com/fencepost/fencepost/test/bubble"
)

// interrupt cuts the feed off while something happens, for d.
func (r *replica) interrupt(d time.Duration, during func()) {
	r.store.setFeed(lost)
	after(d / 2)
	during()
	after(d - d/2)
	r.store.setFeed(running)
	synctest.Wait()
}

// TestSinceSurvivesAnInterruption: the start of a hold survives a new list of the feed. A hold
// that began meanwhile starts at the list.
func TestSinceSurvivesAnInterruption(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		r := s.replica(t)
		stays := r.hold(lasting(want("stays", 0)))
		goes := r.hold(lasting(want("goes", 0)))
		next := s.replica(t).line(lasting(want("goes", time.Hour)))
		began := time.Now()
		r.interrupt(10*time.Second, func() {
			if err := s.end(goes.Entry, lock.Released); err != nil {
				t.Fatal(err)
			}
		})
		if h := r.see("stays").Holders; len(h) != 1 || !h[0].Since.Equal(stays.Entry.EnqueuedAt) {
			t.Errorf("holders %+v", h)
		}
		if h := r.see("goes").Holders; len(h) != 1 || h[0].Entry.ID != next.holds().Entry.ID ||
			!h[0].Since.Equal(began.Add(10*time.Second)) {
			t.Errorf("holders %+v", h)
		}
	})
}

// TestSinceAfterAStart: a replica that has just started can only guess.
func TestSinceAfterAStart(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		e := s.occupy(t, "orders:1")
		after(time.Minute)
		v := s.replica(t).see("orders:1")
		if h := v.Holders; len(h) != 1 || !h[0].Since.Equal(e.EnqueuedAt) || v.Newest != e.Number {
			t.Errorf("holders %+v, newest %d", h, v.Newest)
		}
	})
}

// TestEndsDuringAnInterruption: what vanished while the feed was down ended for
// the reason that the store remembers, or expired.
func TestEndsDuringAnInterruption(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		r := s.replica(t)
		expired, released := r.hold(want("orders:1", 0)), r.hold(want("orders:2", 0))
		unseen := want("orders:3", 0)
		r.interrupt(ttl, func() {
			g, _, err := s.insert(&lock.Entry{
				ID: "of-another", Tenant: "acme", Claims: unseen.Claims, TTL: time.Second,
				EnqueuedAt: time.Now(),
			})
			if err != nil || s.end(g, lock.Revoked) != nil || s.end(released.Entry, lock.Released) != nil {
				t.Fatal("the test does not do what it should")
			}
		})
		lostFor(t, r.Release(t.Context(), by(expired)), lock.Expired)
		lostFor(t, r.Release(t.Context(), by(released)), lock.Released)
		if v := r.see("orders:1"); len(v.Holders) != 0 {
			t.Errorf("holders %+v", v.Holders)
		}
	})
}

// TestFirstReasonCounts: an end that was taken for an expiry remains one, and a reported end is
// not taken for an expiry later.
func TestFirstReasonCounts(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		r := s.replica(t)
		g := r.hold(want("orders:1", 0))
		r.release(g)
		r.interrupt(time.Second, func() {
			s.Forget() // sooner than the replica
		})
		lostFor(t, r.Release(t.Context(), by(g)), lock.Released)
	})
}

// TestRememberedEnds: a replica that starts later knows why entries ended.
func TestRememberedEnds(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		a := s.replica(t)
		g := a.hold(keyed("orders:1", 0, "k"))
		a.release(g)
		after(time.Minute)
		b := s.replica(t)
		lostFor(t, b.Release(t.Context(), by(g)), lock.Released)
		b.start(keyed("orders:1", 0, "k")).ends(lock.Released)
	})
}

// TestListAgainWithoutChange: no waiter or holder notices.
func TestListAgainWithoutChange(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		r := s.replica(t)
		g := r.hold(lasting(want("orders:1", 0)))
		p := r.line(want("orders:1", time.Hour))
		for range 10 {
			r.interrupt(time.Second, func() {})
		}
		p.waits()
		if v := r.see("orders:1"); v.Waiting != 1 || len(v.Holders) != 1 || v.Figures.Acquisitions != 1 {
			t.Errorf("%+v", v)
		}
		r.release(g)
		p.holds()
	})
}

// TestWaitForNumbers: many requests wait for a stale view. Each continues when its own number is
// there, whichever others have given up meanwhile.
func TestWaitForNumbers(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		r := s.replica(t)
		r.store.setLag(running, time.Second)
		var looks []*pending
		gaveUp := map[int]bool{}
		for i := range 20 {
			name := fmt.Sprint("orders:", i)
			s.occupy(t, name)
			looks = append(looks, r.begin(t.Context(), func(ctx context.Context) (*service.Grant, error) {
				_, err := r.Lock(ctx, ref(name), true, nil)
				return nil, err
			}))
			after(100 * time.Millisecond) // the view is ten behind
			if i%3 == 0 {
				looks[i/2].cancel()
				gaveUp[i/2] = true
			}
			for j, p := range looks {
				seen := j <= i-9 // its number has come, a second after it
				if !gaveUp[j] && p.answered() != seen {
					t.Fatalf("after %d, look %d is answered: %t, want %t", i, j, !seen, seen)
				}
			}
		}
		after(time.Second)
		for j, p := range looks {
			<-p.done
			if !gaveUp[j] && p.err != nil {
				t.Errorf("look %d: %v", j, p.err)
			}
		}
	})
}
