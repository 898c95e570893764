package handlers

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/gin-gonic/gin"
	"golang.org/x/sync/errgroup"

	"github.com/fencepost/fencepost/api"
	"github.com/fencepost/fencepost/auth"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/webhook"
	"github.com/fencepost/fencepost/webhook/outbox"
	"github.com/fencepost/fencepost/webhook/subscription"
)

// Webhooks are the use cases of subscriptions and callbacks; [subscription.Subscriptions]
// has them.
type Webhooks interface {
	Create(context.Context, subscription.Actor, subscription.Change) (*subscription.Subscription, webhook.Secret, error)
	List(context.Context, *auth.Principal) ([]*subscription.Subscription, error)
	All(who *auth.Principal, tenant string) ([]*subscription.Subscription, error)
	Get(ctx context.Context, who *auth.Principal, id string) (*subscription.Subscription, error)
	Update(ctx context.Context, who subscription.Actor, id string, c subscription.Change) (*subscription.Subscription, error)
	Delete(ctx context.Context, who subscription.Actor, id string) error
	Rotate(ctx context.Context, who subscription.Actor, id string) (*subscription.Subscription, webhook.Secret, error)
	RotateCallback(context.Context, subscription.Actor) (webhook.Secret, error)
	Callback(ctx context.Context, tenant, url string) (*lock.Callback, error)
	Count(tenant string) int
}

// actor is who changes something of his own tenant's webhooks, for the audit.
func (r *request) actor() subscription.Actor {
	by := r.who()
	by.Scope = string(auth.WebhooksWrite)
	return subscription.Actor{Principal: r.principal, By: by}
}

// actorWithReason is actor, with why he does it, if he says so.
func (r *request) actorWithReason() (who subscription.Actor, err error) {
	who = r.actor()
	who.Reason, err = r.reasonParam()
	return who, err
}

func (a *endpoints) webhooks(r *gin.Engine) {
	o := operation{scopes: []auth.Scope{auth.WebhooksWrite}, page: true}
	r.POST("/webhooks", a.authorized(o, a.createWebhook))
	paged := o
	paged.query = []string{"limit", "cursor"}
	r.GET("/webhooks", a.authorized(paged, a.listWebhooks))
	r.GET("/webhooks/:id", a.authorized(o, a.getWebhook))
	r.PATCH("/webhooks/:id", a.authorized(o, a.changeWebhook))
	o.query = []string{"reason"}
	r.DELETE("/webhooks/:id", a.authorized(o, a.deleteWebhook))
	r.POST("/webhooks/:id/rotate", a.authorized(o, a.rotateWebhook))
	r.POST("/webhooks/callback-secret/rotate", a.authorized(o, a.rotateCallbackSecret))
}

// createWebhook subscribes a receiver.
//
// @Summary     Subscribe to events by webhook
// @ID          createWebhook
// @Description Has what happens to locks from now on told to a URL, signed with the secret that is shown here and not again. A tenant may have as many as its quota `webhooks` says.
// @Tags        webhooks
// @Accept      json
// @Produce     json
// @Security    bearer[webhooks:write]
// @Param       body body api.WebhookBody true "What to tell, and where"
// @Success     201 {object} api.NewWebhook "The webhook, with its secret"
// @Failure     429 {object} api.Problem "overloaded, quota_exceeded, rate_limited"
// @Failure     503 {object} api.Problem "store_unavailable, memory_full, fence_floor_required"
// @Router      /webhooks [post]
func (a *endpoints) createWebhook(r *request) error {
	var body api.WebhookBody
	if err := r.readJSON(&body); err != nil {
		return err
	}
	made, secret, err := a.Webhooks.Create(r.context(), r.actor(), subscription.Change{URL: &body.URL, Events: body.Events, Locks: body.Locks, Description: body.Description})
	if err != nil {
		return err
	}
	r.Header("Location", r.under("/webhooks/"+made.ID))
	return r.respond(http.StatusCreated, &api.NewWebhook{WebhookFields: webhookFields(made), Secret: secret.Reveal()})
}

// listWebhooks lists what the bearer token may see.
//
// @Summary     List webhooks
// @ID          listWebhooks
// @Description Those that select no names but the ones that the bearer token may use, with how their receivers do.
// @Tags        webhooks
// @Produce     json
// @Security    bearer[webhooks:write]
// @Param       limit  query int    false "Webhooks on a page" minimum(1) maximum(1000) default(100)
// @Param       cursor query string false "next_cursor of the page before"
// @Success     200 {object} api.WebhookList "A page of them, without their secrets"
// @Failure     400 {object} api.Problem "invalid_request"
// @Failure     503 {object} api.Problem "store_unavailable, memory_full, fence_floor_required"
// @Router      /webhooks [get]
func (a *endpoints) listWebhooks(r *request) error {
	all, next, err := a.pageOfWebhooks(r)
	if err != nil {
		return err
	}
	if err := r.charge(len(all)); err != nil { // the store is asked how each does
		return err
	}
	health, err := a.healthOf(r.context(), all)
	if err != nil {
		return err
	}
	const each = 4 << 10 // bytes, about: a URL and a pattern, and what names can become
	return r.respondLarge(each*len(all), func() any {
		list := &api.WebhookList{Webhooks: make([]api.Webhook, 0, len(all)), NextCursor: next}
		for i, one := range all {
			list.Webhooks = append(list.Webhooks, *webhookOf(one, health[i]))
		}
		return list
	})
}

