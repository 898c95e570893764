package handlers

import (
	"github.com/fencepost/fencepost/api"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/lock/quota"
	"github.com/fencepost/fencepost/service/quotas"
)

func quotaNumbers(l *quota.Limits) api.QuotaNumbers {
	return api.QuotaNumbers{
		HeldLocks:      l[quota.HeldLocks],
		Waiting:        l[quota.Waiting],
		WaitingPerLock: l[quota.WaitingPerLock],
		Sets:           l[quota.Sets],
		Places:         l[quota.Places],
		MetadataBytes:  l[quota.MetadataBytes],
		AsyncRenewals:  l[quota.AsyncRenewals],
		Webhooks:       l[quota.Webhooks],
		EventStreams:   l[quota.EventStreams],
		Requests:       l[quota.Requests],
		Renewals:       l[quota.Renewals],
		Releases:       l[quota.Releases],

		WebhookAttempts: l[quota.WebhookAttempts],
	}
}

func quotaUse(l *quota.Limits) api.QuotaUse {
	return api.QuotaUse{
		HeldLocks:     l[quota.HeldLocks],
		Waiting:       l[quota.Waiting],
		Sets:          l[quota.Sets],
		Places:        l[quota.Places],
		MetadataBytes: l[quota.MetadataBytes],
		AsyncRenewals: l[quota.AsyncRenewals],
		Webhooks:      l[quota.Webhooks],
		EventStreams:  l[quota.EventStreams],
		Requests:      l[quota.Requests],
		Renewals:      l[quota.Renewals],
		Releases:      l[quota.Releases],

		WebhookAttempts: l[quota.WebhookAttempts],
	}
}

// overrideFields are where the limits stand in what is set.
func overrideFields(o *api.QuotaOverrides) [quota.Count]**api.Whole {
	return [quota.Count]**api.Whole{
		quota.HeldLocks:      &o.HeldLocks,
		quota.Waiting:        &o.Waiting,
		quota.WaitingPerLock: &o.WaitingPerLock,
		quota.Sets:           &o.Sets,
		quota.Places:         &o.Places,
		quota.MetadataBytes:  &o.MetadataBytes,
		quota.AsyncRenewals:  &o.AsyncRenewals,
		quota.Webhooks:       &o.Webhooks,
		quota.EventStreams:   &o.EventStreams,
		quota.Requests:       &o.Requests,
		quota.Renewals:       &o.Renewals,
		quota.Releases:       &o.Releases,

		quota.WebhookAttempts: &o.WebhookAttempts,
	}
}

// overridesIn reads the limits that a body sets.
func overridesIn(body *api.QuotaOverrides) (quota.Overrides, error) {
	set := quota.Overrides{}
	for i, field := range overrideFields(body) {
		if *field == nil {
			continue
		}
		l, n := quota.Limit(i), int(**field)
		if wrong := l.Check(n); wrong != "" {
			return nil, lock.Invalid(l.String(), "%s", wrong)
		}
		set[l] = n
	}
	return set, nil
}

// quotaOverrides shows what is set for a tenant; nil is nothing.
func quotaOverrides(set quota.Overrides) *api.QuotaOverrides {
	if set == nil {
		return nil
	}
	out := &api.QuotaOverrides{}
	fields := overrideFields(out)
	for l, n := range set {
		*fields[l] = new(api.Whole(n))
	}
	return out
}

func (r *request) quotaOf(s *quotas.State) *api.Quota {
	out := &api.Quota{
		Tenant: s.Tenant, Limits: quotaNumbers(s.Limits), Defaults: quotaNumbers(s.Defaults), Overrides: quotaOverrides(s.Overrides),
		Used: r.endpoints.useOf(s.Tenant), Version: s.Version, Damaged: s.Damaged, ChangedBy: s.By, Reason: s.Reason,
	}
	if !s.At.IsZero() {
		out.ChangedAt = new(api.InstantOf(s.At))
	}
	return out
}
