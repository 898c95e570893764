package api

// Delivery is one event for a webhook or a callback.
type Delivery struct {
	// ID of the event, sent as `webhook-id`. A gap has the ids of both ends; a callback a number and
	// its entry.
	ID string `json:"id" example:"1042-1"`
	// Type of the event.
	Type string `json:"type" example:"lock.acquired"`
	// Lock of the event, or the first of a set, if the bearer token may use it.
	Lock string `json:"lock,omitempty" example:"orders:42"`
	// State of the delivery. The server drops one that always failed, that the receiver refused with
	// 410, or that is too late.
	State string `json:"state" enums:"pending,delivered,failed,gone,expired" example:"delivered"`
	// CreatedAt is when the delivery was created.
	CreatedAt Instant `json:"created_at" swaggertype:"string" format:"date-time" example:"2026-01-02T15:04:05.000Z"`
	// NextAttemptAt is when the next attempt is due; left out while the webhook is paused or
	// disabled.
	NextAttemptAt Instant `json:"next_attempt_at,omitempty" swaggertype:"string" format:"date-time" example:"2026-01-02T15:04:10.000Z"`
	// Tried is how many attempts were made.
	Tried int `json:"tried" minimum:"0" example:"1"`
	// Attempts are the last ones, newest last.
	Attempts []Attempt `json:"attempts"`
}

// Attempt is one request to a receiver, and its result.
type Attempt struct {
	// At is when it was made.
	At Instant `json:"at" swaggertype:"string" format:"date-time" example:"2026-01-02T15:04:05.000Z"`
	// Outcome of the attempt.
	Outcome string `json:"outcome" enums:"delivered,failed,throttled,gone,rejected,expired,interrupted" example:"delivered"`
	// Status of the receiver's answer, if there was one.
	Status int `json:"status,omitempty" example:"204"`
	// Error is what went wrong.
	Error string `json:"error,omitempty" example:"it answered 503"`
	// TookSeconds is how long it took.
	TookSeconds Seconds `json:"took_seconds" swaggertype:"number" minimum:"0" example:"0.25"`
	// ClockSkewSeconds is by how much the receiver's clock is ahead, if that is more than a
	// minute: it would refuse signatures.
	ClockSkewSeconds Seconds `json:"clock_skew_seconds,omitempty" swaggertype:"number" example:"3600"`
}

// DeliveryPage is a part of the deliveries of a webhook.
type DeliveryPage struct {
	// Deliveries that are pending, and on the first page the last ones that were attempted.
	Deliveries []Delivery `json:"deliveries"`
	// NextCursor selects the next page; left out on the last one.
	NextCursor string `json:"next_cursor,omitempty" example:"YWZ0ZXI6YWNtZQ"`
	// FailingSince is since when every attempt has failed. Only on the first page.
	FailingSince Instant `json:"failing_since,omitempty" swaggertype:"string" format:"date-time" example:"2026-01-02T15:04:05.000Z"`
	// Disabled is why the server sends nothing: the receiver answered 410, or failed for five days.
	// Only on the first page.
	Disabled string `json:"disabled,omitempty" enums:"gone,failing" example:"failing"`
}

// TestDelivery is a requested test.
type TestDelivery struct {
	// Delivery is its id.
	Delivery string `json:"delivery" example:"test-ufvkvjxrpzy5mzsxbdzqg2qrqa"`
}
