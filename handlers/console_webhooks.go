package handlers

import (
	"context"
	"encoding/base64"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/fencepost/fencepost/api"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/lock/quota"
	"github.com/fencepost/fencepost/webhook/subscription"
)

const (
	// maxAdminWebhooks is how many webhooks a page has at most: of each the store is asked twice.
	maxAdminWebhooks = 50
	asksPerWebhook   = 2
	webhooksTimeout  = 5 * time.Second

	// webhooksAtOnce is how many webhooks of one list the store is asked about at once.
	webhooksAtOnce = 8
)

func (a *endpoints) operatedWebhooks(r *gin.Engine) {
	o := operation{scopes: operators(), always: true, ofTenants: true} // each asks the store
	r.GET("/admin/webhooks", a.authorized(operation{scopes: o.scopes, always: true, query: []string{"tenant", "limit", "cursor"}}, a.adminWebhooks))
	one := r.Group("/admin/webhooks/:tenant/:id")
	one.GET("", a.authorized(o, a.adminWebhook))
	one.PATCH("", a.authorized(operation{scopes: o.scopes, always: true}, a.pauseWebhook)) // so seldom that it need not count
	one.GET("/deliveries", a.authorized(operation{scopes: o.scopes, always: true, query: []string{"limit", "cursor"}}, a.adminDeliveries))
	o.query = []string{"reason"}
	one.POST("/deliveries/:delivery/redeliver", a.authorized(o, a.adminRedeliver))
}

// adminWebhooks lists the webhooks of all tenants.
//
// @Summary     List the webhooks of all tenants
// @ID          listAllWebhooks
// @Description By tenant and id, with how they do and what is still owed to them. Of the URL the scheme and host are shown: its path may be a secret of the tenant. Those that select no names but the ones that the bearer token may use. At most 50 on a page. Which there are may be late by a second.
// @Tags        admin
// @Produce     json
// @Security    bearer[admin]
// @Security    bearer[tenant-admin]
// @Param       tenant query string false "Only this tenant; the token's own with the scope `tenant-admin`"
// @Param       limit  query int    false "Webhooks on a page" minimum(1) maximum(1000) default(100)
// @Param       cursor query string false "next_cursor of the page before"
// @Success     200 {object} api.AdminWebhookPage
// @Failure     503 {object} api.Problem "store_unavailable"
// @Router      /admin/webhooks [get]
func (a *endpoints) adminWebhooks(r *request) error { return r.show(makeWebhooks) }

func makeWebhooks(r *request) (maker, error) {
	tenant, err := r.operatedTenant()
	if err != nil {
		return nil, err
	}
	limit, err := r.limitParam()
	if err != nil {
		return nil, err
	}
	after, err := r.webhookCursor()
	if err != nil {
		return nil, err
	}
	a, who, ctx := r.endpoints, r.principal, context.WithoutCancel(r.context())
	return func() (any, error) {
		all, err := a.Webhooks.All(who, tenant)
		if err != nil {
			return nil, err
		}
		out := &api.AdminWebhookPage{Replica: a.Console.Replica(), Total: len(all)}
		page, next := webhookPage(all, after, min(limit, maxAdminWebhooks))
		out.NextCursor = next
		if err := r.charge(asksPerWebhook * len(page)); err != nil {
			return nil, err
		}
		out.Webhooks, err = r.webhooksOf(ctx, page)
		return out, err
	}, nil
}

// webhookPage returns those after a place, so many at most, and the cursor of the next page.
func webhookPage(all []*subscription.Subscription, after string, most int) (page []*subscription.Subscription, next string) {
	for _, s := range all {
		if !laterWebhook(s, after) {
			continue
		}
		if len(page) == most {
			last := page[most-1]
			return page, base64.RawURLEncoding.EncodeToString([]byte(last.Tenant + "|" + last.ID))
		}
		page = append(page, s)
	}
	return page, ""
}

// laterWebhook reports whether a webhook comes after a place, by tenant and then id.
func laterWebhook(s *subscription.Subscription, after string) bool {
	tenant, id, _ := strings.Cut(after, "|")
	return s.Tenant > tenant || s.Tenant == tenant && s.ID > id
}

// webhookCursor reads after which webhook a page begins.
func (r *request) webhookCursor() (string, error) {
	text, sent := r.GetQuery("cursor")
	if !sent {
		return "", nil
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(text)
	tenant, id, ours := strings.Cut(string(raw), "|")
	if err != nil || !ours || !lock.ValidTenant(tenant) || !lock.ValidName(id) {
		return "", lock.Invalid("cursor", "is not a next_cursor of ours")
	}
	return string(raw), nil
}

// webhooksOf asks the store how webhooks do.
func (r *request) webhooksOf(ctx context.Context, page []*subscription.Subscription) ([]api.AdminWebhook, error) {
	ctx, cancel := context.WithTimeout(ctx, webhooksTimeout)
	defer cancel()
	out := make([]api.AdminWebhook, 0, len(page))
	for _, s := range page {
		one, err := r.adminWebhookOf(ctx, s)
		if err != nil {
			return nil, err
		}
		out = append(out, one)
	}
	return out, nil
}

// adminWebhookOf asks how one does. What is read to count what it is owed is paid for, that of others too.
func (r *request) adminWebhookOf(ctx context.Context, s *subscription.Subscription) (out api.AdminWebhook, err error) {
	health, err := r.endpoints.Deliveries.Health(ctx, s.Tenant, s.ID)
	if err != nil {
		return out, err
	}
	owed, err := r.endpoints.Deliveries.Owed(ctx, s.Tenant, s.ID)
	r.owe(quota.PriceOfRecords(owed.Looked))
	if err != nil {
		return out, err
	}
	out = api.AdminWebhook{
		Tenant: s.Tenant, ID: s.ID, Receiver: s.Receiver(), Events: eventNames(s.Events), Locks: s.Locks, Paused: s.Paused,
		CreatedAt: api.InstantOf(s.Created), CreatedBy: s.By, Owed: owed.Deliveries, OwedMore: owed.More,
	}
	health = health.Of(s.Enabled)
	out.Disabled, out.Failures = string(health.Disabled), health.Failures
	if !health.FailingSince.IsZero() {
		out.FailingSince = api.InstantOf(health.FailingSince)
	}
	return out, nil
}
