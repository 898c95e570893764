package api

// Event is something that happened to an entry.
type Event struct {
	// ID of the event, the same in streams and as `webhook-id`.
	ID string `json:"id" example:"1042-0"`
	// Type of the event; only a test of a webhook has `webhook.test`.
	Type string `json:"type" enums:"lock.enqueued,lock.acquired,lock.released,lock.expired,lock.revoked,lock.wait_timeout,lock.deadlock_refused,lock.superseded,lock.release_requested,events.missed,webhook.test" example:"lock.acquired"`
	// Timestamp is when the sending server saw the event; another server's may differ slightly.
	Timestamp Instant `json:"timestamp" swaggertype:"string" format:"date-time" example:"2026-01-02T15:04:05.000Z"`
	// Data of the event.
	Data EventData `json:"data"`
}

// WebhookTest is the type of what a receiver gets when a client asks for a test: its
// data has `number` and `tenant` only.
const WebhookTest = "webhook.test"

// EventsMissed is the type of the event that says that others are missing.
const EventsMissed = "events.missed"

// Why a subscription is not told something: the `reason` of an `events.missed` that it is sent.
const (
	MissedUnknown = "unknown"  // no server knows any more what happened
	MissedForRoom = "too_many" // more than is kept for it waited already
	// it was tried for as long as the schedule says, or waited for too long
	MissedUndelivered = "undelivered"
	MissedUnreadable  = "unreadable" // what the store has kept of it cannot be read
	MissedForSeveral  = "several"    // more than one of these
)

// EventData is what an event is about. An `events.missed` has `number`, `after` and `before` only,
// and to a webhook `reason`.
type EventData struct {
	// Number of the write that caused the event; of `events.missed`, that of `before`.
	Number uint64 `json:"number" format:"int64" minimum:"0" maximum:"9007199254740991" example:"1042"`
	// Tenant of the lock.
	Tenant string `json:"tenant,omitempty" example:"acme"`
	// Lock that the entry asks for, unless it is a set.
	Lock string `json:"lock,omitempty" example:"orders:42"`
	// Locks of a set that the reader may use and selected, in byte order.
	Locks []string `json:"locks,omitempty" example:"orders:42"`
	// Entry to which it happened.
	Entry *EventEntry `json:"entry,omitempty"`
	// Reason for which the entry ended, or for which a webhook has a gap.
	Reason string `json:"reason,omitempty" example:"released"`
	// Revoked is the operator and the reason. With `lock.revoked`.
	Revoked *EventRevoked `json:"revoked,omitempty"`
	// Held is whether the entry held until its end, rather than waited.
	Held *bool `json:"held,omitempty" example:"true"`
	// WaitedSeconds is how long a grant took, by the clocks of the servers.
	WaitedSeconds *Seconds `json:"waited_seconds,omitempty" swaggertype:"number" minimum:"0" example:"0.25"`
	// HeldSeconds is how long the entry held, as the sending server saw it.
	HeldSeconds *Seconds `json:"held_seconds,omitempty" swaggertype:"number" minimum:"0" example:"12.5"`
	// ReleaseRequested is the request of a `lock.release_requested`.
	ReleaseRequested *EventAsk `json:"release_requested,omitempty"`
	// After is the id of the last event before the gap.
	After string `json:"after,omitempty" example:"1042-1"`
	// Before is the id after which the server sends everything again.
	Before string `json:"before,omitempty" example:"1050-0"`
}

// EventAsk is the request of a waiter that the holders finish.
type EventAsk struct {
	// Since is when it asked.
	Since Instant `json:"since" swaggertype:"string" format:"date-time" example:"2026-01-02T15:04:05.000Z"`
	// WithinSeconds is the time within which the waiter wants the lock. Nothing happens when it has
	// passed.
	WithinSeconds Seconds `json:"within_seconds" swaggertype:"number" minimum:"0" example:"30"`
	// WishedAt is the instant by which the waiter wants the lock.
	WishedAt Instant `json:"wished_at" swaggertype:"string" format:"date-time" example:"2026-01-02T15:04:35.000Z"`
}

// EventRevoked is the operator that ended an entry, and the reason.
type EventRevoked struct {
	// By is the subject of the operator's token.
	By string `json:"by" example:"ops@example.org"`
	// Reason that the operator gave.
	Reason string `json:"reason" example:"its node was lost in the fire"`
}

// EventEntry is what each client that may use the locks of an entry may know of it.
type EventEntry struct {
	// ID of the entry.
	ID string `json:"id" example:"5mdrk1w5pvy0wg1dcjt2b2gthr"`
	// Mode in which the entry shares the lock; a set has one for each in locks.
	Mode string `json:"mode,omitempty" enums:"exclusive,shared,semaphore"`
	// Limit of a semaphore.
	Limit int `json:"limit,omitempty" minimum:"1" maximum:"1000000"`
	// Permits of a semaphore that the entry takes.
	Permits int `json:"permits,omitempty" minimum:"1" maximum:"1000000"`
	// Locks of a set that the reader may use and selected, in byte order.
	Locks []SetLock `json:"locks,omitempty"`
	// Any is how many of the set's locks suffice; left out where all are needed.
	Any int `json:"any,omitempty" minimum:"1" maximum:"32"`
	// Holder is the worker of the entry.
	Holder string `json:"holder" example:"worker-7"`
	// Fence of the grant; left out as long as there is none.
	Fence uint64 `json:"fence,omitempty" format:"int64" minimum:"1" maximum:"9007199254740991" example:"1042"`
	// TTLSeconds is how long the lease lasts each time.
	TTLSeconds Seconds `json:"ttl_seconds" swaggertype:"number" example:"30"`
	// ExpiresAt is when the lease ends without a renewal. Only in the entry's own callback.
	ExpiresAt Instant `json:"expires_at,omitempty" swaggertype:"string" format:"date-time" example:"2026-01-02T15:04:35.000Z"`
	// Token of the entry, for `Lock-Token`. Only in the entry's own callback, with the grant.
	Token string `json:"token,omitempty"`
	// EnqueuedAt is when it joined the queue, or all its queues.
	EnqueuedAt Instant `json:"enqueued_at" swaggertype:"string" format:"date-time" example:"2026-01-02T15:04:05.000Z"`
	// Metadata as they were sent.
	Metadata map[string]string `json:"metadata,omitempty" example:"job:nightly"`
}
