package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/fencepost/fencepost/audit"
	"github.com/fencepost/fencepost/lock/quota"
	"github.com/fencepost/fencepost/service"
	"github.com/fencepost/fencepost/service/quotas"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/telemetry"
	"github.com/fencepost/fencepost/webhook/subscription"
)

// limitFlag is one of the limits of tenants, as a flag.
type limitFlag struct {
	limit quota.Limit
	all   *quota.Limits
}

// String implements flag.Value.
func (f limitFlag) String() string {
	if f.all == nil { // of the zero value, which package flag makes
		return ""
	}
	return strconv.Itoa(f.all[f.limit])
}

// Set implements flag.Value.
func (f limitFlag) Set(text string) error {
	n, err := strconv.Atoi(text)
	if err != nil {
		return errors.New("must be a whole number")
	}
	if wrong := f.limit.Check(n); wrong != "" {
		return errors.New(wrong)
	}
	f.all[f.limit] = n
	return nil
}

// limitFlags declares a flag for each limit of tenants, with the prefix tenant-.
func (c *config) limitFlags(f *flag.FlagSet) {
	c.limits = quota.Standard()
	for _, l := range quota.All() {
		name := "tenant-" + strings.ReplaceAll(l.String(), "_", "-")
		f.Var(limitFlag{l, c.limits}, name, fmt.Sprintf("`number` of %s, of a tenant for which no other is set", l.What()))
	}
}

// newQuotas returns the limits of tenants, kept up to date until stop is called, which waits for
// that.
func newQuotas(c *config, t *telemetry.Telemetry, records store.RecordStore, journal *audit.Journal) (book *quotas.Book, stop func()) {
	book = quotas.New(quotas.Config{Records: records, Defaults: c.limits, Logger: t.Logger(), Journal: journal})
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { book.Run(ctx) })
	return book, func() {
		cancel()
		running.Wait()
	}
}

// observeUsage shows in the metrics how much of their quotas tenants use that have entries or webhooks.
func observeUsage(t *telemetry.Telemetry, s *service.Service, limits *quotas.Book, webhooks *subscription.Subscriptions) {
	t.Metrics().ObserveUsage(func(each func(telemetry.Usage)) {
		each(telemetry.Usage{Tenant: telemetry.Other, Limits: *limits.Of("")}) // a 0 while there is nobody: an alert wants to see it end
		all := map[string]bool{}
		for _, tenant := range s.TenantNames() {
			all[tenant] = true
		}
		subscribed, _, _ := webhooks.Directory.Current()
		for _, sub := range subscribed {
			all[sub.Tenant] = true
		}
		for tenant := range all {
			u := telemetry.Usage{Tenant: tenant, Used: s.Used(tenant), Limits: *limits.Of(tenant)}
			u.Used[quota.Webhooks] = webhooks.Count(tenant)
			for _, rate := range quota.Rates() {
				u.Used[rate] = limits.Spent(tenant, rate)
			}
			each(u)
		}
	})
}
