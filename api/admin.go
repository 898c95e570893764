package api

// Seen is what every answer to operators has besides.
type Seen struct {
	// Revision up to which the answer is complete.
	Revision uint64 `json:"revision" format:"int64" minimum:"0" example:"1050"`
	// ServerNow is the server's clock when it made the answer. Instants in the answer are by this
	// clock.
	ServerNow Instant `json:"server_now" swaggertype:"string" format:"date-time" example:"2026-01-02T15:04:05.000Z"`
	// Replica that answers. Its counts and measurements are its own, since it started.
	Replica string `json:"replica" example:"5MDRK1W5PVY0WG1DCJT2B2GTHR"`
	// StoreLostSince is since when this replica has no current view of the store; the answer is as of
	// then. Left out if the view is current.
	StoreLostSince *Instant `json:"store_lost_since,omitempty" swaggertype:"string" format:"date-time" example:"2026-01-02T15:04:00.000Z"`
}

// AdminHolder is an entry that holds a lock.
type AdminHolder struct {
	// ID of the entry.
	ID string `json:"id" example:"5mdrk1w5pvy0wg1dcjt2b2gthr"`
	// Holder is the worker of the entry.
	Holder string `json:"holder" example:"worker-7"`
	// Since when it holds, as this replica saw it.
	Since Instant `json:"since" swaggertype:"string" format:"date-time" example:"2026-01-02T15:04:05.000Z"`
	// ExpiresAt is when the lease ends without a renewal, where the replica knows it. In lists it can
	// be some seconds old.
	ExpiresAt *Instant `json:"expires_at,omitempty" swaggertype:"string" format:"date-time" example:"2026-01-02T15:04:35.000Z"`
	// TTLSeconds is how long the lease lasts each time.
	TTLSeconds Seconds `json:"ttl_seconds" swaggertype:"number" example:"30"`
	// Fence of the grant.
	Fence uint64 `json:"fence" format:"int64" minimum:"1" maximum:"9007199254740991" example:"1042"`
	// Mode in which the lock is held.
	Mode string `json:"mode" enums:"exclusive,shared,semaphore"`
	// Limit of a semaphore.
	Limit int `json:"limit,omitempty" minimum:"1" maximum:"1000000"`
	// Permits of a semaphore that the entry takes.
	Permits int `json:"permits,omitempty" minimum:"1" maximum:"1000000"`
	// Set is how many locks the entry has, if it is a set.
	Set int `json:"set,omitempty" minimum:"1" maximum:"32" example:"2"`
	// Metadata as they were sent; left out of lists.
	Metadata map[string]string `json:"metadata,omitempty" example:"job:nightly"`
}

// AdminWaiter is an entry that waits for a lock.
type AdminWaiter struct {
	// ID of the entry.
	ID string `json:"id" example:"5mdrk1w5pvy0wg1dcjt2b2gthr"`
	// Position in the queue, 1 is next.
	Position int `json:"position" minimum:"1" example:"1"`
	// Holder is the worker of the entry.
	Holder string `json:"holder" example:"worker-8"`
	// Number of the entry in its queues: the fence that its grant will have.
	Number uint64 `json:"number" format:"int64" minimum:"1" maximum:"9007199254740991" example:"1043"`
	// EnqueuedAt is when the entry joined the queue.
	EnqueuedAt Instant `json:"enqueued_at" swaggertype:"string" format:"date-time" example:"2026-01-02T15:04:05.000Z"`
	// WaitUntil is when the entry leaves the queue without a grant.
	WaitUntil *Instant `json:"wait_until,omitempty" swaggertype:"string" format:"date-time" example:"2026-01-02T15:05:05.000Z"`
	// TTLSeconds is how long its lease lasts each time.
	TTLSeconds Seconds `json:"ttl_seconds" swaggertype:"number" example:"30"`
	// Mode that is waited for.
	Mode string `json:"mode" enums:"exclusive,shared,semaphore"`
	// Limit of a semaphore.
	Limit int `json:"limit,omitempty" minimum:"1" maximum:"1000000"`
	// Permits of a semaphore that the entry takes.
	Permits int `json:"permits,omitempty" minimum:"1" maximum:"1000000"`
	// PermitsBefore is how many permits the entries before it take. Left out in other modes, and for a
	// set that waits for another of its locks.
	PermitsBefore int `json:"permits_before,omitempty" minimum:"1" example:"7"`
	// Set is how many locks the entry asks for, if it is a set.
	Set int `json:"set,omitempty" minimum:"1" maximum:"32" example:"2"`
	// Any is how many of these locks suffice; left out where all are needed.
	Any int `json:"any,omitempty" minimum:"1" maximum:"32"`
	// Async is set if the entry waits without a connection.
	Async bool `json:"async,omitempty"`
	// Metadata as they were sent.
	Metadata map[string]string `json:"metadata,omitempty" example:"job:nightly"`
}