// pageOfWebhooks returns the webhooks of a page, and the cursor of the next one.
func (a *endpoints) pageOfWebhooks(r *request) (page []*subscription.Subscription, next string, err error) {
	limit, err := r.limitParam()
	if err != nil {
		return nil, "", err
	}
	var after webhookPlace
	if text, sent := r.GetQuery("cursor"); sent {
		if after, err = parseWebhookPlace(text); err != nil {
			return nil, "", err
		}
	}
	all, err := a.Webhooks.List(r.context(), r.principal)
	first := slices.IndexFunc(all, func(s *subscription.Subscription) bool { return placeOf(s).compare(after) > 0 })
	if err != nil || first < 0 {
		return nil, "", err
	}
	if page = all[first:]; len(page) > limit {
		page = page[:limit]
		next = placeOf(page[limit-1]).cursor()
	}
	return page, next, nil
}

// webhookPlace is where a webhook stands in the list.
type webhookPlace struct {
	from uint64
	id   string
}

func placeOf(s *subscription.Subscription) webhookPlace { return webhookPlace{s.From, s.ID} }

func (p webhookPlace) compare(o webhookPlace) int {
	return cmp.Or(cmp.Compare(p.from, o.from), cmp.Compare(p.id, o.id))
}

func (p webhookPlace) cursor() string {
	return encodeCursor(strconv.FormatUint(p.from, 10) + ":" + p.id)
}

func parseWebhookPlace(cursor string) (webhookPlace, error) {
	text, err := decodeCursor(cursor)
	digits, id, _ := strings.Cut(text, ":")
	from, bad := strconv.ParseUint(digits, 10, 64)
	if err != nil || bad != nil {
		return webhookPlace{}, lock.Invalid("cursor", "is not a next_cursor of ours")
	}
	return webhookPlace{from, id}, nil
}

// getWebhook shows one.
//
// @Summary     Look at a webhook
// @ID          getWebhook
// @Tags        webhooks
// @Produce     json
// @Security    bearer[webhooks:write]
// @Param       id  path     string true "Webhook id"
// @Success     200 {object} api.Webhook "The webhook, without its secret"
// @Failure     404 {object} api.Problem "not_found"
// @Failure     503 {object} api.Problem "store_unavailable, memory_full, fence_floor_required"
// @Router      /webhooks/{id} [get]
func (a *endpoints) getWebhook(r *request) error {
	found, err := a.Webhooks.Get(r.context(), r.principal, r.Param("id"))
	return r.respondWebhook(found, err)
}

// changeWebhook changes what is sent, and where.
//
// @Summary     Change, pause or resume a webhook
// @ID          changeWebhook
// @Description Changes the fields that are there. `"paused": false` also sets a webhook going again that was disabled because its receiver failed.
// @Tags        webhooks
// @Accept      json
// @Produce     json
// @Security    bearer[webhooks:write]
// @Param       id   path     string            true  "Webhook id"
// @Param       body body     api.WebhookChange false "What is to be another"
// @Success     200  {object} api.Webhook "The webhook as it is now"
// @Failure     404  {object} api.Problem "not_found"
// @Failure     409  {object} api.Problem "changed"
// @Failure     503  {object} api.Problem "store_unavailable"
// @Router      /webhooks/{id} [patch]
func (a *endpoints) changeWebhook(r *request) error {
	var body api.WebhookChange
	if err := r.readJSON(&body); err != nil {
		return err
	}
	c := subscription.Change{URL: body.URL, Events: body.Events, Locks: body.Locks, Paused: body.Paused, Description: body.Description}
	changed, err := a.Webhooks.Update(r.context(), r.actor(), r.Param("id"), c)
	return r.respondWebhook(changed, err)
}

// deleteWebhook ends one.
//
// @Summary     Delete a webhook
// @ID          deleteWebhook
// @Tags        webhooks
// @Produce     json
// @Security    bearer[webhooks:write]
// @Param       id  path     string true "Webhook id"
// @Param       reason query string false "Why, for the audit; at least 10 characters"
// @Success     204 "Deleted"
// @Failure     404 {object} api.Problem "not_found"
// @Failure     409 {object} api.Problem "changed"
// @Failure     503 {object} api.Problem "store_unavailable, memory_full, fence_floor_required"
// @Router      /webhooks/{id} [delete]
func (a *endpoints) deleteWebhook(r *request) error {
	if err := r.readJSON(&struct{}{}); err != nil {
		return err
	}
	who, err := r.actorWithReason()
	if err != nil {
		return err
	}
	return r.done(a.Webhooks.Delete(r.context(), who, r.Param("id")))
}

