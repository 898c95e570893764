package service

import (
	"time"

	"github.com/fencepost/fencepost/quota"
	"github.com/fencepost/fencepost/service/figures"
	"github.com/fencepost/fencepost/service/lists"
	"github.com/fencepost/fencepost/service/view"
)

// TenantUse is what a tenant uses.
type TenantUse struct {
	lists.Tenant

	// Account is what counts against the bounds, and Lately what happened in the last quarter of an
	// hour; nil for who may see some names only.
	Account *view.Account
	Lately  *figures.Summary
}

// Tenants are a page of what tenants use.
type Tenants struct {
	*lists.Tenants
	Uses []TenantUse // of the tenants of the page
}

// Used is what of a tenant's limits is in use, of what the service counts: its entries on all
// replicas, and the event streams at this one.
func (x *looks) Used(tenant string) quota.Limits {
	used := x.view.AccountOf(tenant).Used
	used[quota.EventStreams] = x.events.history.Subscriptions(tenant)
	return used
}

// TenantNames returns the tenants that have entries, but for the replicas' own, by name.
func (x *looks) TenantNames() []string { return x.view.TenantNames() }

// Tenants tells what tenants with locks in use use, of what somebody may see: those after a name,
// so many at most. It returns the errors of [Console.Overview].
func (c *Console) Tenants(s lists.Sight, after string, most int) (*Tenants, error) {
	if err := c.Service.view.Missing(); err != nil {
		return nil, err
	}
	out, now := &Tenants{Tenants: c.lists.Tenants(s, after, most)}, time.Now()
	for _, t := range out.Tenants.Tenants {
		one := TenantUse{Tenant: t}
		if s.May == nil {
			one.Account = new(c.Service.view.AccountOf(t.Name))
			one.Lately = new(c.Service.figures.Series(t.Name, now))
		}
		out.Uses = append(out.Uses, one)
	}
	return out, nil
}
