package telemetry

import (
	"context"
	"sync"

	"go.opentelemetry.io/otel/attribute"

	"github.com/fencepost/fencepost/quota"
)

// MaxTenants is how many tenants may have series of their own: with each quota, that is less than
// the 2,000 that the SDK keeps of an instrument.
const MaxTenants = 150

// tenants are those with series of their own: the first that were met. They keep them while the
// process lives, so that no series ends or begins anew; all others are [Other].
type tenants struct {
	most  int
	mu    sync.Mutex
	named map[string]bool
}

// NameTenants has the first tenants that are met named in the figures of quotas, so many at most
// and never more than [MaxTenants]. It is called before anything is measured; without it none is
// named.
func (m *Metrics) NameTenants(most int) { m.tenants.most = min(most, MaxTenants) }

// of returns the word for a tenant.
func (t *tenants) of(tenant string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.named[tenant]:
		return tenant
	case len(t.named) >= t.most || tenant == Other:
		return Other
	}
	if t.named == nil {
		t.named = map[string]bool{}
	}
	t.named[tenant] = true
	return tenant
}

// Usage is how much of its quotas a tenant uses.
type Usage struct {
	Tenant       string
	Used, Limits quota.Limits
}

// quotaKey is a quota of a tenant, or of others.
type quotaKey struct{ tenant, quota string }

func (k quotaKey) attributes() []attribute.KeyValue {
	return []attribute.KeyValue{attribute.String("tenant", k.tenant), attribute.String("quota", k.quota)}
}

// newQuotaSets knows the quotas of others, and grows by those of each tenant that is named.
func newQuotaSets() *sets[quotaKey] {
	var others []quotaKey
	for _, name := range quotaNames() {
		others = append(others, quotaKey{Other, name})
	}
	return newSets((MaxTenants+1)*int(quota.Count), quotaKey.attributes, quotaKey{Other, Other}, others...)
}

// QuotaRefused counts a request that was refused because a tenant has used up a quota.
func (m *Metrics) QuotaRefused(ctx context.Context, tenant, name string) {
	if !m.quotas.knows(quotaKey{Other, name}) {
		name = Other
	}
	m.refusals.Add(ctx, 1, m.quotas.of(quotaKey{m.tenants.of(tenant), name}).add...)
}

// ObserveUsage names the source of what tenants use. read calls each for every tenant that uses
// something.
func (m *Metrics) ObserveUsage(read func(each func(Usage))) {
	m.observe(func(to report) {
		show := func(tenant string, l quota.Limit, u *Usage) {
			of := quotaKey{tenant, l.String()}.attributes()
			to(0, float64(u.Used[l]), of...)
			to(1, float64(u.Limits[l]), of...)
		}
		for l, u := range m.fullest(read, show) {
			if u != nil {
				show(Other, quota.Limit(l), u)
			}
		}
	},
		figure{name: "fencepost.quota.usage", description: "How much of a quota a tenant uses; " +
			"of other, the tenant that uses the largest part of it."},
		figure{name: "fencepost.quota.limit", description: "How much of it that tenant may use."},
	)
}

// fullest shows what each tenant that is named uses, and returns of each quota which of the others
// uses the largest part; nil if none uses anything.
func (m *Metrics) fullest(read func(func(Usage)), show func(string, quota.Limit, *Usage)) (others [quota.Count]*Usage) {
	read(func(u Usage) {
		name := m.tenants.of(u.Tenant)
		for _, l := range quota.All() {
			switch best := others[l]; {
			case l == quota.WaitingPerLock: // of a lock, and no tenant's
			case name != Other:
				show(name, l, &u)
			case best == nil || u.part(l) > best.part(l):
				others[l] = &u
			}
		}
	})
	return others
}

// part is how much of a quota is used: more than all, if there is none and something is.
func (u *Usage) part(l quota.Limit) float64 {
	if u.Limits[l] == 0 {
		return float64(2 * u.Used[l])
	}
	return float64(u.Used[l]) / float64(u.Limits[l])
}
