package handlers

import (
	"github.com/fencepost/fencepost/api"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/quota"
	"github.com/fencepost/fencepost/service"
)

// maxTenants is how many tenants a page has at most: of each the series are read.
const maxTenants = 200

// listTenants tells what tenants use.
//
// @Summary     List the tenants
// @Description Returns the tenants with locks in use, by name, with their quotas and recent figures.
// @Param       tenant query string false "Only this tenant; the token's own with the scope `tenant-admin`"
// @Param       limit  query int    false "Tenants on a page" minimum(1) maximum(1000) default(100)
// @Param       cursor query string false "`next_cursor` of the previous page"
// @Success     200 {object} api.AdminTenantPage
// @Failure     503 {object} api.Problem "store_unavailable"
// @Router      /admin/tenants [get]
func listTenants(q *query) maker {
	s, limit, after := q.sight(), q.page(), q.after("tenants", lock.ValidTenant)
	a := q.r.endpoints
	return func() (any, error) {
		page, err := a.Console.Tenants(s, after, min(limit, maxTenants))
		if err != nil {
			return nil, err
		}
		out := &api.AdminTenantPage{
			Seen: a.seen(page.Revision, page.Now), Tenants: []api.AdminTenant{}, Total: page.All,
		}
		if page.Next != "" {
			out.NextCursor = cursorOf("tenants", page.Next)
		}
		for i := range page.Uses {
			out.Tenants = append(out.Tenants, a.tenantOf(&page.Uses[i]))
		}
		return out, nil
	}
}

func (a *endpoints) tenantOf(t *service.TenantUse) api.AdminTenant {
	out := api.AdminTenant{
		Tenant: t.Name, Locks: t.Locks, Held: t.Held, Contended: t.Contended, Holding: t.Holding,
		Waiting: t.Waiting, Recent: wholeOf(t.Recent),
	}
	if t.Oldest != nil {
		out.OldestSince = new(api.InstantOf(t.Oldest.Oldest.EnqueuedAt))
	}
	if b := t.Account; b != nil {
		out.Bounds = &api.TenantBounds{
			Places: b.Used[quota.Places], MaxPlaces: b.Limits[quota.Places],
			RenewalsPerSecond:    b.Used[quota.AsyncRenewals],
			MaxRenewalsPerSecond: b.Limits[quota.AsyncRenewals],
		}
		out.Quota = &api.TenantQuota{Limits: quotaNumbers(&b.Limits), Used: a.useOf(t.Name)}
	}
	return out
}
