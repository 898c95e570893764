package api

// QuotaNumbers are how much a tenant may use.
type QuotaNumbers struct {
	// HeldLocks is how many locks may be held: of a set each counts, of a semaphore each holder.
	HeldLocks int `json:"held_locks" minimum:"0" maximum:"10000000" example:"200000"`
	// Waiting is how many entries may wait; a set is one.
	Waiting int `json:"waiting" minimum:"0" maximum:"10000000" example:"200000"`
	// WaitingPerLock is how many entries may wait for one lock.
	WaitingPerLock int `json:"waiting_per_lock" minimum:"0" maximum:"10000000" example:"100000"`
	// Sets is how many sets may be held or wait.
	Sets int `json:"sets" minimum:"0" maximum:"10000000" example:"100000"`
	// Places is how many queue entries there may be; an entry counts once for each of its locks.
	Places int `json:"places" minimum:"0" maximum:"10000000" example:"200000"`
	// MetadataBytes is how many bytes of metadata entries may have together: keys, values, each
	// `holder` that a request names, each `callback_url`.
	MetadataBytes int `json:"metadata_bytes" minimum:"0" maximum:"1073741824" example:"67108864"`
	// AsyncRenewals is how many renewals per second waiting async entries may need.
	AsyncRenewals int `json:"async_renewals_per_second" minimum:"0" maximum:"1000000" example:"1250"`
	// Webhooks is how many webhooks there may be.
	Webhooks int `json:"webhooks" minimum:"0" maximum:"1000" example:"100"`
	// EventStreams is how many event streams may be open at each replica.
	EventStreams int `json:"event_streams" minimum:"0" maximum:"2000" example:"100"`
	// Requests is how many requests per second each replica takes, besides renewals and releases. A
	// set costs one per lock, long bodies one per 4 KiB.
	Requests int `json:"requests_per_second" minimum:"0" maximum:"1000000" example:"50000"`
	// Renewals is how many renewals per second each replica takes, with requests for an entry by its
	// token.
	Renewals int `json:"renewals_per_second" minimum:"0" maximum:"1000000" example:"50000"`
	// Releases is how many releases per second each replica takes.
	Releases int `json:"releases_per_second" minimum:"0" maximum:"1000000" example:"50000"`
	// WebhookAttempts is how many deliveries of webhooks and callbacks each replica attempts per
	// second; the rest waits.
	WebhookAttempts int `json:"webhook_attempts_per_second" minimum:"0" maximum:"1000000" example:"1000"`
}

// QuotaUse is how much of it a tenant uses, as the answering replica sees it.
type QuotaUse struct {
	// HeldLocks is how many locks are held.
	HeldLocks int `json:"held_locks" minimum:"0" example:"119"`
	// Waiting is how many entries wait.
	Waiting int `json:"waiting" minimum:"0" example:"9"`
	// Sets is how many sets are held or wait.
	Sets int `json:"sets" minimum:"0" example:"2"`
	// Places is how many queue entries there are; an entry counts once for each of its locks.
	Places int `json:"places" minimum:"0" example:"130"`
	// MetadataBytes is how many bytes of metadata entries have together, with named holders and
	// callback URLs.
	MetadataBytes int `json:"metadata_bytes" minimum:"0" example:"4096"`
	// AsyncRenewals is how many renewals per second waiting async entries may need.
	AsyncRenewals int `json:"async_renewals_per_second" minimum:"0" example:"30"`
	// Webhooks is how many webhooks there are.
	Webhooks int `json:"webhooks" minimum:"0" example:"3"`
	// EventStreams is how many event streams are open at this replica.
	EventStreams int `json:"event_streams" minimum:"0" example:"2"`
	// Requests is how many requests of this second's limit are used at this replica; debt of
	// expensive requests can exceed it.
	Requests int `json:"requests_per_second" minimum:"0" example:"40"`
	// Renewals is how many renewals of its second's worth are used up at this replica.
	Renewals int `json:"renewals_per_second" minimum:"0" example:"12"`
	// Releases is how many releases of its second's worth are used up at this replica.
	Releases int `json:"releases_per_second" minimum:"0" example:"38"`
	// WebhookAttempts is how many attempts of its second's worth are used up at this replica.
	WebhookAttempts int `json:"webhook_attempts_per_second" minimum:"0" example:"19"`
}

