package view_test

import (
	"testing"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service/view"
	"github.com/fencepost/fencepost/store"
)

type nobody struct{}

func (nobody) Add(view.Event) {}

func empty() *view.View {
	return view.New(view.Config{Events: nobody{}, Wall: time.Now, Refusal: func() error { return nil }})
}

// TestRecalledEndsAreTheirTenants: what a replica is told of ends from before it started
// counts for the tenants whose they were, whose bound so holds for it too.
func TestRecalledEndsAreTheirTenants(t *testing.T) {
	v := empty()
	v.Reset(store.Snapshot{Number: 6})
	var ends []store.Ended
	for n := range uint64(3) {
		ends = append(ends, store.Ended{ID: view.NumberedID(n), Tenant: "acme", Reason: lock.Released, At: time.Now()})
	}
	v.Recall(ends, true)
	if n, nobodys := v.EndsOf("acme"), v.EndsOf(""); n != 3 || nobodys != 0 {
		t.Errorf("%d ends are the tenant's and %d nobody's, want 3 and 0", n, nobodys)
	}
}
