package handlers_test

import (
	"net/http"
	"testing"

	"github.com/fencepost/fencepost/auth"
)

// within returns a client whose token is limited to names.
func (c *client) within(patterns ...string) *client {
	c.t.Helper()
	return c.as(func(cl *auth.Claims) { cl.Locks = patterns })
}

// refuseOne has two workers of the tenant close a cycle over two locks.
func refuseOne(c *client, one, two string) {
	c.t.Helper()
	c.acquire(one, worker("w1"))
	c.acquire(two, worker("w2"))
	c.join(two, waitsAs("w1"))
	c.post("/locks/"+one, waitsAs("w2")).wantStatus(http.StatusConflict)
}

// TestTenantAdminSeesOwnTenant: the scope opens what is there for operators, and of it what
// belongs to the token's tenant, whether that is named or not.
func TestTenantAdminSeesOwnTenant(t *testing.T) {
	t.Parallel()
	own, other := newTenant(t), newTenant(t)
	for _, c := range []*client{own, other} {
		refuseOne(c, "a", "b")
		c.look("a") // waits for the view
	}
	for _, path := range []string{
		"/admin/deadlocks?limit=1000", "/admin/deadlocks?tenant=" + own.claims.Tenant,
	} {
		var page deadlockPage
		own.operator().get(path).want(http.StatusOK, &page)
		if d := page.Deadlocks; len(d) != 1 || d[0].Tenant != own.claims.Tenant {
			t.Errorf("%s: %+v", path, page)
		}
	}
	stream := own.operator().follow("/admin/events?types=lock.acquired")
	other.acquire("theirs")
	own.acquire("ours")
	stream.wants("lock.acquired ours")
	for _, path := range []string{"/admin/deadlocks", "/admin/lock-order", "/admin/events"} {
		own.operator().get(path + "?tenant=" + other.claims.Tenant).wantProblem(ownTenantOnly())
		own.operator().get(path + "?tenant=").wantProblem(noTenant())
	}
}

// TestOperatorsPatterns: the name patterns of an operator's token hold as everywhere.
func TestOperatorsPatterns(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	refuseOne(c, "jobs:1", "orders:1")
	for w, names := range map[string][]string{
		"w3": {"orders:5", "stock:5"}, "w4": {"orders:6", "jobs:6"},
	} {
		for range 2 {
			first := c.acquire(names[0], waitsAs(w))
			c.release(c.acquire(names[1], waitsAs(w)))
			c.release(first)
		}
	}
	c.look("orders:5") // waits for the view
	operator := c.operator()
	for _, seen := range []struct {
		by        *client
		deadlocks int
		locks     int // of the refused entry that are named
		orders    int
	}{
		{operator, 1, 1, 2},
		{operator.within("*"), 1, 1, 2},
		{operator.within("orders:*", "stock:*"), 1, 0, 1},
		{operator.within("jobs:*"), 1, 1, 0},
		{operator.within("orders:5", "stock:5"), 0, 0, 0},
		{operator.within([]string{}...), 0, 0, 0},
	} {
		var page deadlockPage
		seen.by.get("/admin/deadlocks").want(http.StatusOK, &page)
		var report orderReport
		seen.by.get("/admin/lock-order").want(http.StatusOK, &report)
		if len(page.Deadlocks) != seen.deadlocks || len(report.Orders) != seen.orders ||
			*report.Known != seen.orders {
			t.Errorf("within %q: %+v, %+v", seen.by.claims.Locks, page, report)
		}
		for _, d := range page.Deadlocks {
			if len(d.Locks) != seen.locks {
				t.Errorf(
					"within %q: %d locks are named, want %d: %+v", seen.by.claims.Locks, len(d.Locks), seen.locks,
					d,
				)
			}
		}
	}
}
