package handlers

import (
	"context"
	"net/http"
	"time"

	"github.com/fencepost/fencepost/api"
	"github.com/fencepost/fencepost/auth"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/webhook/outbox"
	"github.com/fencepost/fencepost/webhook/subscription"
)

// Deliveries are the use cases of deliveries to subscriptions; [outbox.Deliveries] has
// them.
type Deliveries interface {
	List(ctx context.Context, tenant, id, cursor string, limit int) (*outbox.Page, error)
	Health(ctx context.Context, tenant, id string) (outbox.Health, error)
	Pending(ctx context.Context, tenant, id string) (outbox.Pending, error)
	Test(context.Context, outbox.Order) (delivery string, err error)
	Redeliver(ctx context.Context, o outbox.Order, delivery string) error
}

// deliveriesTo returns the id in the path if the caller may see and change the deliveries
// there: with a subscription of the tenant, which is returned, or with its callbacks.
func deliveriesTo(
	r *request,
	who *auth.Principal,
) (id string, of *subscription.Subscription, err error) {
	id = r.Param("id")
	if id != outbox.Callbacks {
		of, err = r.endpoints.Webhooks.Get(r.context(), who, id)
		return id, of, err
	}
	if who.Locks != nil {
		err = lock.Errorf(
			lock.Forbidden,
			"callbacks are for all locks, and the caller is limited to some; use a credential without that limit",
		)
	}
	return id, nil, err
}

// listDeliveries shows what is sent.
//
// @Summary     List the deliveries of a webhook
// @Description Returns the pending deliveries, and the last ones that were attempted. The id `callbacks` selects the callbacks of the tenant.
// @Param       id      path  string true  "Webhook id, or callbacks"
// @Param       limit   query int    false "Pending deliveries on a page" minimum(1) maximum(1000) default(100)
// @Param       cursor  query string false "`next_cursor` of the previous page"
// @Success     200 {object} api.DeliveryPage "A page of deliveries, its newest first; the first page has the oldest pending ones"
// @Failure     404 {object} api.Problem "not_found"
// @Failure     503 {object} api.Problem "store_unavailable, fence_floor_required"
// @Router      /webhooks/{id}/deliveries [get]
func listDeliveries(r *request) (reply, error) { return deliveries(r, r.principal) }

func deliveries(r *request, who *auth.Principal) (reply, error) {
	id, of, err := deliveriesTo(r, who)
	if err != nil {
		return reply{}, err
	}
	q := r.query()
	limit, after := q.page(), q.after("deliveries", isRecordPlace)
	if q.err != nil {
		return reply{}, q.err
	}
	page, err := r.endpoints.Deliveries.List(r.context(), who.Tenant, id, after, limit)
	if err != nil {
		return reply{}, err
	}
	sending := true
	if of != nil {
		page.Health = page.Health.Of(of.Enabled)
		sending = !of.Paused && page.Health.Disabled == ""
	}
	if after != "" { // only the first page tells
		page.Health = outbox.Health{}
	}
	const each = 8 << 10 // bytes, about: its last attempts with what went wrong
	return large(
		each*len(page.Deliveries), func() any { return deliveriesOf(page, sending, r.principal.MayUse) },
	), nil
}

// isRecordPlace reports whether text can be the place of a small record. The store checks what is
// in it.
func isRecordPlace(text string) bool {
	const longest = 200
	return text != "" && len(text) <= longest && printable(text)
}

func deliveriesOf(p *outbox.Page, sends bool, may func(name string) bool) *api.DeliveryPage {
	out := &api.DeliveryPage{
		Deliveries: make([]api.Delivery, 0, len(p.Deliveries)), Disabled: string(p.Health.Disabled),
	}
	if p.Next != "" {
		out.NextCursor = cursorOf("deliveries", p.Next)
	}
	if !p.Health.FailingSince.IsZero() {
		out.FailingSince = api.InstantOf(p.Health.FailingSince)
	}
	for i := range p.Deliveries {
		out.Deliveries = append(out.Deliveries, deliveryOf(&p.Deliveries[i], sends, may))
	}
	return out
}

