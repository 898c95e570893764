package handlers

import (
	"github.com/fencepost/fencepost/api"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/webhook/subscription"
)

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
// @Description How it does and what is owed to it. Of the URL the scheme and host are shown: its path may be a secret of the tenant.
// @Security    bearer[admin]
// @Security    bearer[tenant-admin]
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
// @Description `"paused": false` also sets a webhook going again that was disabled because its receiver failed. It is in the audit before it is done. Nothing else of a webhook is for operators to change.
// @Security    bearer[admin]
// @Security    bearer[tenant-admin]
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
// @Description Those that are still to be made, and the last ones that were attempted. `callbacks` in the place of an id lists those of the tenant's callbacks.
// @Security    bearer[admin]
// @Security    bearer[tenant-admin]
// @Param       tenant  path  string true  "Tenant"
// @Param       id      path  string true  "Webhook id, or callbacks"
// @Param       limit   query int    false "Deliveries that are still to be made on a page" minimum(1) maximum(1000) default(100)
// @Param       cursor  query string false "next_cursor of the page before"
// @Success     200 {object} api.DeliveryPage "A page of deliveries, the newest first"
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
// @Summary     Make a delivery of any tenant again
// @Description Tells an event once more, or now if there is an attempt to come, with the same id. It is in the audit before it is done. While the webhook is paused or disabled it waits until that goes on.
// @Security    bearer[admin]
// @Security    bearer[tenant-admin]
// @Param       tenant   path string true "Tenant"
// @Param       id       path string true "Webhook id, or callbacks"
// @Param       delivery path string true "Id of the delivery"
// @Param       reason query string false "Why, for the audit; at least 10 characters"
// @Success     204 "It will be made"
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
