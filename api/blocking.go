package api

// AdminBlocking has a tree for each holder that blocks waiters.
type AdminBlocking struct {
	Seen
	// Trees, those of holders that hang first, then those that are blamed for most.
	Trees []BlockingTree `json:"trees"`
	// Heads is how many trees there are in all.
	Heads int `json:"heads" minimum:"0" example:"2"`
	// Waiting is how many entries wait in all of them. One that waits for several locks, and is not
	// among the first 1000 at any, counts at each.
	Waiting int `json:"waiting" minimum:"0" example:"9"`
	// BlamedSeconds is the waiting time that the heads caused, added up over the waiters that the
	// server examined.
	BlamedSeconds Seconds `json:"blamed_seconds" swaggertype:"number" minimum:"0" example:"94.5"`
	// Truncated is set if the server examined or listed only a part. Entries that it did not examine
	// count as waiting, not in `blamed_seconds`.
	Truncated bool `json:"truncated,omitempty"`
}

// BlockingTree is a worker that blocks waiters and waits for nothing itself.
type BlockingTree struct {
	// Tenant of the locks.
	Tenant string `json:"tenant" example:"acme"`
	// Holder is the worker that blocks the others.
	Holder string `json:"holder" example:"worker-7"`
	// Named is set if the tree has all entries of a named holder; otherwise it has one entry.
	Named bool `json:"named"`
	// Cycle is set if it waits for a worker that waits for it. The server is about to refuse one of
	// them.
	Cycle bool `json:"cycle,omitempty"`
	// Heads are its entries that block others.
	Heads []BlockingHead `json:"heads"`
	// Waits are the waiters, each after the entry that blocks it: up to 200, and up to 16 levels
	// deep.
	Waits []BlockedWait `json:"waits"`
	// Waiting is how many entries wait in the whole tree.
	Waiting int `json:"waiting" minimum:"0" example:"5"`
	// Depth of the whole tree.
	Depth int `json:"depth" minimum:"0" example:"2"`
	// BlamedSeconds is the waiting time that it caused, added up over its waiters.
	BlamedSeconds Seconds `json:"blamed_seconds" swaggertype:"number" minimum:"0" example:"61.2"`
}

// BlockingHead is an entry that blocks others at a lock.
type BlockingHead struct {
	// Name of the lock.
	Name string `json:"name" example:"orders:42"`
	// ID of the entry, or of the closure.
	ID string `json:"id" example:"5mdrk1w5pvy0wg1dcjt2b2gthr"`
	// Fence of the entry, or the number with which the closure began.
	Fence uint64 `json:"fence" format:"int64" minimum:"1" maximum:"9007199254740991" example:"1042"`
	// State is reserved if the entry is a set that waits for another lock, and closed if the head is
	// a closure.
	State string `json:"state" enums:"held,reserved"`
	// Since is when it began, as this replica saw it.
	Since Instant `json:"since" swaggertype:"string" format:"date-time" example:"2026-01-02T15:04:05.000Z"`
	// Sharing is how many hold or keep the lock with it, itself included.
	Sharing int `json:"sharing" minimum:"1" example:"1"`
	// Waiting is how many entries wait behind it.
	Waiting int `json:"waiting" minimum:"0" example:"3"`
	// Set is how many locks the entry has, if it is a set.
	Set int `json:"set,omitempty" minimum:"1" maximum:"32" example:"2"`
	// Hangs is set if it holds the lock for over 5 s and over twice the usual hold time. If that is
	// unknown, over half of the longest wait.
	Hangs bool `json:"hangs,omitempty"`
	// UsualHoldSeconds is the p99 of the hold times; left out before ten acquisitions.
	UsualHoldSeconds *Seconds `json:"usual_hold_seconds,omitempty" swaggertype:"number" minimum:"0" example:"0.3"`
}

