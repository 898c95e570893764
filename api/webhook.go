package api

// WebhookBody says which events the server sends, and where.
type WebhookBody struct {
	// URL of the receiver. The server's operator decides where that may be; by default at
	// public addresses, with https, at port 443.
	URL string `json:"url" format:"uri" minLength:"1" maxLength:"2048" example:"https://example.org/fencepost"`
	// Events are the types that it receives; `*` is all of them, also later ones, and the
	// default. An `events.missed` always comes.
	Events []string `json:"events,omitempty" enums:"*,lock.enqueued,lock.acquired,lock.released,lock.expired,lock.revoked,lock.wait_timeout,lock.deadlock_refused,lock.release_requested,events.missed" example:"lock.acquired,lock.expired"`
	// Locks is a pattern: it receives events of locks with such a name. It has at most
	// one star, which matches anything. A bearer token that is limited to patterns has to name one
	// within them.
	Locks *string `json:"locks,omitempty" minLength:"1" maxLength:"256" default:"*" example:"orders:*"`
	// Description for people.
	Description *string `json:"description,omitempty" maxLength:"200" example:"tells the shop"`
}

// WebhookChange says what changes; what is left out stays as it is.
type WebhookChange struct {
	// URL of the receiver.
	URL *string `json:"url,omitempty" format:"uri" minLength:"1" maxLength:"2048" example:"https://example.org/fencepost"`
	// Events are the types that it receives; `*` is all of them, also later ones. An
	// `events.missed` always comes.
	Events []string `json:"events,omitempty" enums:"*,lock.enqueued,lock.acquired,lock.released,lock.expired,lock.revoked,lock.wait_timeout,lock.deadlock_refused,lock.release_requested,events.missed" example:"lock.acquired,lock.expired"`
	// Locks is a pattern: it receives events of locks with such a name.
	Locks *string `json:"locks,omitempty" minLength:"1" maxLength:"256" example:"orders:*"`
	// Paused says that nothing is sent for now; false also sets one going again that was
	// disabled because its receiver failed.
	Paused *bool `json:"paused,omitempty" example:"true"`
	// Description for people; an empty one is none.
	Description *string `json:"description,omitempty" maxLength:"200" example:"tells the shop"`
}

// WebhookFields are what a webhook has whenever it is shown.
type WebhookFields struct {
	// ID of the webhook.
	ID string `json:"id" example:"5mdrk1w5pvy0wg1dcjt2b2gthr"`
	// URL of the receiver.
	URL string `json:"url" example:"https://example.org/fencepost"`
	// Events are the types that it receives; `*` is all.
	Events []string `json:"events" example:"lock.acquired,lock.expired"`
	// Locks is a pattern: it receives events of locks with such a name.
	Locks string `json:"locks" example:"orders:*"`
	// Description for people, if there is one.
	Description string `json:"description,omitempty" example:"tells the shop"`
	// Paused says that nothing is sent for now.
	Paused bool `json:"paused" example:"false"`
	// CreatedAt is when it was made. It receives what happened after that.
	CreatedAt Instant `json:"created_at" swaggertype:"string" format:"date-time" example:"2026-01-02T15:04:05.000Z"`
	// CreatedBy is the `sub` of the bearer token that made it.
	CreatedBy string `json:"created_by" example:"worker-7"`
	// RotatedAt is when its secret was last replaced, if it ever was.
	RotatedAt Instant `json:"rotated_at,omitempty" swaggertype:"string" format:"date-time" example:"2026-01-02T15:04:05.000Z"`
}

// Webhook is a subscription of a tenant, without its secret.
type Webhook struct {
	WebhookFields
	// FailingSince is since when every attempt fails. It may be some seconds old.
	FailingSince Instant `json:"failing_since,omitempty" swaggertype:"string" format:"date-time" example:"2026-01-02T15:04:05.000Z"`
	// Disabled says why nothing is sent any more: the receiver answered 410, or failed for
	// five days. `"paused": false` sets it going again.
	Disabled string `json:"disabled,omitempty" enums:"gone,failing" example:"failing"`
}

// NewWebhook is a webhook with a new secret, which is not shown again.
type NewWebhook struct {
	WebhookFields
	// Secret that deliveries are signed with, as Standard Webhooks has it.
	Secret string `json:"secret" example:"whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="`
}

// WebhookList is a page of the webhooks that the bearer token may see, the oldest first.
type WebhookList struct {
	// Webhooks of the tenant.
	Webhooks []Webhook `json:"webhooks"`
	// NextCursor asks for the next page; left out on the last one.
	NextCursor string `json:"next_cursor,omitempty" example:"YWZ0ZXI6MTA0Mg"`
}

// CallbackSecret is a new secret for callbacks, which is not shown again.
type CallbackSecret struct {
	// Secret that callbacks are signed with, as Standard Webhooks has it.
	Secret string `json:"secret" example:"whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="`
}