func deliveryOf(d *outbox.Delivery, sends bool, may func(name string) bool) api.Delivery {
	out := api.Delivery{
		ID: d.ID, Type: d.Type, State: string(d.State), CreatedAt: api.InstantOf(d.Made.UTC()),
		Tried: d.Tried, Attempts: make([]api.Attempt, 0, len(d.Attempts)),
	}
	if may(d.Lock) { // of a set the first may be one that the token may not know
		out.Lock = d.Lock
	}
	if sends && !d.Due.IsZero() {
		out.NextAttemptAt = api.InstantOf(d.Due.UTC())
	}
	for _, one := range d.Attempts {
		out.Attempts = append(out.Attempts, api.Attempt{
			At: api.InstantOf(one.At.UTC()), Outcome: string(one.Outcome), Status: one.Status,
			Error: one.Err, TookSeconds: api.SecondsOf(time.Duration(one.TookMS) * time.Millisecond),
			ClockSkewSeconds: api.SecondsOf(time.Duration(one.SkewS) * time.Second),
		})
	}
	return out
}

// testWebhook has a test sent.
//
// @Summary     Send a test to a webhook
// @Description Sends a message of the type `webhook.test`; the list of deliveries shows its result. A paused webhook sends it when it resumes.
// @Param       id      path string true "Webhook id"
// @Param       reason query string false "Why, for the audit; at least 10 characters"
// @Success     202 {object} api.TestDelivery "The test is pending"
// @Failure     404 {object} api.Problem "not_found"
// @Failure     503 {object} api.Problem "store_unavailable, fence_floor_required"
// @Router      /webhooks/{id}/test [post]
func testWebhook(r *request, _ *empty) (reply, error) {
	found, err := r.endpoints.Webhooks.Get(r.context(), r.principal, r.Param("id"))
	if err != nil {
		return reply{}, err
	}
	who, err := actorOf(r)
	if err != nil {
		return reply{}, err
	}
	delivery, err := r.endpoints.Deliveries.Test(r.context(), outbox.Order{Actor: who, Of: found})
	if err != nil {
		return reply{}, err
	}
	accepted := reply{status: http.StatusAccepted, body: &api.TestDelivery{Delivery: delivery}}
	return r.at("/webhooks/"+found.ID+"/deliveries", accepted), nil
}

// redeliver has one delivery made again.
//
// @Summary     Repeat a delivery
// @Description Sends an event again with the same id; a paused webhook sends it when it resumes. For `callbacks`, the entry must still hold.
// @Param       id       path string true "Webhook id, or callbacks"
// @Param       delivery path string true "Id of the delivery"
// @Param       reason query string false "Why, for the audit; at least 10 characters"
// @Success     204 "The delivery is pending"
// @Failure     404 {object} api.Problem "not_found"
// @Failure     410 {object} api.Problem "lock_lost"
// @Failure     503 {object} api.Problem "store_unavailable, fence_floor_required"
// @Router      /webhooks/{id}/deliveries/{delivery}/redeliver [post]
func redeliver(r *request, _ *empty) (reply, error) {
	who, err := actorOf(r)
	if err != nil {
		return reply{}, err
	}
	return deliverAgain(r, who)
}

func deliverAgain(r *request, who subscription.Actor) (reply, error) {
	_, of, err := deliveriesTo(r, who.Principal)
	if err != nil {
		return reply{}, err
	}
	q := r.query()
	order := outbox.Order{Actor: who, Of: of}
	if order.Actor.Reason = q.reason(); q.err != nil {
		return reply{}, q.err
	}
	return noContent(), r.endpoints.Deliveries.Redeliver(r.context(), order, r.Param("delivery"))
}