// BlockedWait is an entry that waits.
type BlockedWait struct {
	// ID of the entry.
	ID string `json:"id" example:"06h0b197z85a5xjnyk3zj8c3a0"`
	// Holder is the worker that waits.
	Holder string `json:"holder" example:"worker-8"`
	// Name of the lock for which it waits.
	Name string `json:"name" example:"orders:42"`
	// Position in the queue, 1 is next.
	Position int `json:"position" minimum:"1" example:"1"`
	// Number of the entry in its queues: the fence that its grant will have.
	Number uint64 `json:"number" format:"int64" minimum:"1" maximum:"9007199254740991" example:"1043"`
	// Depth in the tree. At 1 it waits for an entry of the head.
	Depth int `json:"depth" minimum:"1" example:"1"`
	// Behind is the id of the entry that blocks it.
	Behind string `json:"behind" example:"5mdrk1w5pvy0wg1dcjt2b2gthr"`
	// Under is the id of the waiting entry that blocks `behind`; left out at depth 1.
	Under string `json:"under,omitempty" example:"06dqz3n6hfae5k1w5pvy0wg1dc"`
	// EnqueuedAt is when the entry joined the queue.
	EnqueuedAt Instant `json:"enqueued_at" swaggertype:"string" format:"date-time" example:"2026-01-02T15:04:05.000Z"`
	// BlamedSince is since when the head of the tree blocks it.
	BlamedSince Instant `json:"blamed_since" swaggertype:"string" format:"date-time" example:"2026-01-02T15:04:07.000Z"`
}

// AdminHoldings are what a holder holds and waits for.
type AdminHoldings struct {
	Seen
	// Tenant of the entries.
	Tenant string `json:"tenant" example:"acme"`
	// Holder is the worker of the entry.
	Holder string `json:"holder" example:"worker-7"`
	// Entries in the order in which they joined: first of requests that name the holder, then of
	// requests for which it is the token's subject.
	Entries []AdminEntry `json:"entries"`
	// Holding is how many entries hold, of the first 2000 and whether they are listed or not.
	Holding int `json:"holding" minimum:"0" example:"2"`
	// Waiting is how many of them wait.
	Waiting int `json:"waiting" minimum:"0" example:"1"`
	// Truncated is set if the holder has further entries.
	Truncated bool `json:"truncated,omitempty"`
}

// AdminEntry is an entry of a holder.
type AdminEntry struct {
	// ID of the entry.
	ID string `json:"id" example:"5mdrk1w5pvy0wg1dcjt2b2gthr"`
	// Fence of the entry; of one that waits its number, which is the fence that it would hold with.
	Fence uint64 `json:"fence" format:"int64" minimum:"1" maximum:"9007199254740991" example:"1042"`
	// State of the entry.
	State string `json:"state" enums:"held,waiting"`
	// Since when it holds, as this replica saw it.
	Since *Instant `json:"since,omitempty" swaggertype:"string" format:"date-time" example:"2026-01-02T15:04:06.000Z"`
	// EnqueuedAt is when the entry joined its queues.
	EnqueuedAt Instant `json:"enqueued_at" swaggertype:"string" format:"date-time" example:"2026-01-02T15:04:05.000Z"`
	// TTLSeconds is how long its lease lasts each time.
	TTLSeconds Seconds `json:"ttl_seconds" swaggertype:"number" example:"30"`
	// Set is how many locks the entry asks for, if it is a set.
	Set int `json:"set,omitempty" minimum:"1" maximum:"32" example:"2"`
	// Any is how many of these locks suffice; left out where all are needed.
	Any int `json:"any,omitempty" minimum:"1" maximum:"32"`
	// Async is set if the entry waits without a connection.
	Async bool `json:"async,omitempty"`
	// Named is set if the request named the holder.
	Named bool `json:"named"`
	// Locks of the entry that the bearer token may see.
	Locks []AdminEntryLock `json:"locks"`
}

// AdminEntryLock is one lock of an entry.
type AdminEntryLock struct {
	// Name of the lock.
	Name string `json:"name" example:"orders:42"`
	// Mode of the request.
	Mode string `json:"mode" enums:"exclusive,shared,semaphore"`
	// State is reserved if the set keeps this lock while it waits for another, or if a closed lock
	// has no entry before it.
	State string `json:"state" enums:"held,reserved,waiting"`
	// Position in the queue, 1 is next; left out if it does not wait there.
	Position int `json:"position,omitempty" minimum:"1" example:"1"`
}
