package handlers

import (
	"encoding/json"

	"github.com/fencepost/fencepost/api"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/quota"
)

// inFields returns numbers by the names of limits as a type of package api, whose members have these
// names.
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