// rotateWebhook replaces a secret.
//
// @Summary     Give a webhook a new secret
// @ID          rotateWebhook
// @Description Shows a new secret, once. Those that it replaces sign too for 24 hours, so that a receiver can take up the new one meanwhile.
// @Tags        webhooks
// @Produce     json
// @Security    bearer[webhooks:write]
// @Param       id  path     string true "Webhook id"
// @Param       reason query string false "Why, for the audit; at least 10 characters"
// @Success     200 {object} api.NewWebhook "The webhook, with its new secret"
// @Failure     404 {object} api.Problem "not_found"
// @Failure     409 {object} api.Problem "changed"
// @Failure     503 {object} api.Problem "store_unavailable, memory_full, fence_floor_required"
// @Router      /webhooks/{id}/rotate [post]
func (a *endpoints) rotateWebhook(r *request) error {
	if err := r.readJSON(&struct{}{}); err != nil {
		return err
	}
	who, err := r.actorWithReason()
	if err != nil {
		return err
	}
	rotated, secret, err := a.Webhooks.Rotate(r.context(), who, r.Param("id"))
	if err != nil {
		return err
	}
	return r.respond(http.StatusOK, &api.NewWebhook{WebhookFields: webhookFields(rotated), Secret: secret.Reveal()})
}

// rotateCallbackSecret makes the secret of callbacks, or another one.
//
// @Summary     Make or replace the secret of callbacks
// @ID          rotateCallbackSecret
// @Description Shows the secret that signs what is sent to a `callback_url`, once. Those that it replaces sign too for 24 hours. It is for all locks of the tenant: a bearer token that is limited to some names may not have it.
// @Tags        webhooks
// @Produce     json
// @Security    bearer[webhooks:write]
// @Param       reason query string false "Why, for the audit; at least 10 characters"
// @Success     200 {object} api.CallbackSecret "The new secret"
// @Failure     409 {object} api.Problem "changed"
// @Failure     429 {object} api.Problem "overloaded, quota_exceeded, rate_limited"
// @Failure     503 {object} api.Problem "store_unavailable, memory_full, fence_floor_required"
// @Router      /webhooks/callback-secret/rotate [post]
func (a *endpoints) rotateCallbackSecret(r *request) error {
	if err := r.readJSON(&struct{}{}); err != nil {
		return err
	}
	who, err := r.actorWithReason()
	if err != nil {
		return err
	}
	secret, err := a.Webhooks.RotateCallback(r.context(), who)
	if err != nil {
		return err
	}
	return r.respond(http.StatusOK, &api.CallbackSecret{Secret: secret.Reveal()})
}

func (r *request) respondWebhook(s *subscription.Subscription, err error) error {
	if err != nil {
		return err
	}
	health, err := r.endpoints.Deliveries.Health(r.context(), r.tenant(), s.ID)
	if err != nil {
		return err
	}
	return r.respond(http.StatusOK, webhookOf(s, health))
}

// healthOf asks the store how webhooks do, of which a tenant has 100 at most, some at a time.
func (a *endpoints) healthOf(ctx context.Context, all []*subscription.Subscription) ([]outbox.Health, error) {
	ctx, cancel := context.WithTimeout(ctx, webhooksTimeout)
	defer cancel()
	found := make([]outbox.Health, len(all))
	asking, ctx := errgroup.WithContext(ctx)
	asking.SetLimit(webhooksAtOnce)
	for i, s := range all {
		asking.Go(func() (err error) {
			found[i], err = a.Deliveries.Health(ctx, s.Tenant, s.ID)
			return err
		})
	}
	return found, asking.Wait()
}

// webhookOf describes a webhook and how its receiver does.
func webhookOf(s *subscription.Subscription, h outbox.Health) *api.Webhook {
	h = h.Of(s.Enabled)
	out := &api.Webhook{WebhookFields: webhookFields(s), Disabled: string(h.Disabled)}
	if !h.FailingSince.IsZero() {
		out.FailingSince = api.InstantOf(h.FailingSince)
	}
	return out
}

func webhookFields(s *subscription.Subscription) api.WebhookFields {
	f := api.WebhookFields{
		ID: s.ID, URL: s.URL, Events: eventNames(s.Events), Locks: s.Locks, Paused: s.Paused, Description: s.Description,
		CreatedAt: api.InstantOf(s.Created), CreatedBy: s.By,
	}
	if len(s.Rotated) > 0 {
		f.RotatedAt = api.InstantOf(s.Rotated[0])
	}
	return f
}

// eventNames are the words for kinds of which nil is all.
func eventNames(kinds []lock.EventKind) []string {
	switch {
	case kinds == nil:
		return []string{subscription.AllEvents}
	case len(kinds) == 0:
		return []string{api.EventsMissed}
	}
	names := make([]string, 0, len(kinds))
	for _, kind := range kinds {
		names = append(names, string(kind))
	}
	return names
}
