package service_test

import (
	"fmt"
	"testing"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service"
	"github.com/fencepost/fencepost/service/view"
	"github.com/fencepost/fencepost/test/bubble"
)

// TestPageOfManyHolders: a page ends after 2000 holders, and goes on where it ended.
func TestPageOfManyHolders(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		const locks, each = 25, 100
		r := newSharedStore(t).replica(t)
		for i := range locks {
			req := want(fmt.Sprintf("l%02d", i), 0)
			req.Claims[0].Mode = lock.Shared
			for range each {
				r.hold(req)
			}
		}
		list := func(after string) *view.Page {
			page, err := r.List(
				t.Context(),
				service.ListRequest{ListRequest: view.ListRequest{Tenant: "acme", Limit: 1000, After: after}},
			)
			if err != nil {
				t.Fatal(err)
			}
			return page
		}
		first := list("")
		if len(first.Locks) != 20 || first.Next != "l19" {
			t.Fatalf("%d locks, then from %q", len(first.Locks), first.Next)
		}
		if rest := list(first.Next); len(rest.Locks) != 5 || rest.Next != "" {
			t.Errorf("then %d locks, then from %q", len(rest.Locks), rest.Next)
		}
	})
}

// TestExpiriesAreBounded: what is remembered of leases does not grow with how many are
// looked at in a second.
func TestExpiriesAreBounded(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		r := newSharedStore(t).replica(t)
		for i := range service.MaxExpiries + 500 {
			name := fmt.Sprint("l", i)
			r.hold(want(name, 0))
			r.see(name)
		}
		if n := r.Expiries(); n < service.MaxExpiries/2 || n > service.MaxExpiries {
			t.Errorf("%d are remembered", n)
		}
	})
}
