package api

// AcquireBody has the parameters of an acquire. Every field is optional.
type AcquireBody struct {
	// Mode of the lock: alone, readers together, or up to `limit` entries at once.
	Mode *string `json:"mode,omitempty" enums:"exclusive,shared,semaphore" default:"exclusive"`
	// Limit of a semaphore: how many permits there are. Each entry is judged by its own.
	Limit *Whole `json:"limit,omitempty" swaggertype:"integer" minimum:"1" maximum:"1000000"`
	// Permits of a semaphore that the entry takes, at most `limit`.
	Permits *Whole `json:"permits,omitempty" swaggertype:"integer" default:"1" minimum:"1" maximum:"1000000"`
	Terms
}

// LockSetBody has the parameters of an acquire of several locks.
type LockSetBody struct {
	// Locks to acquire together, in any order, each once.
	Locks []SetClaim `json:"locks"`
	// Any is how many of the locks suffice; without it all are needed. The set holds at the front of
	// so many queues, the first of `locks` preferred, and leaves the others.
	Any *Whole `json:"any,omitempty" swaggertype:"integer" minimum:"1" maximum:"32" example:"1"`
	Terms
}

// SetClaim is one lock of a requested set.
type SetClaim struct {
	// Name of the lock.
	Name string `json:"name" example:"orders:42"`
	// Mode of the lock: alone, readers together, or up to `limit` entries at once.
	Mode *string `json:"mode,omitempty" enums:"exclusive,shared,semaphore" default:"exclusive"`
	// Limit of a semaphore: how many permits there are. Each entry is judged by its own.
	Limit *Whole `json:"limit,omitempty" swaggertype:"integer" minimum:"1" maximum:"1000000"`
	// Permits of a semaphore that the entry takes, at most `limit`.
	Permits *Whole `json:"permits,omitempty" swaggertype:"integer" default:"1" minimum:"1" maximum:"1000000"`
}

// Terms are what every acquire can say.
type Terms struct {
	// TTLSeconds is the lease, up to the configured maximum (3600 by default). The server rounds
	// durations up to a millisecond.
	TTLSeconds *Decimal `json:"ttl_seconds,omitempty" swaggertype:"number" example:"30" default:"30" minimum:"2" maximum:"604800"`
	// WaitSeconds is the longest time in the queue; 0 does not queue. After a cut connection an entry
	// with a key stays for its TTL.
	WaitSeconds *Decimal `json:"wait_seconds,omitempty" swaggertype:"number" example:"20" default:"0" minimum:"0" maximum:"86400"`
	// Async returns 202 at once if the lock is in use. It needs a `ttl_seconds` of at least 15, and
	// renewals from the grant on.
	Async *bool `json:"async,omitempty" default:"false"`
	// OnlyNewest ends the wait with `superseded` when a later request with it joins the queue.
	OnlyNewest *bool `json:"only_newest,omitempty" default:"false"`
	// CallbackURL receives the grant of an async acquire, or its end without one. The tenant's
	// callback secret signs the message.
	CallbackURL *string `json:"callback_url,omitempty" format:"uri" minLength:"1" maxLength:"2048" example:"https://example.org/granted"`
	// RequestRelease asks the holders to finish if the acquire has to wait. The server notifies them,
	// and revokes nothing.
	RequestRelease *ReleaseWish `json:"request_release,omitempty"`
	// Holder names the worker; the default is the token's `sub`. Only named workers take part in the
	// detection of deadlocks.
	Holder *string `json:"holder,omitempty" example:"worker-7" minLength:"1" maxLength:"200"`
	// Metadata are up to 16 pairs of strings, 2 KiB in all.
	Metadata map[string]*string `json:"metadata,omitempty" swaggertype:"object,string" example:"job:nightly"`
}

// ReleaseWish is the request of a waiter that the holders finish.
type ReleaseWish struct {
	// WithinSeconds is the time within which the waiter wants the lock. Nothing happens when it has
	// passed.
	WithinSeconds *Decimal `json:"within_seconds,omitempty" swaggertype:"number" example:"30" default:"0" minimum:"0" maximum:"86400"`
}

// StaleWrite is a write that a resource rejected, because it had seen a greater fence.
type StaleWrite struct {
	// FencePresented is the fence of the write.
	FencePresented Fence `json:"fence_presented" swaggertype:"integer" format:"int64" minimum:"1" maximum:"9007199254740991" example:"1042"`
	// FenceKnown is the greatest that the resource has seen of the lock.
	FenceKnown Fence `json:"fence_known" swaggertype:"integer" format:"int64" minimum:"1" maximum:"9007199254740991" example:"1043"`
	// Resource that rejected the write, as people know it.
	Resource string `json:"resource" minLength:"1" maxLength:"200" example:"db-7/orders"`
}