// AdminLock is a lock in use, in a list.
type AdminLock struct {
	// Tenant of the lock.
	Tenant string `json:"tenant" example:"acme"`
	// Name of the lock.
	Name string `json:"name" example:"orders:42"`
	// State is contended if an entry waits for the lock.
	State string `json:"state" enums:"held,contended"`
	// Holders, the longest holding first, at most 10 of them.
	Holders []AdminHolder `json:"holders"`
	// Holding is how many hold in all.
	Holding int `json:"holding" minimum:"0" example:"1"`
	// Waiting is how many wait.
	Waiting int `json:"waiting" minimum:"0" example:"3"`
	// OldestSince is since when the oldest waiter waits; left out without waiters.
	OldestSince *Instant `json:"oldest_since,omitempty" swaggertype:"string" format:"date-time" example:"2026-01-02T15:04:05.000Z"`
	// Utilization is for which part of the last five minutes the lock was held, about, as this replica
	// saw it.
	Utilization Seconds `json:"utilization" swaggertype:"number" minimum:"0" maximum:"1" example:"0.93"`
	// Fence is the newest fence of the lock that this replica knows.
	Fence uint64 `json:"fence,omitempty" format:"int64" minimum:"1" maximum:"9007199254740991" example:"1042"`
	// Closed is set while an operator keeps new entries out of the lock.
	Closed *LockClosing `json:"closed,omitempty"`
}

// AdminLockPage is a page of locks in use.
type AdminLockPage struct {
	Seen
	// Locks of the page.
	Locks []AdminLock `json:"locks"`
	// NextCursor selects the next page; left out on the last one.
	NextCursor string `json:"next_cursor,omitempty" example:"b2xkZXN0X3dhaXR8MXxhY21lfG9yZGVyczo0Mg"`
	// Matching is how many locks there are on all pages.
	Matching int `json:"matching" minimum:"0" example:"12"`
}

// DistributionStep is how many of the latest samples were longer than the step before and at most
// as long as this one.
type DistributionStep struct {
	// UpToSeconds is the longest sample of this step.
	UpToSeconds Seconds `json:"up_to_seconds" swaggertype:"number" example:"0.25"`
	// Count of the samples.
	Count int `json:"count" minimum:"1" example:"7"`
}

// AdminFigures are figures of a lock, as the answering replica saw it since it started.
type AdminFigures struct {
	Figures
	// Waits are how long the latest grants took, up to 128 of them; steps without any are left out.
	Waits []DistributionStep `json:"waits"`
	// Holds are how long the latest holds took, up to 128 of them; empty steps are left out.
	Holds []DistributionStep `json:"holds"`
	// RecommendedTTLReason explains `recommended_ttl_seconds`, or why there is none yet.
	RecommendedTTLReason string `json:"recommended_ttl_reason" example:"99 of 100 holds ended within 4.5 s; twice that leaves room for slow days"`
}

// AdminLockView is one lock with its holders and waiters.
type AdminLockView struct {
	Seen
	// Tenant of the lock.
	Tenant string `json:"tenant" example:"acme"`
	// Name of the lock.
	Name string `json:"name" example:"orders:42"`
	// Holders, the longest holding first, at most 100 of them.
	Holders []AdminHolder `json:"holders"`
	// Holding is how many hold in all.
	Holding int `json:"holding" minimum:"0" example:"1"`
	// Waiters in order, at most 1000 of them.
	Waiters []AdminWaiter `json:"waiters"`
	// Waiting is how many wait in all.
	Waiting int `json:"waiting" minimum:"0" example:"3"`
	Permits
	// Fence is the newest fence of the lock that this replica knows.
	Fence uint64 `json:"fence,omitempty" format:"int64" minimum:"1" maximum:"9007199254740991" example:"1042"`
	// Closed is set while an operator keeps new entries out of the lock.
	Closed *LockClosing `json:"closed,omitempty"`
	// ReleaseRequested is set while waiters ask the holders to finish.
	ReleaseRequested *ReleaseRequested `json:"release_requested,omitempty"`
	// Figures of this replica.
	Figures AdminFigures `json:"figures"`
	// StaleWrites are reports about the lock, newest first, among the 100 that the tenant keeps.
	StaleWrites []ReportedStaleWrite `json:"stale_writes,omitempty"`
}

