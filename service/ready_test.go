package service_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/test/bubble"
)

// TestReadyBeforeItsTurn: where a lock changes hands fast, a request that waits for long
// starts its lease again before its turn comes, once, and is granted at the instant of the
// release, although that takes the store as long as several hand-overs. Where it changes
// hands slowly, the lease starts at the grant.
func TestReadyBeforeItsTurn(t *testing.T) {
	const waiters, takes = 20, 8 * time.Millisecond
	for name, test := range map[string]struct {
		held  time.Duration
		early bool // those that are further back than eight
	}{
		"fast": {5 * time.Millisecond, true},
		"slow": {50 * time.Millisecond, false},
	} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				r := newSharedStore(t).replica(t)
				holder := r.hold(lasting(want("orders:1", 0)))
				line := make([]*pending, waiters)
				for i := range line {
					line[i] = r.line(lasting(want("orders:1", time.Hour)))
				}
				after(time.Second)
				r.store.on(slow(takes), refresh)
				for i, p := range line {
					after(test.held)
					released := time.Now()
					r.release(holder)
					holder = p.holdsLater()
					late := p.at.Sub(released)
					renewals := len(r.store.times(refresh, holder.Entry.ID))
					if i < 9 {
						continue // only the first left while they were further back, who held for long
					}
					if early := late == 0; early != test.early || renewals != 1 {
						t.Errorf("waiter %d was granted %v late, with %d renewals", i, late, renewals)
					}
					if left := time.Until(holder.ExpiresAt); left < holder.Entry.TTL-250*time.Millisecond {
						t.Errorf("waiter %d has %v left", i, left)
					}
				}
			})
		})
	}
}

// TestReadyForAnotherTurn: a request that got ready and then waits for long all the same
// gets its full TTL at the grant. Until then it renews no more than others, whatever it is
// woken by.
func TestReadyForAnotherTurn(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		r := newSharedStore(t).replica(t)
		holder := r.hold(lasting(want("orders:1", 0)))
		line := make([]*pending, 10)
		for i := range line {
			line[i] = r.line(lasting(want("orders:1", time.Hour)))
		}
		after(time.Second)
		r.release(holder)
		slowest := line[0].holds()
		after(10 * time.Millisecond)
		r.release(slowest)
		holder = line[1].holds()
		after(time.Second)
		r.interrupt(time.Second, func() {})
		for _, p := range line[2:] {
			r.release(holder)
			holder = p.holds()
			after(time.Second)
		}
		var at []time.Duration
		for _, renewed := range r.store.times(refresh, holder.Entry.ID) {
			at = append(at, time.Since(renewed))
		}
		if diff := cmp.Diff([]time.Duration{10 * time.Second, time.Second}, at); diff != "" {
			t.Errorf("renewed so long ago (-want +got):\n%s", diff)
		}
	})
}
