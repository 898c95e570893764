package api

// AcquireBody is what a client may say about the acquire that it asks for. Every
// field is optional.
type AcquireBody struct {
	// Mode of the lock: alone, readers together, or up to limit at once.
	Mode *string `json:"mode,omitempty" enums:"exclusive,shared,semaphore" default:"exclusive"`
	// Limit of a semaphore: how many may hold at once. All who use the lock at a
	// time say the same.
	Limit *Whole `json:"limit,omitempty" swaggertype:"integer" minimum:"1" maximum:"1000000"`
	Terms
}

// LockSetBody is what a client says about the set of locks that it asks for.
type LockSetBody struct {
	// Locks that are taken together, in any order, each once.
	Locks []SetClaim `json:"locks"`
	Terms
}

// SetClaim is one lock of a set that is asked for.
type SetClaim struct {
	// Name of the lock.
	Name string `json:"name" example:"orders:42"`
	// Mode of the lock: alone, readers together, or up to limit at once.
	Mode *string `json:"mode,omitempty" enums:"exclusive,shared,semaphore" default:"exclusive"`
	// Limit of a semaphore: how many may hold at once. All who use the lock at a
	// time say the same.
	Limit *Whole `json:"limit,omitempty" swaggertype:"integer" minimum:"1" maximum:"1000000"`
}

// Terms are what every acquire can say.
type Terms struct {
	// TTLSeconds is the lease, up to the configured maximum, 3600 by default. Like all
	// durations it is rounded up to the millisecond.
	TTLSeconds *Decimal `json:"ttl_seconds,omitempty" swaggertype:"number" example:"30" default:"30" minimum:"2" maximum:"604800"`
	// WaitSeconds is how long to stay in the queue at most; 0 is not to queue. Where the request is
	// cut off and its idempotency key can go on with it, the entry stays for up to its TTL, beyond
	// this too.
	WaitSeconds *Decimal `json:"wait_seconds,omitempty" swaggertype:"number" example:"20" default:"0" minimum:"0" maximum:"86400"`
	// Async answers at once, with 202 if others are in front; the place is kept until
	// wait_seconds are over, and from the grant on the lease has to be renewed. It takes
	// a ttl_seconds of at least 15.
	Async *bool `json:"async,omitempty" default:"false"`
	// CallbackURL is where the grant of an async acquire is told, or its end if it ends
	// without one. What is sent there is signed with the tenant's callback secret. A grant
	// that is answered at once, with 201, is told there as well.
	CallbackURL *string `json:"callback_url,omitempty" format:"uri" minLength:"1" maxLength:"2048" example:"https://example.org/granted"`
	// RequestRelease asks those who hold to finish, if the acquire has to wait. They are
	// told; nothing is taken away from them.
	RequestRelease *ReleaseWish `json:"request_release,omitempty"`
	// Holder is which worker this is, for people to see; the bearer token's sub by
	// default. Deadlocks and the order of locks are looked for among workers that are
	// named here.
	Holder *string `json:"holder,omitempty" example:"worker-7" minLength:"1" maxLength:"200"`
	// Metadata are up to 16 pairs of strings, 2 KiB in all.
	Metadata map[string]*string `json:"metadata,omitempty" swaggertype:"object,string" example:"job:nightly"`
}

// ReleaseWish is what a waiter asks of the holders.
type ReleaseWish struct {
	// WithinSeconds is within what time it hopes that they finish. It is a wish: nothing
	// happens when it has passed.
	WithinSeconds *Decimal `json:"within_seconds,omitempty" swaggertype:"number" example:"30" default:"0" minimum:"0" maximum:"86400"`
}

// StaleWrite is a write that a resource rejected, because it had seen a greater fence.
type StaleWrite struct {
	// FencePresented came with the write.
	FencePresented Fence `json:"fence_presented" swaggertype:"integer" format:"int64" minimum:"1" maximum:"9007199254740991" example:"1042"`
	// FenceKnown is the greatest that the resource has seen of the lock.
	FenceKnown Fence `json:"fence_known" swaggertype:"integer" format:"int64" minimum:"1" maximum:"9007199254740991" example:"1043"`
	// Resource that refused it, as people know it.
	Resource string `json:"resource" minLength:"1" maxLength:"200" example:"db-7/orders"`
}
