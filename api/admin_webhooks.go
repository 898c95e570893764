package api

// AdminWebhookPage is a page of the webhooks of all tenants, by tenant and id.
type AdminWebhookPage struct {
	// Replica that answers.
	Replica string `json:"replica" example:"5MDRK1W5PVY0WG1DCJT2B2GTHR"`
	// Webhooks of the page.
	Webhooks []AdminWebhook `json:"webhooks"`
	// NextCursor selects the next page; left out on the last one.
	NextCursor string `json:"next_cursor,omitempty" example:"YWNtZXw1bWRyazF3NXB2eTB3ZzFkY2p0MmIyZ3Rocg"`
	// Total is how many there are on all pages.
	Total int `json:"total" minimum:"0" example:"3"`
}

// AdminWebhook is a webhook of a tenant, with its health.
type AdminWebhook struct {
	// Tenant of the webhook.
	Tenant string `json:"tenant" example:"acme"`
	// ID of the webhook.
	ID string `json:"id" example:"5mdrk1w5pvy0wg1dcjt2b2gthr"`
	// Receiver is the scheme and host of its URL. The rest may be a secret.
	Receiver string `json:"receiver" example:"https://example.org"`
	// Events are the types that it receives; `*` is all.
	Events []string `json:"events" example:"lock.acquired,lock.expired"`
	// Locks is a pattern of lock names with at most one star.
	Locks string `json:"locks" example:"orders:*"`
	// Paused is set while the server sends nothing.
	Paused bool `json:"paused" example:"false"`
	// Disabled is why the server sends nothing: the receiver answered 410, or failed for five days.
	Disabled string `json:"disabled,omitempty" enums:"gone,failing" example:"failing"`
	// FailingSince is since when every attempt fails; it may be some seconds old.
	FailingSince Instant `json:"failing_since,omitempty" swaggertype:"string" format:"date-time" example:"2026-01-02T15:04:05.000Z"`
	// Failures is how many attempts have failed since.
	Failures int `json:"failures,omitempty" minimum:"0" example:"4"`
	// Pending counts the pending deliveries that the server retries.
	Pending int `json:"pending" minimum:"0" example:"12"`
	// PendingMore is set if more may be pending.
	PendingMore bool `json:"pending_more,omitempty"`
	// CreatedAt is when the webhook was created. It receives later events.
	CreatedAt Instant `json:"created_at" swaggertype:"string" format:"date-time" example:"2026-01-02T15:04:05.000Z"`
	// CreatedBy is the `sub` of the bearer token that made it.
	CreatedBy string `json:"created_by" example:"worker-7"`
}

// AdminWebhookChange pauses or resumes a webhook.
type AdminWebhookChange struct {
	// Paused stops the deliveries; false also resumes a webhook that the server disabled because its
	// receiver failed.
	Paused *bool `json:"paused" example:"true"`
	// Reason in the operator's words. It is kept in the audit.
	Reason string `json:"reason" minLength:"10" maxLength:"500" example:"its receiver is being repaired"`
}
