package telemetry_test

import (
	"strings"
	"testing"

	"github.com/fencepost/fencepost/quota"
	"github.com/fencepost/fencepost/telemetry"
)

// usageOf has tenants hold so many locks each.
func usageOf(held ...int) func(func(telemetry.Usage)) {
	return func(each func(telemetry.Usage)) {
		for _, n := range held {
			u := telemetry.Usage{Limits: *quota.Standard()}
			u.Used[quota.HeldLocks] = n
			each(u)
		}
	}
}

// TestUsageIsThatOfTheFullestTenant: of each quota the metrics show the tenant that is nearest to
// its limit, whatever others use in numbers.
func TestUsageIsThatOfTheFullestTenant(t *testing.T) {
	unsetStandard(t)
	tel := setup(t, telemetry.Config{})
	tel.Metrics().ObserveUsage(func(each func(telemetry.Usage)) {
		usageOf(3, 500)(each)
		near := telemetry.Usage{}
		near.Used[quota.HeldLocks], near.Limits[quota.HeldLocks] = 9, 10
		each(near)
		usageOf(4)(each)
	})
	text := scrape(t, tel, "")
	for _, want := range []string{
		`fencepost_quota_usage{quota="held_locks"} 9`, `fencepost_quota_limit{quota="held_locks"} 10`,
	} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("no line %q", want)
		}
	}
}
