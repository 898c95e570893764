package api

// EntryFields are what held and waiting entries have in common.
type EntryFields struct {
	// ID of the entry, the same for every request with its Idempotency-Key.
	ID string `json:"id" example:"5mdrk1w5pvy0wg1dcjt2b2gthr"`
	// Name of the lock.
	Name string `json:"name" example:"orders:42"`
	// Mode in which the entry shares the lock.
	Mode string `json:"mode" enums:"exclusive,shared,semaphore"`
	// Limit of a semaphore.
	Limit int `json:"limit,omitempty" minimum:"1" maximum:"1000000"`
	// Permits of a semaphore that the entry takes.
	Permits int `json:"permits,omitempty" minimum:"1" maximum:"1000000"`
	GrantFields
}

// GrantFields are what entries and sets have in common.
type GrantFields struct {
	// Holder is the worker of the entry.
	Holder string `json:"holder" example:"worker-7"`
	// Token of the entry; send it as `Lock-Token`.
	Token string `json:"token"`
	// TTLSeconds is how long the lease lasts each time.
	TTLSeconds Seconds `json:"ttl_seconds" swaggertype:"number" example:"30"`
	// ExpiresAt is until when the lease is valid without a renewal.
	ExpiresAt Instant `json:"expires_at" swaggertype:"string" format:"date-time" example:"2026-01-02T15:04:35.000Z"`
	// EnqueuedAt is when it joined the queue, or all its queues.
	EnqueuedAt Instant `json:"enqueued_at" swaggertype:"string" format:"date-time" example:"2026-01-02T15:04:05.000Z"`
	// Metadata as they were sent.
	Metadata map[string]string `json:"metadata,omitempty" example:"job:nightly"`
}

// Entry is one acquisition of a lock; `state` selects its form.
type Entry struct {
	Held    *HeldEntry
	Waiting *WaitingEntry
}

// MarshalJSON writes the one that there is.
func (e *Entry) MarshalJSON() ([]byte, error) {
	if e.Held != nil {
		return plainJSON(e.Held)
	}
	return plainJSON(e.Waiting)
}

// UnmarshalJSON reads the one that the state names.
func (e *Entry) UnmarshalJSON(text []byte) (err error) {
	e.Held, e.Waiting, err = readState[HeldEntry, WaitingEntry](text)
	return err
}

// HeldEntry is an acquisition that holds its lock.
type HeldEntry struct {
	EntryFields
	// State of the entry.
	State string `json:"state" enums:"held" example:"held"`
	// Fence grows with each grant of the lock; it is below 2^53.
	Fence uint64 `json:"fence" format:"int64" minimum:"1" maximum:"9007199254740991" example:"1042"`
	// WaitedSeconds is how long the grant took; 0 without an entry before it.
	WaitedSeconds Seconds `json:"waited_seconds" swaggertype:"number" minimum:"0" example:"0.25"`
	// ReleaseRequested is set while a waiter asks for the lock.
	ReleaseRequested *ReleaseRequested `json:"release_requested,omitempty"`
}

// ReleaseRequested is the request of waiters that the holders finish; it ends with the waiters.
type ReleaseRequested struct {
	// Since is when the first of them asked.
	Since Instant `json:"since" swaggertype:"string" format:"date-time" example:"2026-01-02T15:04:05.000Z"`
	// By is the worker that asked first.
	By string `json:"by" example:"worker-8"`
	// Waiting is how many ask.
	Waiting int `json:"waiting" minimum:"1" example:"2"`
	// WishedAt is the earliest instant by which a waiter wants the lock. Nothing happens when it has
	// passed.
	WishedAt Instant `json:"wished_at" swaggertype:"string" format:"date-time" example:"2026-01-02T15:04:35.000Z"`
}

// WaitingEntry is an acquisition that stands in its lock's queue.
type WaitingEntry struct {
	EntryFields
	// State of the entry.
	State string `json:"state" enums:"waiting" example:"waiting"`
	// Position in the queue, 1 is next.
	Position int `json:"position" minimum:"1" example:"3"`
	// WaitUntil is when the entry leaves the queue unless it is granted before.
	WaitUntil *Instant `json:"wait_until,omitempty" swaggertype:"string" format:"date-time" example:"2026-01-02T15:05:05.000Z"`
}
