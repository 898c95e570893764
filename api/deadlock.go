package api

// CycleStep is one wait of a cycle; the last step waits for the holder of the first.
type CycleStep struct {
	// Holder is the worker that waits.
	Holder string `json:"holder" example:"worker-7"`
	// WaitsFor is the lock that it waits for; left out if the bearer token may not use
	// that lock.
	WaitsFor string `json:"waits_for,omitempty" example:"orders:42"`
	// InTheWay is the worker that it waits for.
	InTheWay string `json:"in_the_way" example:"worker-8"`
	// Holds is false if that worker only waits before the holder in its queue.
	Holds bool `json:"holds"`
}

// Learnt says whose knowledge an answer is.
type Learnt struct {
	// Replica that answers. It shows only what it saw itself.
	Replica string `json:"replica" example:"5MDRK1W5PVY0WG1DCJT2B2GTHR"`
	// Since is when the replica started.
	Since Instant `json:"since" swaggertype:"string" format:"date-time" example:"2026-01-02T15:04:05.000Z"`
	// StoreLostSince is since when this replica has no current view of the store; the answer is as of
	// then. Left out if the view is current.
	StoreLostSince *Instant `json:"store_lost_since,omitempty" swaggertype:"string" format:"date-time" example:"2026-01-02T15:04:00.000Z"`
}

// DeadlockPage lists deadlocks.
type DeadlockPage struct {
	// Deadlocks that were refused, the newest first.
	Deadlocks []RefusedDeadlock `json:"deadlocks"`
	Learnt
}

// RefusedDeadlock is a cycle of waits that one request would have closed, and that
// was refused for it.
type RefusedDeadlock struct {
	// Tenant in which it happened.
	Tenant string `json:"tenant" example:"acme"`
	// At is the time.
	At Instant `json:"at" swaggertype:"string" format:"date-time" example:"2026-01-02T15:04:05.000Z"`
	// Refused is the worker of the refused request.
	Refused string `json:"refused" example:"worker-7"`
	// Locks of the request, as far as the bearer token may use them.
	Locks []string `json:"locks" example:"orders:42"`
	// Cycle of waits; of a long one the first 32.
	Cycle []CycleStep `json:"cycle"`
	// Waits is how many waits the cycle has.
	Waits int `json:"waits" minimum:"1" example:"2"`
}

// LockOrderReport is in which orders workers take locks, as the answering replica has seen it since
// it started.
type LockOrderReport struct {
	// Contradictions, the newest first. Each can become a deadlock.
	Contradictions []OrderContradiction `json:"contradictions"`
	// Orders that were seen, the latest first.
	Orders []SeenOrder `json:"orders"`
	// Known is how many orders the replica keeps.
	Known int `json:"known" minimum:"0" example:"12"`
	// Forgotten is how many orders were evicted.
	Forgotten uint64 `json:"forgotten" format:"int64" minimum:"0" example:"0"`
	Learnt
}

// OrderContradiction is a cycle of orders: each leads to the class of locks where
// the next one starts, and the last to the first.
type OrderContradiction struct {
	// Tenant in which it happened.
	Tenant string `json:"tenant" example:"acme"`
	// FoundAt is when the cycle was closed.
	FoundAt Instant `json:"found_at" swaggertype:"string" format:"date-time" example:"2026-01-02T15:04:05.000Z"`
	// Sides of the contradiction.
	Sides []OrderSide `json:"sides"`
}

// OrderSide is one order of a contradiction, with an example.
type OrderSide struct {
	// From is the class of the lock that was held.
	From string `json:"from" example:"orders:*"`
	// To is the class of the lock that was taken then.
	To string `json:"to" example:"stock:*"`
	// Example of it.
	Example OrderExample `json:"example"`
}

// OrderExample is one time that a worker took a lock while it held another.
type OrderExample struct {
	// Holder is the worker.
	Holder string `json:"holder" example:"worker-7"`
	// Held is the lock that the worker held.
	Held string `json:"held" example:"orders:42"`
	// Taken is the lock that it acquired then.
	Taken string `json:"taken" example:"stock:7"`
	// At is the time.
	At Instant `json:"at" swaggertype:"string" format:"date-time" example:"2026-01-02T15:04:05.000Z"`
}

// SeenOrder is a pair of classes of locks: one was taken while a lock of
// the other was held.
type SeenOrder struct {
	// Tenant in which it happened.
	Tenant string `json:"tenant" example:"acme"`
	// From is the class of the lock that was held.
	From string `json:"from" example:"orders:*"`
	// To is the class of the lock that was taken then.
	To string `json:"to" example:"stock:*"`
	// Seen is how often.
	Seen uint64 `json:"seen" format:"int64" minimum:"1" example:"420"`
	// Examples of up to two workers.
	Examples []OrderExample `json:"examples"`
}
