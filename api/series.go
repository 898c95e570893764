package api

// AdminSeries is what happened recently, in steps.
type AdminSeries struct {
	Seen
	// Tenant that it is about; left out of what is about all.
	Tenant string `json:"tenant,omitempty" example:"acme"`
	// Since when the replica has counted, as far as it keeps that; left out before the first event.
	Since *Instant `json:"since,omitempty" swaggertype:"string" format:"date-time" example:"2026-01-02T15:04:05.000Z"`
	// StepSeconds is how long a step is.
	StepSeconds Seconds `json:"step_seconds" swaggertype:"number" example:"10"`
	// Whole is all steps taken together; left out if nothing was counted yet.
	Whole *SeriesPoint `json:"whole,omitempty"`
	// Points of the steps, the oldest first. The last step is not over.
	Points []SeriesPoint `json:"points"`
}

// SeriesPoint is what happened in one step.
type SeriesPoint struct {
	// At is when the step begins.
	At Instant `json:"at" swaggertype:"string" format:"date-time" example:"2026-01-02T15:04:00.000Z"`
	// Grants counts the grants; a set counts once.
	Grants int `json:"grants" minimum:"0" example:"420"`
	// GrantsPerSecond is the rate of grants.
	GrantsPerSecond Seconds `json:"grants_per_second" swaggertype:"number" minimum:"0" example:"42"`
	// Releases counts the entries that their clients released.
	Releases int `json:"releases" minimum:"0" example:"415"`
	// ReleasesPerSecond is the rate of releases.
	ReleasesPerSecond Seconds `json:"releases_per_second" swaggertype:"number" minimum:"0" example:"41.5"`
	// Expiries counts the leases that expired.
	Expiries int `json:"expiries" minimum:"0" example:"1"`
	// ExpiriesPerSecond is the rate of expiries.
	ExpiriesPerSecond Seconds `json:"expiries_per_second" swaggertype:"number" minimum:"0" example:"0.1"`
	// Waiting is how many entries waited, on average.
	Waiting Seconds `json:"waiting" swaggertype:"number" minimum:"0" example:"3.2"`
	// Holding is how many held, on average; a set counts at each of its locks.
	Holding Seconds `json:"holding" swaggertype:"number" minimum:"0" example:"12.5"`
	// WaitSeconds is how long grants took, the store included, within a factor of 1.5; left out
	// without grants.
	WaitSeconds *Percentiles `json:"wait_seconds,omitempty"`
	// HoldSeconds is how long entries held that ended, within a factor of 1.5; left out without ends.
	HoldSeconds *Percentiles `json:"hold_seconds,omitempty"`
}

// AdminHistory is what happened to a lock, as the answering replica saw it since it started.
type AdminHistory struct {
	Seen
	// Tenant of the lock.
	Tenant string `json:"tenant" example:"acme"`
	// Name of the lock.
	Name string `json:"name" example:"orders:42"`
	// Since is when the replica started; it does not know earlier events.
	Since Instant `json:"since" swaggertype:"string" format:"date-time" example:"2026-01-02T15:04:05.000Z"`
	// Events of the lock, newest first, at most 50.
	Events []PastEvent `json:"events"`
	// Holders are workers that held the lock recently, as far as the events show, newest first.
	Holders []PastHolder `json:"holders"`
	// Waiting is how many waited for it recently; left out if none did, or this replica has no space
	// for it.
	Waiting *LockHeat `json:"waiting,omitempty"`
	// Evidence of leases that were too short.
	Evidence LeaseEvidence `json:"evidence"`
	// RecommendedTTLSeconds is what the measured holds suggest; left out if there are too few.
	RecommendedTTLSeconds *Seconds `json:"recommended_ttl_seconds,omitempty" swaggertype:"number" example:"9"`
	// RecommendedTTLReason explains `recommended_ttl_seconds`, or why there is none yet.
	RecommendedTTLReason string `json:"recommended_ttl_reason" example:"99 of 100 holds ended within 4.5 s; twice that leaves room for slow days"`
}

// LockHeat is how many waited for a lock in the last quarter of an hour, as in the heat map.
type LockHeat struct {
	// From is when the first step begins.
	From Instant `json:"from" swaggertype:"string" format:"date-time" example:"2026-01-02T14:49:30.000Z"`
	// StepSeconds is how long a step is.
	StepSeconds Seconds `json:"step_seconds" swaggertype:"number" example:"30"`
	// Average is how many waited on average in each step, the oldest first. The last is not over.
	Average []Seconds `json:"average" swaggertype:"array,number" example:"0,1.5,3"`
}

