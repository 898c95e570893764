package api

// WebhookBody is which events the server sends, and where.
type WebhookBody struct {
	// URL of the receiver. By default it must be a public address with https at port 443; the
	// operator can allow others.
	URL string `json:"url" format:"uri" minLength:"1" maxLength:"2048" example:"https://example.org/fencepost"`
	// Events are the types to send; the default `*` is all, also of later versions. `events.missed`
	// is always sent.
	Events []string `json:"events,omitempty" enums:"*,lock.enqueued,lock.acquired,lock.released,lock.expired,lock.revoked,lock.wait_timeout,lock.deadlock_refused,lock.superseded,lock.release_requested,events.missed" example:"lock.acquired,lock.expired"`
	// Locks is a pattern of lock names with at most one star. It must be within the patterns of the
	// token.
	Locks *string `json:"locks,omitempty" minLength:"1" maxLength:"256" default:"*" example:"orders:*"`
	// Description for people.
	Description *string `json:"description,omitempty" maxLength:"200" example:"tells the shop"`
}

// WebhookChange has the fields to change; the others stay.
type WebhookChange struct {
	// URL of the receiver.
	URL *string `json:"url,omitempty" format:"uri" minLength:"1" maxLength:"2048" example:"https://example.org/fencepost"`
	// Events are the types to send; `*` is all, also of later versions. `events.missed` is always
	// sent.
	Events []string `json:"events,omitempty" enums:"*,lock.enqueued,lock.acquired,lock.released,lock.expired,lock.revoked,lock.wait_timeout,lock.deadlock_refused,lock.superseded,lock.release_requested,events.missed" example:"lock.acquired,lock.expired"`
	// Locks is a pattern of lock names with at most one star.
	Locks *string `json:"locks,omitempty" minLength:"1" maxLength:"256" example:"orders:*"`
	// Paused stops the deliveries; false also resumes a webhook that the server disabled because its
	// receiver failed.
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
	// Locks is a pattern of lock names with at most one star.
	Locks string `json:"locks" example:"orders:*"`
	// Description for people, if there is one.
	Description string `json:"description,omitempty" example:"tells the shop"`
	// Paused is set while the server sends nothing.
	Paused bool `json:"paused" example:"false"`
	// CreatedAt is when the webhook was created. It receives later events.
	CreatedAt Instant `json:"created_at" swaggertype:"string" format:"date-time" example:"2026-01-02T15:04:05.000Z"`
	// CreatedBy is the `sub` of the bearer token that made it.
	CreatedBy string `json:"created_by" example:"worker-7"`
	// RotatedAt is when its secret was last replaced.
	RotatedAt Instant `json:"rotated_at,omitempty" swaggertype:"string" format:"date-time" example:"2026-01-02T15:04:05.000Z"`
}

// Webhook is a subscription of a tenant, without its secret.
type Webhook struct {
	WebhookFields
	// FailingSince is since when every attempt fails; it can be some seconds old.
	FailingSince Instant `json:"failing_since,omitempty" swaggertype:"string" format:"date-time" example:"2026-01-02T15:04:05.000Z"`
	// Disabled is why the server sends nothing: the receiver answered 410, or failed for five days.
	// `"paused": false` resumes it.
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
	// NextCursor selects the next page; left out on the last one.
	NextCursor string `json:"next_cursor,omitempty" example:"YWZ0ZXI6MTA0Mg"`
}

// CallbackSecret is a new secret for callbacks, which is not shown again.
type CallbackSecret struct {
	// Secret that callbacks are signed with, as Standard Webhooks has it.
	Secret string `json:"secret" example:"whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="`
}
