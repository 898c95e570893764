package lock_test

import (
	"errors"
	"testing"

	"github.com/fencepost/fencepost/lock"
)

func TestCheckClaims(t *testing.T) {
	a, limited := lock.Claim{Name: "a", Mode: lock.Exclusive}, lock.Claim{
		Name: "b", Mode: lock.Semaphore, Limit: lock.MaxLimit, Permits: 1,
	}
	of := func(c lock.Claim, change func(*lock.Claim)) lock.Claim { change(&c); return c }
	many := make([]lock.Claim, lock.MaxSetSize+1)
	for _, c := range []struct {
		claims []lock.Claim
		set    bool
		field  string // at fault; "" if none is
	}{
		{[]lock.Claim{a}, false, ""},
		{[]lock.Claim{limited}, false, ""},
		{[]lock.Claim{a, limited}, true, ""},
		{nil, true, "locks"},
		{many, true, "locks"},
		{[]lock.Claim{a, a}, true, "locks[1].name"},
		{[]lock.Claim{a, of(limited, func(c *lock.Claim) { c.Name = "b/c" })}, true, "locks[1].name"},
		{[]lock.Claim{of(a, func(c *lock.Claim) { c.Name = "" })}, false, "name"},
		{[]lock.Claim{of(a, func(c *lock.Claim) { c.Mode = "" })}, false, "mode"},
		{[]lock.Claim{of(a, func(c *lock.Claim) { c.Mode = "greedy" })}, true, "locks[0].mode"},
		{[]lock.Claim{of(a, func(c *lock.Claim) { c.Limit = 1 })}, false, "limit"},
		{[]lock.Claim{of(limited, func(c *lock.Claim) { c.Limit = 0 })}, false, "limit"},
		{[]lock.Claim{of(limited, func(c *lock.Claim) { c.Limit = -1 })}, false, "limit"},
		{[]lock.Claim{of(limited, func(c *lock.Claim) { c.Limit++ })}, true, "locks[0].limit"},
		{[]lock.Claim{of(limited, func(c *lock.Claim) { c.Permits = lock.MaxLimit })}, false, ""},
		{[]lock.Claim{of(limited, func(c *lock.Claim) { c.Permits = 0 })}, false, "permits"},
		{[]lock.Claim{of(limited, func(c *lock.Claim) { c.Permits = -1 })}, true, "locks[0].permits"},
		{[]lock.Claim{of(limited, func(c *lock.Claim) { c.Limit, c.Permits = 3, 4 })}, false, "permits"},
		{[]lock.Claim{of(a, func(c *lock.Claim) { c.Permits = 1 })}, false, "permits"},
	} {
		got := ""
		if e, ok := errors.AsType[*lock.Error](lock.CheckClaims(c.claims, c.set)); ok {
			got = e.Field
		}
		if got != c.field {
			t.Errorf("%+v, set %t: %q is at fault, want %q", c.claims, c.set, got, c.field)
		}
	}
}