// PastEvent is something that happened to a lock.
type PastEvent struct {
	// Event is its id, the same at every replica.
	Event string `json:"event" example:"1042-1"`
	// Type of the event, as the stream of events has it.
	Type string `json:"type" example:"lock.acquired"`
	// At is when this replica saw it.
	At Instant `json:"at" swaggertype:"string" format:"date-time" example:"2026-01-02T15:04:05.000Z"`
	// Entry to which it happened.
	Entry string `json:"entry,omitempty" example:"5mdrk1w5pvy0wg1dcjt2b2gthr"`
	// Holder is the worker of the entry.
	Holder string `json:"holder,omitempty" example:"worker-7"`
	// Number of the entry in its queues: the fence that its grant has.
	Number uint64 `json:"number,omitempty" format:"int64" minimum:"1" maximum:"9007199254740991" example:"1042"`
	// Held is set if the entry held until its end.
	Held bool `json:"held,omitempty"`
	// LastedSeconds is how long the entry waited for its grant, or held until its end.
	LastedSeconds *Seconds `json:"lasted_seconds,omitempty" swaggertype:"number" minimum:"0" example:"4.2"`
	// RevokedBy is the subject of the operator's token.
	RevokedBy string `json:"revoked_by,omitempty" example:"ops@acme"`
	// Reason in the operator's words.
	Reason string `json:"reason,omitempty" example:"its node was lost in the fire"`
}

// PastHolder is a worker that held a lock.
type PastHolder struct {
	// ID of the entry.
	ID string `json:"id" example:"5mdrk1w5pvy0wg1dcjt2b2gthr"`
	// Holder is the worker of the entry.
	Holder string `json:"holder" example:"worker-7"`
	// Fence of the grant.
	Fence uint64 `json:"fence" format:"int64" minimum:"1" maximum:"9007199254740991" example:"1042"`
	// Until when it held, as this replica saw it.
	Until Instant `json:"until" swaggertype:"string" format:"date-time" example:"2026-01-02T15:04:09.000Z"`
	// HeldSeconds is how long it held.
	HeldSeconds Seconds `json:"held_seconds" swaggertype:"number" minimum:"0" example:"4.2"`
	// Ended is the reason: released, expired or revoked.
	Ended string `json:"ended" example:"released"`
}

// LeaseEvidence shows whether leases were too short for the holders of the lock.
type LeaseEvidence struct {
	// WorkedAfterExpiry counts entries whose holders renewed or released at this replica after the
	// lease expired.
	WorkedAfterExpiry uint64 `json:"worked_after_expiry" format:"int64" minimum:"0" example:"2"`
	// LateRenewals counts renewals at this replica after more than two thirds of the lease.
	LateRenewals uint64 `json:"late_renewals" format:"int64" minimum:"0" example:"5"`
	// StaleWrites counts the reports of writes that came with an old fence, among the newest 100 of
	// the tenant.
	StaleWrites uint64 `json:"stale_writes" format:"int64" minimum:"0" example:"1"`
	// Signs are up to 10 such renewals and releases, newest first.
	Signs []LeaseSign `json:"signs"`
	// Words explain the evidence.
	Words []string `json:"words" example:"2 holders renewed or released after their lease had run out"`
}

// LeaseSign is a sign that a lease was too short for its holder, or nearly.
type LeaseSign struct {
	// Kind of the sign.
	Kind string `json:"kind" enums:"renewed_after_expiry,released_after_expiry,renewed_late" example:"renewed_after_expiry"`
	// Entry with the lease.
	Entry string `json:"entry" example:"5mdrk1w5pvy0wg1dcjt2b2gthr"`
	// Holder is the worker of the entry, if the replica still knows it.
	Holder string `json:"holder,omitempty" example:"worker-7"`
	// Fence of the entry.
	Fence uint64 `json:"fence" format:"int64" minimum:"1" maximum:"9007199254740991" example:"1042"`
	// At is the time of the sign.
	At Instant `json:"at" swaggertype:"string" format:"date-time" example:"2026-01-02T15:04:05.000Z"`
	// AfterSeconds is the time since the lease expired, or for a late renewal since the last one.
	AfterSeconds *Seconds `json:"after_seconds,omitempty" swaggertype:"number" minimum:"0" example:"3.4"`
	// TTLSeconds is the lease of a late renewal.
	TTLSeconds *Seconds `json:"ttl_seconds,omitempty" swaggertype:"number" example:"30"`
}

// AdminHeatMap is how many entries waited for the most contended locks, in steps.
type AdminHeatMap struct {
	Seen
	// From is when the first cell of each row begins.
	From Instant `json:"from" swaggertype:"string" format:"date-time" example:"2026-01-02T14:49:30.000Z"`
	// StepSeconds is the time of a cell.
	StepSeconds Seconds `json:"step_seconds" swaggertype:"number" example:"30"`
	// Rows, those first where most waited in all.
	Rows []HeatMapRow `json:"rows"`
	// Truncated is set if further locks had waiters.
	Truncated bool `json:"truncated,omitempty"`
}

// HeatMapRow is one lock.
type HeatMapRow struct {
	// Tenant of the lock.
	Tenant string `json:"tenant" example:"acme"`
	// Name of the lock.
	Name string `json:"name" example:"orders:42"`
	// Waiting is how many waited on average in each step, the oldest first. The last is not over.
	Waiting []Seconds `json:"waiting" swaggertype:"array,number" example:"0,1.5,3"`
}
