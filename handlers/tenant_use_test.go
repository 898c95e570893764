package handlers_test

import (
	"net/http"
	"testing"

	"github.com/fencepost/fencepost/api"
	"github.com/fencepost/fencepost/test/poll"
)

// TestTenants: what each tenant uses, in pages, and to its own operators only that.
func TestTenants(t *testing.T) {
	t.Parallel()
	c, other := newTenant(t), newTenant(t)
	c.acquire("a")
	c.acquire("b")
	c.join("a", waitsAs("w2"))
	other.acquire("a")
	var p api.AdminTenantPage
	find := func(tenant string) *api.AdminTenant {
		for i := range p.Tenants {
			if p.Tenants[i].Tenant == tenant {
				return &p.Tenants[i]
			}
		}
		return nil
	}
	poll.Until(t, "both are counted", func() bool {
		seen, query := map[string]bool{}, "?limit=1"
		for query != "" { // through all pages
			p = api.AdminTenantPage{}
			c.admin().get("/admin/tenants"+query).want(http.StatusOK, &p)
			for _, one := range p.Tenants {
				seen[one.Tenant] = true
			}
			if query = ""; p.NextCursor != "" {
				query = "?limit=200&cursor=" + p.NextCursor
			}
		}
		return seen[c.claims.Tenant] && seen[other.claims.Tenant] && p.Total >= 2
	})
	poll.Until(t, "its own operator sees it", func() bool {
		p = api.AdminTenantPage{}
		c.operator().get("/admin/tenants").want(http.StatusOK, &p)
		own := find(c.claims.Tenant)
		return own != nil && own.Waiting == 1 && own.Holding == 2
	})
	own := find(c.claims.Tenant)
	if len(p.Tenants) != 1 || p.Total != 1 || p.NextCursor != "" {
		t.Errorf("an operator of one tenant is shown %+v", p)
	}
	if own.Locks != 2 || own.Held != 2 || own.Contended != 1 || own.OldestSince == nil ||
		own.Recent == nil || own.Recent.Grants != 2 {
		t.Errorf("it uses %+v", own)
	}
	if b := own.Bounds; b == nil || b.Places != 3 || b.MaxPlaces != 200_000 ||
		b.RenewalsPerSecond != 0 {
		t.Errorf("of its bounds it uses %+v", b)
	}
	limited := c.operator().within("b")
	p = api.AdminTenantPage{}
	limited.get("/admin/tenants").want(http.StatusOK, &p)
	if one := p.Tenants[0]; one.Locks != 1 || one.Waiting != 0 || one.Bounds != nil ||
		one.Recent != nil {
		t.Errorf("who may see b is shown %+v", one)
	}
	for _, cursor := range []string{"x", "dGVuYW50OkE", "YWZ0ZXI6YQ"} {
		c.admin().get("/admin/tenants?cursor=" + cursor).
			wantProblem(invalid("cursor", "must be the next_cursor of a page of this list; "+
				"leave it out to begin again"))
	}
}
