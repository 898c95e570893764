package service

import (
	"time"

	"github.com/fencepost/fencepost/quota"
	"github.com/fencepost/fencepost/service/figures"
	"github.com/fencepost/fencepost/service/lists"
	"github.com/fencepost/fencepost/service/view"
)

// TenantUse is the usage of one tenant.
type TenantUse struct {
	lists.Tenant

	// Account counts against the limits; Recent summarizes the last quarter of an hour. Both are nil
	// for an operator who sees only some names.
	Account *view.Account
	Recent  *figures.Summary
}

// Tenants is a page of tenants with their usage.
type Tenants struct {
	*lists.Tenants
	Uses []TenantUse // the tenants of the page
}

// Used returns what the service counts against a tenant's limits: its entries on all replicas,
// and its event streams at this one.
func (x *Locks) Used(tenant string) quota.Limits {
	used := x.view.Quotas.AccountOf(tenant).Used
	used[quota.EventStreams] = x.events.history.Subscriptions(tenant)
	return used
}

// TenantNames returns the tenants that have entries, by name, without the replicas' own.
func (x *Locks) TenantNames() []string { return x.view.Lists.TenantNames() }

// Tenants returns the usage of tenants with locks in use, as far as it is in sight: at most most
// tenants, from the first one after a name. It returns the errors of [Console.Overview].
func (c *Console) Tenants(s lists.Sight, after string, most int) (*Tenants, error) {
	if err := c.Service.view.Progress.Missing(); err != nil {
		return nil, err
	}
	out, now := &Tenants{Tenants: c.lists.Tenants(s, after, most)}, time.Now()
	for _, t := range out.Tenants.Tenants {
		one := TenantUse{Tenant: t}
		if s.May == nil {
			one.Account = new(c.Service.view.Quotas.AccountOf(t.Name))
			one.Recent = new(c.Service.figures.Series(t.Name, figures.Step, now))
		}
		out.Uses = append(out.Uses, one)
	}
	return out, nil
}
