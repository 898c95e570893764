package view_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service/figures"
	"github.com/fencepost/fencepost/service/view"
	"github.com/fencepost/fencepost/store"
)

// TestBounds: a view keeps no more ends than its bound, and of one tenant's ends a
// quarter of that.
func TestBounds(t *testing.T) {
	used := figures.New(10)
	v := view.New(view.Config{
		Events: nobody{}, Wall: time.Now, Refusal: func() error { return nil }, Fresh: time.Hour,
		Ends: 8 << 10, Figures: used,
	})
	v.Reset(store.Snapshot{})
	number := uint64(0)
	for i := range uint64(3 << 10) {
		name := fmt.Sprint("lock:", i)
		e := &lock.Entry{
			ID: view.NumberedID(i), Tenant: "acme", Number: number + 1, TTL: time.Minute,
			EnqueuedAt: time.Now(), Claims: []lock.Claim{{Name: name, Mode: lock.Exclusive}},
		}
		v.Apply(number+1, []store.Change{{Number: number + 1, Joined: e}})
		number += 2
		v.Apply(number, []store.Change{{Number: number, Left: e.ID, Reason: lock.Released}})
	}
	if n := v.EndsOf("acme"); n > 2<<10 || n < 1<<10 {
		t.Errorf("%d ends are kept of a tenant, want 2048 and no chunk less", n)
	}
	known := 0
	for i := range 3 << 10 {
		if used.Of(lock.Ref{Tenant: "acme", Name: fmt.Sprint("lock:", i)}).Newest > 0 {
			known++
		}
	}
	if known != 10 {
		t.Errorf("figures are kept of %d locks, want 10", known)
	}
}
