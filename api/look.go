package api

// Holder is an entry that holds a lock.
type Holder struct {
	// Holder is the worker of the entry.
	Holder string `json:"holder" example:"worker-7"`
	// Since when the lock is held.
	Since Instant `json:"since" swaggertype:"string" format:"date-time" example:"2026-01-02T15:04:05.000Z"`
	// ExpiresAt is when the lease ends unless it is renewed; left out where the
	// store was not asked.
	ExpiresAt *Instant `json:"expires_at,omitempty" swaggertype:"string" format:"date-time" example:"2026-01-02T15:04:35.000Z"`
	// Fence of the grant.
	Fence uint64 `json:"fence" format:"int64" minimum:"1" maximum:"9007199254740991" example:"1042"`
	// Mode in which the lock is held.
	Mode string `json:"mode" enums:"exclusive,shared,semaphore"`
	// Limit of a semaphore.
	Limit int `json:"limit,omitempty" minimum:"1" maximum:"1000000"`
	// Permits of a semaphore that the entry takes.
	Permits int `json:"permits,omitempty" minimum:"1" maximum:"1000000"`
	// Metadata as they were sent; left out of lists, and of the refusal of a set.
	Metadata map[string]string `json:"metadata,omitempty" example:"job:nightly"`
}

// Waiter is an entry that waits for a lock.
type Waiter struct {
	// Position in the queue, 1 is next.
	Position int `json:"position" minimum:"1" example:"1"`
	// Holder is the worker of the entry.
	Holder string `json:"holder" example:"worker-8"`
	// Mode that is waited for.
	Mode string `json:"mode" enums:"exclusive,shared,semaphore"`
	// Limit of a semaphore.
	Limit int `json:"limit,omitempty" minimum:"1" maximum:"1000000"`
	// Permits of a semaphore that the entry takes.
	Permits int `json:"permits,omitempty" minimum:"1" maximum:"1000000"`
	// PermitsBefore is how many permits the entries before it take. Left out in other modes, and for a
	// set that waits for another of its locks.
	PermitsBefore int `json:"permits_before,omitempty" minimum:"1" example:"7"`
	// EnqueuedAt is when the entry joined the queue.
	EnqueuedAt Instant `json:"enqueued_at" swaggertype:"string" format:"date-time" example:"2026-01-02T15:04:05.000Z"`
	// WaitedSeconds is how long it has waited.
	WaitedSeconds Seconds `json:"waited_seconds" swaggertype:"number" example:"1.5"`
	// Metadata as they were sent.
	Metadata map[string]string `json:"metadata,omitempty" example:"job:nightly"`
}

// Percentiles of the latest samples, in seconds.
type Percentiles struct {
	// P50 is the median.
	P50 Seconds `json:"p50" swaggertype:"number" example:"0.2"`
	// P90 is the value that 9 of 10 samples do not exceed.
	P90 Seconds `json:"p90" swaggertype:"number" example:"1.1"`
	// P99 is the value that 99 of 100 samples do not exceed.
	P99 Seconds `json:"p99" swaggertype:"number" example:"4.5"`
}

// Figures of a lock, as the answering replica saw it since it started.
type Figures struct {
	// Acquisitions counts the grants.
	Acquisitions uint64 `json:"acquisitions" format:"int64" minimum:"0" example:"1042"`
	// Expirations counts the leases that ended without a release.
	Expirations uint64 `json:"expirations" format:"int64" minimum:"0" example:"2"`
	// WaitSeconds is how long the grants took, the store included, also where no entry was in front;
	// left out before the first.
	WaitSeconds *Percentiles `json:"wait_seconds,omitempty"`
	// HoldSeconds is how long the lock was held; left out before the first end.
	HoldSeconds *Percentiles `json:"hold_seconds,omitempty"`
	// RecommendedTTLSeconds is twice the p99 of the hold times; left out before ten acquisitions.
	RecommendedTTLSeconds *Seconds `json:"recommended_ttl_seconds,omitempty" swaggertype:"number" example:"9"`
}

// Permits are how a semaphore in use is shared; left out for other locks.
type Permits struct {
	// PermitsHeld is how many permits are taken, by sets at the front too that wait for another lock.
	PermitsHeld int `json:"permits_held,omitempty" minimum:"1" example:"7"`
	// Limits of its entries, ascending, at most 10 of them; of a long queue those at both ends.
	Limits []int `json:"limits,omitempty" example:"10"`
	// LimitsDifferSince is when the first entry joined whose limit is not that of the oldest entry;
	// left out while all agree.
	LimitsDifferSince *Instant `json:"limits_differ_since,omitempty" swaggertype:"string" format:"date-time" example:"2026-01-02T15:04:05.000Z"`
}

// Lock is one lock with its holders and waiters.
type Lock struct {
	// Name of the lock.
	Name string `json:"name" example:"orders:42"`
	// Holders, the longest holding first, at most 100 of them.
	Holders []Holder `json:"holders"`
	// Waiters in order, at most 1000 of them.
	Waiters []Waiter `json:"waiters"`
	// Waiting is how many wait in all.
	Waiting int `json:"waiting" minimum:"0" example:"3"`
	// Fence is the newest fence of the lock that this replica knows.
	Fence uint64 `json:"fence,omitempty" format:"int64" minimum:"1" maximum:"9007199254740991" example:"1042"`
	Permits
	// Figures of this replica.
	Figures Figures `json:"figures"`
	// ReleaseRequested is set while waiters ask the holders to finish.
	ReleaseRequested *ReleaseRequested `json:"release_requested,omitempty"`
	// Closed is set while an operator keeps new entries out of the lock.
	Closed *LockClosing `json:"closed,omitempty"`
	// Revision up to which the answer is complete.
	Revision uint64 `json:"revision" format:"int64" minimum:"0" example:"1050"`
}

// LockSummary is a lock in a list.
type LockSummary struct {
	// Name of the lock.
	Name string `json:"name" example:"orders:42"`
	// State is contended if an entry waits for the lock.
	State string `json:"state" enums:"held,contended"`
	// Holders, the longest holding first, at most 100 of them, without their metadata.
	Holders []Holder `json:"holders"`
	// Waiting is how many wait.
	Waiting int `json:"waiting" minimum:"0" example:"3"`
	// Fence is the newest fence of the lock that this replica knows.
	Fence uint64 `json:"fence,omitempty" format:"int64" minimum:"1" maximum:"9007199254740991" example:"1042"`
}

// LockPage is a page of locks in byte order of their names.
type LockPage struct {
	// Locks of the page.
	Locks []LockSummary `json:"locks"`
	// NextCursor selects the next page; left out on the last one.
	NextCursor string `json:"next_cursor,omitempty" example:"YWZ0ZXI6b3JkZXJzOjQy"`
	// Revision up to which the answer is complete.
	Revision uint64 `json:"revision" format:"int64" minimum:"0" example:"1050"`
}

// Health is the state of the process.
type Health struct {
	// Status in a word.
	Status string `json:"status" enums:"ok,ready"`
	// Version of the server; only in the answer of /healthz.
	Version string `json:"version,omitempty" example:"v1.2.3"`
	// Commit that it was built from, if that is known; only in the answer of /healthz.
	Commit string `json:"commit,omitempty" example:"69f487926e26cce1b4ac3c6528a23ca8e6f69da8"`
}
