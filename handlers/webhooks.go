package handlers

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strconv"

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
	Create(
		context.Context,
		subscription.Actor,
		subscription.Change,
	) (*subscription.Subscription, webhook.Secret, error)
	List(context.Context, *auth.Principal) ([]*subscription.Subscription, error)
	All(who *auth.Principal, tenant string) ([]*subscription.Subscription, error)
	Get(ctx context.Context, who *auth.Principal, id string) (*subscription.Subscription, error)
	Update(
		ctx context.Context,
		who subscription.Actor,
		id string,
		c subscription.Change,
	) (*subscription.Subscription, error)
	Delete(ctx context.Context, who subscription.Actor, id string) error
	Rotate(
		ctx context.Context,
		who subscription.Actor,
		id string,
	) (*subscription.Subscription, webhook.Secret, error)
	RotateCallback(context.Context, subscription.Actor) (webhook.Secret, error)
	Callback(ctx context.Context, tenant, url string) (*lock.Callback, error)
	Count(tenant string) int
}

// actorOf returns the client as an actor in its own tenant, for the audit, with the reason in the
// query.
func actorOf(r *request) (subscription.Actor, error) {
	q := r.query()
	by := r.who()
	by.Scope = string(auth.WebhooksWrite)
	return subscription.Actor{Principal: r.principal, By: by, Reason: q.reason()}, q.err
}

// createWebhook subscribes a receiver.
//
// @Summary     Subscribe to events by webhook
// @Description Sends matching events from now on to a URL. Only this answer shows the secret that signs them.
// @Param       body body api.WebhookBody true "Which events to send, and where"
// @Success     201 {object} api.NewWebhook "The webhook, with its secret"
// @Failure     429 {object} api.Problem "overloaded, quota_exceeded, rate_limited"
// @Failure     503 {object} api.Problem "store_unavailable, fence_floor_required"
// @Router      /webhooks [post]
func createWebhook(r *request, body *api.WebhookBody) (reply, error) {
	who, err := actorOf(r)
	if err != nil {
		return reply{}, err
	}
	made, secret, err := r.endpoints.Webhooks.Create(r.context(), who, subscription.Change{
		URL: &body.URL, Events: body.Events, Locks: body.Locks, Description: body.Description,
	})
	if err != nil {
		return reply{}, err
	}
	out := &api.NewWebhook{WebhookFields: webhookFields(made), Secret: secret.Reveal()}
	return r.at("/webhooks/"+made.ID, reply{status: http.StatusCreated, body: out}), nil
}

// listWebhooks lists what the bearer token may see.
//
// @Summary     List webhooks
// @Description Returns the webhooks that select no names beyond those of the token, with the health of their receivers.
// @Param       limit  query int    false "Webhooks on a page" minimum(1) maximum(1000) default(100)
// @Param       cursor query string false "`next_cursor` of the previous page"
// @Success     200 {object} api.WebhookList "A page of them, without their secrets"
// @Failure     503 {object} api.Problem "store_unavailable, fence_floor_required"
// @Router      /webhooks [get]
func listWebhooks(r *request) (reply, error) {
	all, next, err := pageOfWebhooks(r)
	if err != nil {
		return reply{}, err
	}
	health, err := healthOf(r, all)
	if err != nil {
		return reply{}, err
	}
	const each = 4 << 10 // bytes, about: a URL and a pattern, and what names can become
	return large(each*len(all), func() any {
		list := &api.WebhookList{Webhooks: make([]api.Webhook, 0, len(all)), NextCursor: next}
		for i, one := range all {
			list.Webhooks = append(list.Webhooks, *webhookOf(one, health[i]))
		}
		return list
	}), nil
}

// pageOfWebhooks returns the webhooks of a page, and the cursor of the next one.
func pageOfWebhooks(r *request) (page []*subscription.Subscription, next string, err error) {
	q := r.query()
	limit, place := q.page(), q.cursor("webhooks", isNumber, lock.ValidName)
	if q.err != nil {
		return nil, "", q.err
	}
	page, err = r.endpoints.Webhooks.List(r.context(), r.principal)
	if err == nil && place != nil {
		from := numberIn(place[0])
		page = slices.DeleteFunc(page, func(s *subscription.Subscription) bool {
			return cmp.Or(cmp.Compare(s.From, from), cmp.Compare(s.ID, place[1])) <= 0
		})
	}
	if len(page) > limit {
		page = page[:limit]
		last := page[limit-1]
		next = cursorOf("webhooks", strconv.FormatUint(last.From, 10), last.ID)
	}
	return page, next, err
}

// getWebhook shows one.
//
// @Summary     Look at a webhook
// @Description Returns a webhook with the health of its receiver.
// @Param       id  path     string true "Webhook id"
// @Success     200 {object} api.Webhook "The webhook, without its secret"
// @Failure     404 {object} api.Problem "not_found"
// @Failure     503 {object} api.Problem "store_unavailable, fence_floor_required"
// @Router      /webhooks/{id} [get]
func getWebhook(r *request) (reply, error) {
	found, err := r.endpoints.Webhooks.Get(r.context(), r.principal, r.Param("id"))
	return showWebhook(r, found, err)
}

