package handlers_test

import (
	"net/http"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/fencepost/fencepost/auth"
	"github.com/fencepost/fencepost/handlers"
	"github.com/fencepost/fencepost/quota"
)

// meter notes what requests cost, by rate.
type meter struct {
	handlers.Quotas
	taken [quota.Count]atomic.Int64
}

func (m *meter) Take(tenant string, l quota.Limit, n int) error {
	m.taken[l].Add(int64(n))
	return m.Quotas.Take(tenant, l, n)
}

// TestCostOfRequests: a set costs what it has locks, at most as many as one may have; a page 1 for
// each 100 rows; renewals and releases count by themselves, and so does what a tenant's own
// operator changes. Operators of all tenants count against nothing.
func TestCostOfRequests(t *testing.T) {
	t.Parallel()
	m := &meter{Quotas: shared.quotas}
	h := shared.handlers(shared.main.service)
	h.Quotas, h.Console = m, shared.main.console
	r := serve(nil, handlers.New(h))
	t.Cleanup(r.close)
	c := newTenant(t).at(r)
	hooks := c.as(func(cl *auth.Claims) { cl.Scopes = []auth.Scope{auth.WebhooksWrite} })
	e := c.acquire("a")
	for _, one := range []struct {
		what                         string
		do                           func() *answer
		requests, renewals, releases int64
	}{
		{"an acquire", func() *answer { return c.post("/locks/b", body(`{}`)) }, 1, 0, 0},
		{"a set", func() *answer { return c.post("/locksets", body(locksOf("c", "d", "e"))) }, 3, 0, 0},
		{"a set too large", func() *answer {
			return c.post("/locksets", body(locksOf(slices.Repeat([]string{"a"}, 1200)...)), loose)
		}, 32, 0, 0},
		{"a page of the default length", func() *answer { return c.get("/locks") }, 1, 0, 0},
		{"a page of 101 rows", func() *answer { return c.get("/locks?limit=101") }, 2, 0, 0},
		{"a page of 1000 rows", func() *answer { return c.get("/locks?limit=1000") }, 10, 0, 0},
		{"a page of webhooks", func() *answer { return hooks.get("/webhooks?limit=1000") }, 10, 0, 0},
		{
			"an operator's page", func() *answer { return c.operator().get("/admin/locks?limit=1000") }, 10,
			0, 0,
		},
		{
			"an operator's change",
			func() *answer { return c.operator().post("/admin/holders/revoke", body(`{}`), loose) }, 0, 0, 1,
		},
		{"of all tenants", func() *answer { return c.admin().get("/admin/locks?limit=1000") }, 0, 0, 0},
		{"a renewal", func() *answer { return c.put("/locks/a/renew", lockToken(e.Token)) }, 0, 1, 0},
		{
			"a made-up token", func() *answer { return c.put("/locks/a/renew", lockToken(someToken)) }, 1, 0,
			0,
		},
		{"a release", func() *answer { return c.delete("/locks/a", lockToken(e.Token)) }, 0, 0, 1},
	} {
		for l := range m.taken {
			m.taken[l].Store(0)
		}
		if a := one.do(); a.status == http.StatusTooManyRequests {
			t.Errorf("%s: %v", one.what, a)
		}
		got := [3]int64{
			m.taken[quota.Requests].Load(), m.taken[quota.Renewals].Load(), m.taken[quota.Releases].Load(),
		}
		if want := [3]int64{one.requests, one.renewals, one.releases}; got != want {
			t.Errorf("%s takes %v requests, renewals and releases, want %v", one.what, got, want)
		}
	}
}
