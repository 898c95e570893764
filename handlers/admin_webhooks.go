package handlers

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/fencepost/fencepost/api"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/webhook/subscription"
)

const (
	// maxAdminWebhooks is how many webhooks a page has at most: of each the store is asked twice.
	maxAdminWebhooks = 50
	webhooksTimeout  = 5 * time.Second

	// webhooksAtOnce is how many webhooks of one list the store is asked about at once.
	webhooksAtOnce = 8
)

// listAllWebhooks lists the webhooks of all tenants.
//
// @Summary     List the webhooks of all tenants
// @Description Returns webhooks by tenant and id, with their health and pending deliveries. The path of a URL may be a secret, so it is left out.
// @Param       tenant query string false "Only this tenant; the token's own with the scope `tenant-admin`"
// @Param       limit  query int    false "Webhooks on a page" minimum(1) maximum(1000) default(100)
// @Param       cursor query string false "`next_cursor` of the previous page"
// @Success     200 {object} api.AdminWebhookPage
// @Failure     503 {object} api.Problem "store_unavailable"
// @Router      /admin/webhooks [get]
func listAllWebhooks(r *request) (reply, error) {
	q, a := r.query(), r.endpoints
	tenant, limit := q.tenant(), q.page()
	place := q.cursor("all-webhooks", lock.ValidTenant, lock.ValidName)
	if q.err != nil {
		return reply{}, q.err
	}
	all, err := a.Webhooks.All(r.principal, tenant)
	if err != nil {
		return reply{}, err
	}
	if !a.reads.take(r.tenant(), 1) {
		return reply{}, errOverloaded("reads of the store")
	}
	defer a.reads.give(r.tenant(), 1)
	out := &api.AdminWebhookPage{Replica: a.Console.Replica(), Total: len(all)}
	page, next := webhookPage(all, place, min(limit, maxAdminWebhooks))
	out.NextCursor = next
	if out.Webhooks, err = adminWebhooksOf(r, r.context(), page); err != nil {
		return reply{}, err
	}
	const each = 4 << 10 // bytes, about
	return large(each*len(page), func() any { return out }), nil
}

// webhookPage returns those after a place, so many at most, and the cursor of the next page.
func webhookPage(
	all []*subscription.Subscription,
	after []string,
	most int,
) (page []*subscription.Subscription, next string) {
	first := 0
	if after != nil {
		first, _ = slices.BinarySearchFunc(
			all,
			after,
			func(s *subscription.Subscription, after []string) int {
				return cmp.Or(cmp.Compare(s.Tenant, after[0]), cmp.Compare(s.ID, after[1]), -1)
			},
		)
	}
	if page = all[first:]; len(page) > most {
		page = page[:most]
		next = cursorOf("all-webhooks", page[most-1].Tenant, page[most-1].ID)
	}
	return page, next
}

// adminWebhooksOf asks the store how webhooks do.
func adminWebhooksOf(
	r *request,
	ctx context.Context,
	page []*subscription.Subscription,
) ([]api.AdminWebhook, error) {
	ctx, cancel := context.WithTimeout(ctx, webhooksTimeout)
	defer cancel()
	out := make([]api.AdminWebhook, 0, len(page))
	for _, s := range page {
		one, err := adminWebhookOf(r, ctx, s)
		if err != nil {
			return nil, err
		}
		out = append(out, one)
	}
	return out, nil
}

// adminWebhookOf asks how one does.
func adminWebhookOf(
	r *request,
	ctx context.Context,
	s *subscription.Subscription,
) (out api.AdminWebhook, err error) {
	health, err := r.endpoints.Deliveries.Health(ctx, s.Tenant, s.ID)
	if err != nil {
		return out, err
	}
	pending, err := r.endpoints.Deliveries.Pending(ctx, s.Tenant, s.ID)
	if err != nil {
		return out, err
	}
	out = api.AdminWebhook{
		Tenant: s.Tenant, ID: s.ID, Receiver: s.Receiver(), Events: eventNames(s.Events), Locks: s.Locks,
		Paused: s.Paused, CreatedAt: api.InstantOf(s.Created), CreatedBy: s.By,
		Pending: pending.Deliveries, PendingMore: pending.More,
	}
	health = health.Of(s.Enabled)
	out.Disabled, out.Failures = string(health.Disabled), health.Failures
	if !health.FailingSince.IsZero() {
		out.FailingSince = api.InstantOf(health.FailingSince)
	}
	return out, nil
}

// operatorOf returns the operator as an actor in the tenant in the path, within the names that the
// token may use.
func operatorOf(r *request) (subscription.Actor, error) {
	tenant := r.Param("tenant")
	if err := r.operate(tenant); err != nil {
		return subscription.Actor{}, err
	}
	who := *r.principal // it is shared by all requests with this token
	who.Tenant = tenant
	return subscription.Actor{Principal: &who, By: r.who()}, nil
}

