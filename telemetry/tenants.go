package telemetry

import (
	"context"

	"go.opentelemetry.io/otel/attribute"

	"github.com/fencepost/fencepost/quota"
)

// Usage is how much of its quotas a tenant uses.
type Usage struct{ Used, Limits quota.Limits }

// QuotaRefused counts a request that was refused because a tenant has used up a quota.
func (m *Metrics) QuotaRefused(ctx context.Context, name string) {
	m.refusals.Add(ctx, 1, m.quotas.of(name).add...)
}

// ObserveUsage names the source of what tenants use. read calls each for every tenant that uses
// something. Of each quota the tenant is shown that uses the largest part of it; GET
// /admin/tenants names it.
func (m *Metrics) ObserveUsage(read func(each func(Usage))) {
	m.observe(func(to report) {
		for l, u := range fullest(read) {
			if u != nil {
				of := attribute.String("quota", quota.Limit(l).String())
				to(0, float64(u.Used[l]), of)
				to(1, float64(u.Limits[l]), of)
			}
		}
	},
		figure{
			name:        "fencepost.quota.usage",
			description: "How much of a quota the tenant uses that uses the largest part of it.",
		},
		figure{name: "fencepost.quota.limit", description: "How much of it that tenant may use."},
	)
}

// fullest returns of each quota the tenant that uses the largest part; nil if none uses anything.
func fullest(read func(func(Usage))) (all [quota.Count]*Usage) {
	read(func(u Usage) {
		for _, l := range quota.All() {
			if l == quota.WaitingPerLock { // of a lock, and no tenant's
				continue
			}
			if best := all[l]; best == nil || u.part(l) > best.part(l) {
				all[l] = &u
			}
		}
	})
	return all
}

// part is how much of a quota is used: more than all, if there is none and something is.
func (u *Usage) part(l quota.Limit) float64 {
	if u.Limits[l] == 0 {
		return float64(2 * u.Used[l])
	}
	return float64(u.Used[l]) / float64(u.Limits[l])
}