// QuotaOverrides are the limits of a tenant that differ from the defaults; one that is left out
// does not.
type QuotaOverrides struct {
	// HeldLocks is how many locks may be held: of a set each counts, of a semaphore each holder.
	HeldLocks *Whole `json:"held_locks,omitempty" swaggertype:"integer" minimum:"0" maximum:"10000000" example:"2000"`
	// Waiting is how many entries may wait; a set is one.
	Waiting *Whole `json:"waiting,omitempty" swaggertype:"integer" minimum:"0" maximum:"10000000" example:"2000"`
	// WaitingPerLock is how many entries may wait for one lock.
	WaitingPerLock *Whole `json:"waiting_per_lock,omitempty" swaggertype:"integer" minimum:"0" maximum:"10000000" example:"1000"`
	// Sets is how many sets may be held or wait.
	Sets *Whole `json:"sets,omitempty" swaggertype:"integer" minimum:"0" maximum:"10000000" example:"1000"`
	// Places is how many queue entries there may be; an entry counts once for each of its locks.
	Places *Whole `json:"places,omitempty" swaggertype:"integer" minimum:"0" maximum:"10000000" example:"2000"`
	// MetadataBytes is how many bytes of metadata entries may have together: keys, values, each
	// `holder` that a request names, each `callback_url`.
	MetadataBytes *Whole `json:"metadata_bytes,omitempty" swaggertype:"integer" minimum:"0" maximum:"1073741824" example:"671088"`
	// AsyncRenewals is how many renewals per second waiting async entries may need.
	AsyncRenewals *Whole `json:"async_renewals_per_second,omitempty" swaggertype:"integer" minimum:"0" maximum:"1000000" example:"12"`
	// Webhooks is how many webhooks there may be.
	Webhooks *Whole `json:"webhooks,omitempty" swaggertype:"integer" minimum:"0" maximum:"1000" example:"1"`
	// EventStreams is how many event streams may be open at each replica.
	EventStreams *Whole `json:"event_streams,omitempty" swaggertype:"integer" minimum:"0" maximum:"2000" example:"1"`
	// Requests is how many requests per second each replica takes, besides renewals and releases. A
	// set costs one per lock, long bodies one per 4 KiB.
	Requests *Whole `json:"requests_per_second,omitempty" swaggertype:"integer" minimum:"0" maximum:"1000000" example:"500"`
	// Renewals is how many renewals per second each replica takes, with requests for an entry by its
	// token.
	Renewals *Whole `json:"renewals_per_second,omitempty" swaggertype:"integer" minimum:"0" maximum:"1000000" example:"500"`
	// Releases is how many releases per second each replica takes.
	Releases *Whole `json:"releases_per_second,omitempty" swaggertype:"integer" minimum:"0" maximum:"1000000" example:"500"`
	// WebhookAttempts is how many deliveries of webhooks and callbacks each replica attempts per
	// second; the rest waits.
	WebhookAttempts *Whole `json:"webhook_attempts_per_second,omitempty" swaggertype:"integer" minimum:"0" maximum:"1000000" example:"100"`
}

// QuotaBody sets the limits of a tenant: those that it names, and the defaults for all others.
type QuotaBody struct {
	QuotaOverrides
	// Reason is why, in the operator's words, for the audit.
	Reason *string `json:"reason,omitempty" minLength:"10" maxLength:"500" example:"a migration until Friday"`
	// Version that the operator saw and replaces; 0 is that nothing was set. Without it whatever is
	// there is replaced.
	Version *Version `json:"version,omitempty" swaggertype:"integer" format:"int64" minimum:"0" maximum:"9007199254740991" example:"1042"`
}

// Quota is the limits of a tenant, and their use.
type Quota struct {
	Seen
	// Tenant by its name.
	Tenant string `json:"tenant" example:"acme"`
	// Limits that hold.
	Limits QuotaNumbers `json:"limits"`
	// Used of them.
	Used QuotaUse `json:"used"`
	// Defaults of the answering replica.
	Defaults QuotaNumbers `json:"defaults"`
	// Overrides are those that were set for the tenant; left out if nothing is set.
	Overrides *QuotaOverrides `json:"overrides,omitempty"`
	// Version of what is set; 0 if nothing is.
	Version uint64 `json:"version" format:"int64" minimum:"0" maximum:"9007199254740991" example:"1042"`
	// Damaged is set if the server cannot read the setting. The defaults apply until an operator sets
	// it again.
	Damaged bool `json:"damaged"`
	// ChangedAt is when it was set, by the clock of the replica that did it.
	ChangedAt *Instant `json:"changed_at,omitempty" swaggertype:"string" format:"date-time" example:"2026-01-02T15:04:05.000Z"`
	// ChangedBy is the subject of the operator that set it.
	ChangedBy string `json:"changed_by,omitempty" example:"ops@example.org"`
	// Reason that the operator gave.
	Reason string `json:"reason,omitempty" example:"a migration until Friday"`
}

// TenantQuota is the limits of a tenant, and their use.
type TenantQuota struct {
	// Limits that hold.
	Limits QuotaNumbers `json:"limits"`
	// Used of them.
	Used QuotaUse `json:"used"`
}