// changeWebhook changes what is sent, and where.
//
// @Summary     Change, pause or resume a webhook
// @Description Changes the fields in the body. `"paused": false` also resumes a webhook that the server disabled because its receiver failed.
// @Param       id   path     string            true  "Webhook id"
// @Param       body body     api.WebhookChange false "The fields to change"
// @Success     200  {object} api.Webhook "The webhook as it is now"
// @Failure     404  {object} api.Problem "not_found"
// @Failure     409  {object} api.Problem "changed"
// @Failure     503  {object} api.Problem "store_unavailable"
// @Router      /webhooks/{id} [patch]
func changeWebhook(r *request, body *api.WebhookChange) (reply, error) {
	who, err := actorOf(r)
	if err != nil {
		return reply{}, err
	}
	changed, err := r.endpoints.Webhooks.Update(r.context(), who, r.Param("id"), subscription.Change{
		URL: body.URL, Events: body.Events, Locks: body.Locks, Paused: body.Paused,
		Description: body.Description,
	})
	return showWebhook(r, changed, err)
}

// deleteWebhook ends one.
//
// @Summary     Delete a webhook
// @Description Deletes a webhook. The server sends nothing more to its URL.
// @Param       id  path     string true "Webhook id"
// @Param       reason query string false "Why, for the audit; at least 10 characters"
// @Success     204 "Deleted"
// @Failure     404 {object} api.Problem "not_found"
// @Failure     409 {object} api.Problem "changed"
// @Failure     503 {object} api.Problem "store_unavailable, fence_floor_required"
// @Router      /webhooks/{id} [delete]
func deleteWebhook(r *request, _ *empty) (reply, error) {
	who, err := actorOf(r)
	if err != nil {
		return reply{}, err
	}
	return noContent(), r.endpoints.Webhooks.Delete(r.context(), who, r.Param("id"))
}

// rotateWebhook replaces a secret.
//
// @Summary     Replace the secret of a webhook
// @Description Returns a new secret once. Replaced secrets also sign for 24 hours.
// @Param       id  path     string true "Webhook id"
// @Param       reason query string false "Why, for the audit; at least 10 characters"
// @Success     200 {object} api.NewWebhook "The webhook, with its new secret"
// @Failure     404 {object} api.Problem "not_found"
// @Failure     409 {object} api.Problem "changed"
// @Failure     503 {object} api.Problem "store_unavailable, fence_floor_required"
// @Router      /webhooks/{id}/rotate [post]
func rotateWebhook(r *request, _ *empty) (reply, error) {
	who, err := actorOf(r)
	if err != nil {
		return reply{}, err
	}
	rotated, secret, err := r.endpoints.Webhooks.Rotate(r.context(), who, r.Param("id"))
	if err != nil {
		return reply{}, err
	}
	return ok(&api.NewWebhook{WebhookFields: webhookFields(rotated), Secret: secret.Reveal()}), nil
}

// rotateCallbackSecret makes the secret of callbacks, or another one.
//
// @Summary     Create or replace the secret of callbacks
// @Description Returns the new secret once; replaced secrets also sign for 24 hours. A token that is limited to lock names gets 403.
// @Param       reason query string false "Why, for the audit; at least 10 characters"
// @Success     200 {object} api.CallbackSecret "The new secret"
// @Failure     409 {object} api.Problem "changed"
// @Failure     429 {object} api.Problem "overloaded, quota_exceeded, rate_limited"
// @Failure     503 {object} api.Problem "store_unavailable, fence_floor_required"
// @Router      /webhooks/callback-secret/rotate [post]
func rotateCallbackSecret(r *request, _ *empty) (reply, error) {
	who, err := actorOf(r)
	if err != nil {
		return reply{}, err
	}
	secret, err := r.endpoints.Webhooks.RotateCallback(r.context(), who)
	if err != nil {
		return reply{}, err
	}
	return ok(&api.CallbackSecret{Secret: secret.Reveal()}), nil
}

func showWebhook(r *request, s *subscription.Subscription, err error) (reply, error) {
	if err != nil {
		return reply{}, err
	}
	health, err := r.endpoints.Deliveries.Health(r.context(), r.tenant(), s.ID)
	if err != nil {
		return reply{}, err
	}
	return ok(webhookOf(s, health)), nil
}

// healthOf reads the health of webhooks from the store, some at a time; a tenant has at most 100.
func healthOf(r *request, all []*subscription.Subscription) ([]outbox.Health, error) {
	ctx, cancel := context.WithTimeout(r.context(), webhooksTimeout)
	defer cancel()
	found := make([]outbox.Health, len(all))
	asking, ctx := errgroup.WithContext(ctx)
	asking.SetLimit(webhooksAtOnce)
	for i, s := range all {
		asking.Go(func() (err error) {
			found[i], err = r.endpoints.Deliveries.Health(ctx, s.Tenant, s.ID)
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
		ID: s.ID, URL: s.URL, Events: eventNames(s.Events), Locks: s.Locks, Paused: s.Paused,
		Description: s.Description, CreatedAt: api.InstantOf(s.Created), CreatedBy: s.By,
	}
	if len(s.Rotated) > 0 {
		f.RotatedAt = api.InstantOf(s.Rotated[0])
	}
	return f
}

// eventNames are the words for kinds; nil is all kinds.
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