// getAnyWebhook shows a webhook of any tenant.
//
// @Summary     Look at a webhook of any tenant
// @Description Returns a webhook with its health and its pending deliveries. The path of its URL may be a secret, so it is left out.
// @Param       tenant path string true "Tenant"
// @Param       id     path string true "Webhook id"
// @Success     200 {object} api.AdminWebhook
// @Failure     404 {object} api.Problem "not_found"
// @Failure     503 {object} api.Problem "store_unavailable"
// @Router      /admin/webhooks/{tenant}/{id} [get]
func getAnyWebhook(r *request) (reply, error) {
	who, err := operatorOf(r)
	if err != nil {
		return reply{}, err
	}
	found, err := r.endpoints.Webhooks.Get(r.context(), who.Principal, r.Param("id"))
	return showAdminWebhook(r, found, err)
}

func showAdminWebhook(r *request, s *subscription.Subscription, err error) (reply, error) {
	if err != nil {
		return reply{}, err
	}
	out, err := adminWebhookOf(r, r.context(), s)
	return ok(&out), err
}

// pauseAnyWebhook has a webhook of any tenant send or not.
//
// @Summary     Pause or resume a webhook of any tenant
// @Description Pauses or resumes a webhook. `"paused": false` also resumes one that the server disabled because its receiver failed.
// @Param       tenant path string                 true "Tenant"
// @Param       id     path string                 true "Webhook id"
// @Param       body   body api.AdminWebhookChange true "Whether it sends, and why"
// @Success     200 {object} api.AdminWebhook "The webhook as it is now"
// @Failure     404 {object} api.Problem "not_found"
// @Failure     409 {object} api.Problem "changed"
// @Failure     503 {object} api.Problem "store_unavailable"
// @Router      /admin/webhooks/{tenant}/{id} [patch]
func pauseAnyWebhook(r *request, body *api.AdminWebhookChange) (reply, error) {
	who, err := operatorOf(r)
	if err != nil {
		return reply{}, err
	}
	if body.Paused == nil {
		return reply{}, lock.Invalid("paused", "is missing")
	}
	if wrong := lock.CheckExplanation(body.Reason); wrong != "" {
		return reply{}, lock.Invalid("reason", "%s", wrong)
	}
	who.Reason = body.Reason
	change := subscription.Change{Paused: body.Paused}
	changed, err := r.endpoints.Webhooks.Update(r.context(), who, r.Param("id"), change)
	return showAdminWebhook(r, changed, err)
}

// listAnyDeliveries shows what a webhook of any tenant is sent.
//
// @Summary     List the deliveries of a webhook of any tenant
// @Description Returns the pending deliveries, and the last ones that were attempted. The id `callbacks` selects the callbacks of the tenant.
// @Param       tenant  path  string true  "Tenant"
// @Param       id      path  string true  "Webhook id, or callbacks"
// @Param       limit   query int    false "Pending deliveries on a page" minimum(1) maximum(1000) default(100)
// @Param       cursor  query string false "`next_cursor` of the previous page"
// @Success     200 {object} api.DeliveryPage "A page of deliveries, its newest first; the first page has the oldest pending ones"
// @Failure     404 {object} api.Problem "not_found"
// @Failure     503 {object} api.Problem "store_unavailable"
// @Router      /admin/webhooks/{tenant}/{id}/deliveries [get]
func listAnyDeliveries(r *request) (reply, error) {
	who, err := operatorOf(r)
	if err != nil {
		return reply{}, err
	}
	return deliveries(r, who.Principal)
}

// redeliverAny has a delivery to a webhook of any tenant made again.
//
// @Summary     Repeat a delivery of any tenant
// @Description Sends an event again with the same id; a paused webhook sends it when it resumes. For `callbacks`, the entry must still hold.
// @Param       tenant   path string true "Tenant"
// @Param       id       path string true "Webhook id, or callbacks"
// @Param       delivery path string true "Id of the delivery"
// @Param       reason query string false "Why, for the audit; at least 10 characters"
// @Success     204 "The delivery is pending"
// @Failure     404 {object} api.Problem "not_found"
// @Failure     410 {object} api.Problem "lock_lost"
// @Failure     503 {object} api.Problem "store_unavailable"
// @Router      /admin/webhooks/{tenant}/{id}/deliveries/{delivery}/redeliver [post]
func redeliverAny(r *request, _ *empty) (reply, error) {
	who, err := operatorOf(r)
	if err != nil {
		return reply{}, err
	}
	return deliverAgain(r, who)
}
