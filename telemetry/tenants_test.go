package telemetry_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/fencepost/fencepost/quota"
	"github.com/fencepost/fencepost/telemetry"
)

// usageOf has a tenant hold so many locks.
func usageOf(tenant string, held int) func(func(telemetry.Usage)) {
	return func(each func(telemetry.Usage)) {
		u := telemetry.Usage{Tenant: tenant, Limits: *quota.Standard()}
		u.Used[quota.HeldLocks] = held
		each(u)
	}
}

// TestNamedTenants: the first tenants keep their names, and of the others the one is shown that is
// nearest to its limit, whatever others use in numbers.
func TestNamedTenants(t *testing.T) {
	unsetStandard(t)
	tel := setup(t, telemetry.Config{})
	m := tel.Metrics()
	m.NameTenants(2)
	m.QuotaRefused(t.Context(), "first", "waiting")
	tenants := []telemetry.Usage{{Tenant: "second"}, {Tenant: "many"}, {Tenant: "near"}, {Tenant: "first"}, {Tenant: "idle"}}
	for i, held := range []int{3, 500, 9, 4, 0} {
		tenants[i].Used[quota.HeldLocks], tenants[i].Limits[quota.HeldLocks] = held, 1000
	}
	tenants[2].Limits[quota.HeldLocks] = 10
	m.ObserveUsage(func(each func(telemetry.Usage)) {
		for _, u := range tenants {
			each(u)
		}
	})
	scrape(t, tel, "") // by which the second is met
	m.QuotaRefused(t.Context(), "near", "waiting")
	for range 2 {
		text := scrape(t, tel, "")
		for _, want := range []string{
			`fencepost_quota_usage{quota="held_locks",tenant="first"} 4`, `fencepost_quota_limit{quota="held_locks",tenant="first"} 1000`,
			`fencepost_quota_usage{quota="held_locks",tenant="second"} 3`,
			`fencepost_quota_usage{quota="held_locks",tenant="other"} 9`, `fencepost_quota_limit{quota="held_locks",tenant="other"} 10`,
			`fencepost_quota_refusals_total{quota="waiting",tenant="first"} 1`, `fencepost_quota_refusals_total{quota="waiting",tenant="other"} 1`,
		} {
			if !strings.Contains(text, want+"\n") {
				t.Errorf("no line %q", want)
			}
		}
		for _, unnamed := range []string{"many", "near", "idle", "waiting_per_lock\",tenant=\"first"} {
			if strings.Contains(text, `"`+unnamed+`"`) {
				t.Errorf("%s is shown", unnamed)
			}
		}
		tenants[0], tenants[3] = tenants[3], tenants[0] // the order in which they come makes no difference
	}
}

// TestNamedTenantsAreBounded: with as many tenants as may be named and more, nothing comes near the
// SDK's own limit.
func TestNamedTenantsAreBounded(t *testing.T) {
	unsetStandard(t)
	tel := setup(t, telemetry.Config{})
	m := tel.Metrics()
	m.NameTenants(1 << 20)
	m.ObserveUsage(func(each func(telemetry.Usage)) {
		for i := range 3000 {
			u := telemetry.Usage{Tenant: fmt.Sprint("t", i), Limits: *quota.Standard()}
			for l := range u.Used {
				u.Used[l] = i
			}
			each(u)
		}
	})
	for i := range 3000 {
		for _, l := range quota.All() {
			m.QuotaRefused(t.Context(), fmt.Sprint("t", i), l.String())
		}
	}
	families := scrapeFamilies(t, tel)
	for name, want := range map[string]int{
		"fencepost_quota_usage":          (telemetry.MaxTenants + 1) * (int(quota.Count) - 1),
		"fencepost_quota_refusals_total": (telemetry.MaxTenants + 1) * int(quota.Count),
	} {
		if got := len(families[name].GetMetric()); got != want {
			t.Errorf("%s has %d series, want %d", name, got, want)
		}
	}
	if strings.Contains(scrape(t, tel, ""), "otel_metric_overflow") {
		t.Error("the SDK's own limit was reached")
	}
}