// ReportedStaleWrite is a report of a resource that rejected a write.
type ReportedStaleWrite struct {
	// At is when the server took the report.
	At Instant `json:"at" swaggertype:"string" format:"date-time" example:"2026-01-02T15:04:05.000Z"`
	// FencePresented is the fence of the write.
	FencePresented uint64 `json:"fence_presented" format:"int64" minimum:"1" maximum:"9007199254740991" example:"1041"`
	// FenceKnown is the greatest that the resource had seen.
	FenceKnown uint64 `json:"fence_known" format:"int64" minimum:"1" maximum:"9007199254740991" example:"1042"`
	// Resource that rejected it.
	Resource string `json:"resource" example:"orders-db"`
	// Holder that presented the fence; left out if the replica no longer knew it.
	Holder string `json:"holder,omitempty" example:"worker-7"`
	// Ended is how its hold ended: released, expired or revoked. With holder.
	Ended string `json:"ended,omitempty" example:"expired"`
	// LateSeconds is the time from the end of the hold to the report. With holder.
	LateSeconds *Seconds `json:"late_seconds,omitempty" swaggertype:"number" minimum:"0" example:"4.2"`
	// EnoughTTLSeconds is the TTL with which the lease would have lasted until the report. Only if
	// the lease expired.
	EnoughTTLSeconds *Seconds `json:"enough_ttl_seconds,omitempty" swaggertype:"number" minimum:"0" example:"35"`
}

// AdminBlocker is a lock with waiters, and its oldest holder.
type AdminBlocker struct {
	// Tenant of the lock.
	Tenant string `json:"tenant" example:"acme"`
	// Name of the lock.
	Name string `json:"name" example:"orders:42"`
	// Holder that has held it longest; left out without holders.
	Holder *AdminHolder `json:"holder,omitempty"`
	// Holding is how many hold it.
	Holding int `json:"holding" minimum:"0" example:"1"`
	// Waiting is how many wait.
	Waiting int `json:"waiting" minimum:"1" example:"3"`
	// OldestSince is since when the oldest waiter waits.
	OldestSince Instant `json:"oldest_since" swaggertype:"string" format:"date-time" example:"2026-01-02T15:04:05.000Z"`
	// Hangs is set if the holder hangs, as in `/admin/blocking`.
	Hangs bool `json:"hangs,omitempty"`
	// UsualHoldSeconds is the p99 of the hold times; left out before ten acquisitions.
	UsualHoldSeconds *Seconds `json:"usual_hold_seconds,omitempty" swaggertype:"number" minimum:"0" example:"0.3"`
	// Closed is set while an operator keeps new entries out of the lock.
	Closed *LockClosing `json:"closed,omitempty"`
}

// AdminOldest is the oldest waiter.
type AdminOldest struct {
	// Tenant of the lock.
	Tenant string `json:"tenant" example:"acme"`
	// Name of the lock.
	Name string `json:"name" example:"orders:42"`
	// Holder is the worker that waits.
	Holder string `json:"holder" example:"worker-8"`
	// Since when it waits.
	Since Instant `json:"since" swaggertype:"string" format:"date-time" example:"2026-01-02T15:04:05.000Z"`
}

// AdminReplica is one server.
type AdminReplica struct {
	// Replica is its id.
	Replica string `json:"replica" example:"5MDRK1W5PVY0WG1DCJT2B2GTHR"`
	// Host is the name of its machine or pod; left out if it is unknown.
	Host string `json:"host,omitempty" maxLength:"200" example:"fencepost-2"`
	// Version of the server.
	Version string `json:"version" example:"1.4.0"`
	// Started is when it started.
	Started Instant `json:"started" swaggertype:"string" format:"date-time" example:"2026-01-02T15:04:05.000Z"`
}

// AdminStore is the answering replica's view of the store.
type AdminStore struct {
	// Current is set if the replica has a current view of the store.
	Current bool `json:"current" example:"true"`
	// LostSeconds is the time since the view was current; left out if it is.
	LostSeconds *Seconds `json:"lost_seconds,omitempty" swaggertype:"number" minimum:"0" example:"2.5"`
	// Refusal is why the replica grants nothing at the moment.
	Refusal string `json:"refusal,omitempty" example:"the store is older than it was"`
}

// AdminOverview is all in one look. An entry of several locks counts at each of them.
type AdminOverview struct {
	Seen
	// Locks in use.
	Locks int `json:"locks" minimum:"0" example:"120"`
	// Held is how many locks are held.
	Held int `json:"held" minimum:"0" example:"118"`
	// Contended is how many locks others wait for.
	Contended int `json:"contended" minimum:"0" example:"4"`
	// Holding is how many hold.
	Holding int `json:"holding" minimum:"0" example:"119"`
	// Waiting is how many wait.
	Waiting int `json:"waiting" minimum:"0" example:"9"`
	// Oldest waiter; left out without waiters.
	Oldest *AdminOldest `json:"oldest,omitempty"`
	// Recent figures are of the last 15 minutes, or since this replica started. A token that is
	// limited to lock names does not see them.
	Recent *SeriesPoint `json:"recent,omitempty"`
	// Blockers are at most five locks: those whose holders hang, then those at which most wait.
	Blockers []AdminBlocker `json:"blockers"`
	// Replicas that serve the store, if this replica knows them. Operators of one tenant do not see
	// them.
	Replicas []AdminReplica `json:"replicas,omitempty"`
	// Store as this replica sees it.
	Store AdminStore `json:"store"`
}
