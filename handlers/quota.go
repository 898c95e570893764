package handlers

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"github.com/fencepost/fencepost/api"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/quota"
)

// Quotas are the limits of tenants; [quota.Book] has them.
type Quotas interface {
	Of(tenant string) *quota.Limits
	Get(ctx context.Context, tenant string) (*quota.State, error)
	Set(context.Context, quota.Change) (*quota.State, error)
	Reset(context.Context, quota.Change) error
	Take(tenant string, rate quota.Limit, n int) error
	Spent(tenant string, into *quota.Limits)
}

// getQuota tells how much a tenant may use.
//
// @Summary     See the quota of a tenant
// @Description Returns the limits of a tenant, and their use as the answering replica sees it.
// @Param       tenant path string true "Tenant"
// @Success     200 {object} api.Quota
// @Failure     404 {object} api.Problem "not_found"
// @Failure     503 {object} api.Problem "store_unavailable"
// @Router      /admin/tenants/{tenant}/quota [get]
func getQuota(r *request) (reply, error) {
	tenant, err := quotaTenant(r)
	if err != nil {
		return reply{}, err
	}
	state, err := r.endpoints.Quotas.Get(r.context(), tenant)
	return showQuota(r, state, err)
}

// setQuota sets how much a tenant may use.
//
// @Summary     Set the quota of a tenant
// @Description Sets the limits in the body, and the defaults for all others, at every replica within a second. Entries above a lower limit stay.
// @Security    bearer[admin]
// @Param       tenant path string        true  "Tenant"
// @Param       body   body api.QuotaBody false "The limits that differ from the defaults"
// @Success     200 {object} api.Quota
// @Failure     404 {object} api.Problem "not_found"
// @Failure     409 {object} api.Problem "changed"
// @Failure     429 {object} api.Problem "rate_limited, quota_exceeded"
// @Failure     503 {object} api.Problem "store_unavailable"
// @Router      /admin/tenants/{tenant}/quota [put]
func setQuota(r *request, body *api.QuotaBody) (reply, error) {
	tenant, err := quotaTenant(r)
	if err != nil {
		return reply{}, err
	}
	c := quota.Change{Tenant: tenant, By: r.who(), Version: (*uint64)(body.Version)}
	if c.Overrides, err = overridesIn(&body.QuotaOverrides); err != nil {
		return reply{}, err
	}
	if body.Reason != nil {
		if c.Reason = *body.Reason; c.Reason == "" {
			return reply{}, lock.Invalid("reason", "must not be empty")
		}
	}
	state, err := r.endpoints.Quotas.Set(r.context(), c)
	return showQuota(r, state, err)
}

// resetQuota has the defaults hold for a tenant.
//
// @Summary     Reset the quota of a tenant
// @Description Restores the default limits of a tenant.
// @Security    bearer[admin]
// @Param       tenant path string true "Tenant"
// @Param       reason query string false "Why, for the audit; at least 10 characters"
// @Success     204 "The defaults hold"
// @Failure     404 {object} api.Problem "not_found"
// @Failure     409 {object} api.Problem "changed"
// @Failure     503 {object} api.Problem "store_unavailable"
// @Router      /admin/tenants/{tenant}/quota [delete]
func resetQuota(r *request, _ *empty) (reply, error) {
	tenant, err := quotaTenant(r)
	if err != nil {
		return reply{}, err
	}
	q := r.query()
	change := quota.Change{Tenant: tenant, By: r.who(), Reason: q.reason()}
	if q.err != nil {
		return reply{}, q.err
	}
	return noContent(), r.endpoints.Quotas.Reset(r.context(), change)
}

// quotaTenant returns the tenant in the path, whose quota is about all its names.
func quotaTenant(r *request) (string, error) {
	if r.principal.Locks != nil {
		return "", lock.Errorf(
			lock.Forbidden,
			"a quota is for all locks, and the caller is limited to some; use a credential without that limit",
		)
	}
	tenant := r.Param("tenant")
	return tenant, r.operate(tenant)
}

func showQuota(r *request, s *quota.State, err error) (reply, error) {
	if err != nil {
		return reply{}, err
	}
	out := quotaOf(r, s)
	out.Seen = r.endpoints.seen(r.endpoints.Locks.Revision(), time.Now())
	return ok(out), nil
}

// useOf is what a tenant uses, as this replica sees it.
func (a *endpoints) useOf(tenant string) api.QuotaUse {
	used := a.Locks.Used(tenant)
	used[quota.Webhooks] = a.Webhooks.Count(tenant)
	a.Quotas.Spent(tenant, &used)
	return inFields[api.QuotaUse](used.Named())
}

// noteRefusal counts a refusal for a quota.
func noteRefusal(r *request, of *lock.Exceeded) {
	r.endpoints.Metrics.QuotaRefused(r.context(), of.Name)
	r.note(slog.String("quota", of.Name))
	r.line.refused.quota = of.Name
}

// inFields returns numbers by the names of limits as a type of package api, whose members have
// these names.
func inFields[T any](named map[string]int) (out T) {
	if text, err := json.Marshal(named); err == nil { // of numbers it cannot fail
		_ = json.Unmarshal(text, &out) // names that the type does not have are left out
	}
	return out
}

func quotaNumbers(l *quota.Limits) api.QuotaNumbers { return inFields[api.QuotaNumbers](l.Named()) }

// overridesIn reads the limits that a body sets.
func overridesIn(body *api.QuotaOverrides) (quota.Overrides, error) {
	text, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	var set map[string]int
	if err := json.Unmarshal(text, &set); err != nil {
		return nil, err
	}
	for _, l := range quota.All() {
		if wrong := l.Check(set[l.String()]); wrong != "" {
			return nil, lock.Invalid(l.String(), "%s", wrong)
		}
	}
	return set, nil
}

// quotaOverrides shows what is set for a tenant; nil is nothing.
func quotaOverrides(set quota.Overrides) *api.QuotaOverrides {
	if set == nil {
		return nil
	}
	out := inFields[api.QuotaOverrides](set)
	return &out
}

func quotaOf(r *request, s *quota.State) *api.Quota {
	out := &api.Quota{
		Tenant: s.Tenant, Limits: quotaNumbers(s.Limits), Defaults: quotaNumbers(s.Defaults),
		Overrides: quotaOverrides(s.Overrides), Used: r.endpoints.useOf(s.Tenant),
		Version: s.Version, Damaged: s.Damaged, ChangedBy: s.By, Reason: s.Reason,
	}
	if !s.At.IsZero() {
		out.ChangedAt = new(api.InstantOf(s.At))
	}
	return out
}
