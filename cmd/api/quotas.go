package main

import (
	"fmt"
	"strings"

	"github.com/fencepost/fencepost/audit"
	"github.com/fencepost/fencepost/quota"
	"github.com/fencepost/fencepost/service"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/telemetry"
	"github.com/fencepost/fencepost/webhook/subscription"
)

// quotasFlag is the name of the flag with the default limits of tenants.
const quotasFlag = "default-quotas"

// defaultQuotas are the default limits of tenants, as a flag.
type defaultQuotas struct{ *quota.Limits }

// String implements pflag.Value: it returns the limits that are set.
func (d defaultQuotas) String() string {
	if d.Limits == nil { // of the zero value, which package pflag makes
		return ""
	}
	var pairs []string
	for l, standard := range quota.Standard() {
		if n := d.Limits[l]; n != standard {
			pairs = append(pairs, fmt.Sprintf("%s=%d", quota.Limit(l), n))
		}
	}
	return strings.Join(pairs, ",")
}

// Type implements pflag.Value.
func (defaultQuotas) Type() string { return "quotas" }

// Set implements pflag.Value.
func (d defaultQuotas) Set(text string) error {
	limits := quota.Standard()
	err := limits.Parse(text)
	if err == nil {
		*d.Limits = *limits
	}
	return err
}

// newQuotas returns the limits of tenants, kept up to date until stop is called, which waits for
// that.
func newQuotas(
	c *config, t *telemetry.Telemetry, records store.RecordStore, journal *audit.Journal,
) (book *quota.Book, stop func()) {
	book = quota.New(
		quota.Config{Records: records, Defaults: c.limits, Logger: t.Logger(), Journal: journal},
	)
	return book, background(book.Run)
}

// observeUsage shows in the metrics how much of their quotas tenants use that have entries or
// webhooks.
func observeUsage(
	t *telemetry.Telemetry, locks *service.Locks, limits *quota.Book,
	webhooks *subscription.Subscriptions,
) {
	t.Metrics().ObserveUsage(func(each func(telemetry.Usage)) {
		each(telemetry.Usage{Limits: *limits.Of("")}) // a 0 without tenants: an alert needs to see it end
		all := map[string]bool{}
		for _, tenant := range locks.TenantNames() {
			all[tenant] = true
		}
		subscribed, _, _ := webhooks.Directory.Current()
		for _, sub := range subscribed {
			all[sub.Tenant] = true
		}
		for tenant := range all {
			u := telemetry.Usage{Used: locks.Used(tenant), Limits: *limits.Of(tenant)}
			u.Used[quota.Webhooks] = webhooks.Count(tenant)
			limits.Spent(tenant, &u.Used)
			each(u)
		}
	})
}
