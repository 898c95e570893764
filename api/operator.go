package api

// RevokeBody names the entry to revoke, and the reason.
type RevokeBody struct {
	// Fence of the entry that the operator saw; of one that waits its number, which is the
	// fence that it would hold with.
	Fence Fence `json:"fence" swaggertype:"integer" format:"int64" minimum:"1" maximum:"9007199254740991" example:"1042"`
	// Reason in the operator's words. The tenant sees it.
	Reason string `json:"reason" minLength:"10" maxLength:"500" example:"its node was lost in the fire"`
}

// Revoked is an entry that an operator ended.
type Revoked struct {
	// ID of the entry.
	ID string `json:"id" example:"5mdrk1w5pvy0wg1dcjt2b2gthr"`
	// Tenant of the entry.
	Tenant string `json:"tenant" example:"acme"`
	// Locks that it held or waited for.
	Locks []string `json:"locks" example:"orders:42"`
	// Holder is the worker of the entry.
	Holder string `json:"holder" example:"worker-7"`
	// Fence of the entry.
	Fence uint64 `json:"fence" format:"int64" minimum:"1" maximum:"9007199254740991" example:"1042"`
	// Held is whether the entry held, rather than waited, as the answering replica saw it.
	Held bool `json:"held"`
	// AuditID names the record of this in the audit.
	AuditID string `json:"audit_id" example:"06dqz3n6hfae5k1w5pvy0wg1dc"`
}

// RevokeHolderBody names the entries of a holder to revoke, and the reason.
type RevokeHolderBody struct {
	// Tenant of the entries.
	Tenant string `json:"tenant" example:"acme"`
	// Holder of all the entries.
	Holder string `json:"holder" minLength:"1" maxLength:"200" example:"worker-7"`
	// Entries that the operator saw, 1 to 100.
	Entries []SeenEntry `json:"entries"`
	// Reason in the operator's words. The tenant sees it.
	Reason string `json:"reason" minLength:"10" maxLength:"500" example:"its node was lost in the fire"`
}

// SeenEntry is an entry that an operator saw.
type SeenEntry struct {
	// ID of the entry.
	ID string `json:"id" example:"5mdrk1w5pvy0wg1dcjt2b2gthr"`
	// Fence of the entry; of one that waits its number.
	Fence Fence `json:"fence" swaggertype:"integer" format:"int64" minimum:"1" maximum:"9007199254740991" example:"1042"`
}

// RevokedList is the results of revocations, in the order of the request.
type RevokedList struct {
	// Entries as they were named.
	Entries []RevokeOutcome `json:"entries"`
}

// RevokeOutcome is the result of one revocation.
type RevokeOutcome struct {
	// ID of the entry.
	ID string `json:"id" example:"5mdrk1w5pvy0wg1dcjt2b2gthr"`
	// Fence that was named.
	Fence uint64 `json:"fence" format:"int64" minimum:"0" example:"1042"`
	// Result is revoked, or the code of the problem that it would be alone. not_tried marks
	// the entries after one for which the store did not answer.
	Result string `json:"result" example:"revoked"`
	// Reason for which the entry is gone. With lock_lost.
	Reason string `json:"reason,omitempty" example:"released"`
	// MayHaveTakenEffect is set if the server may have revoked the entry although it failed.
	MayHaveTakenEffect bool `json:"may_have_taken_effect,omitempty"`
	// AuditID names the record of this in the audit. With revoked.
	AuditID string `json:"audit_id,omitempty" example:"06dqz3n6hfae5k1w5pvy0wg1dc"`
}

// AuditPage is a part of the audit.
type AuditPage struct {
	// Records, newest first. With a filter, a page ends after about 10 000 examined records, and can
	// be empty before the last one.
	Records []AuditRecord `json:"records"`
	// NextCursor selects the next page; left out on the last one.
	NextCursor string `json:"next_cursor,omitempty"`
}

// AuditRecord is one thing that was done.
type AuditRecord struct {
	// ID of the record. Ids sort by time.
	ID string `json:"id" example:"06dqz3n6hfae5k1w5pvy0wg1dc"`
	// At is the time, by the clock of the replica.
	At Instant `json:"at" swaggertype:"string" format:"date-time" example:"2026-01-02T15:04:05.000Z"`
	// Tenant of the object.
	Tenant string `json:"tenant" example:"acme"`
	// Actor is the caller.
	Actor AuditActor `json:"actor"`
	// Action of the caller.
	Action string `json:"action" enums:"entry.revoke,set.revoke,locks.close,locks.open,quota.set,quota.reset,webhook.create,webhook.change,webhook.pause,webhook.resume,webhook.delete,webhook.rotate,webhook.test,webhook.redeliver" example:"entry.revoke"`
	// Object of the action, as it was then.
	Object AuditObject `json:"object"`
	// Reason that the caller gave; empty without one.
	Reason string `json:"reason" example:"its node was lost in the fire"`
	// Result of the action. `asked` is written before the change, which may have failed.
	Result string `json:"result" example:"revoked"`
	// RequestID finds the request in the server's log. The client may have chosen it.
	RequestID string `json:"request_id" example:"4f1a7c0b9d2e83a6"`
	// ServerRequestID is the server's own id of the request.
	ServerRequestID string `json:"server_request_id" example:"9b2e83a64f1a7c0d"`
}

// AuditActor is the caller of an action.
type AuditActor struct {
	// Subject of the bearer token.
	Subject string `json:"subject" example:"ops@example.org"`
	// Tenant of the bearer token.
	Tenant string `json:"tenant" example:"acme"`
	// Scope that allowed it.
	Scope string `json:"scope" example:"tenant-admin"`
	// Address of the client, as trusted proxies report it. Operators of other tenants do not see it.
	Address string `json:"address,omitempty" example:"192.0.2.7"`
	// Peer is the address of the connection. Operators of other tenants do not see it.
	Peer string `json:"peer,omitempty" example:"10.0.0.4"`
}

// AuditObject is an entry as it was.
type AuditObject struct {
	// Locks of the entry, or the pattern of a closure or a webhook.
	Locks []string `json:"locks" example:"orders:42"`
	// Entry is the id of the entry or the closure; empty for a quota or a webhook.
	Entry string `json:"entry" example:"5mdrk1w5pvy0wg1dcjt2b2gthr"`
	// Holder is the worker of the entry.
	Holder string `json:"holder" example:"worker-7"`
	// Fence of the entry, or the number with which an ended closure began.
	Fence uint64 `json:"fence,omitempty" format:"int64" minimum:"1" maximum:"9007199254740991" example:"1042"`
	// Held is whether the entry held, rather than waited.
	Held bool `json:"held"`
	// Quota is the limits that were set, if the action is about a quota.
	Quota *QuotaOverrides `json:"quota,omitempty"`
	// Until is the planned end of a closure.
	Until *Instant `json:"until,omitempty" swaggertype:"string" format:"date-time" example:"2026-01-02T15:04:05.000Z"`
	// Webhook of the action, if it is about one.
	Webhook *AuditWebhook `json:"webhook,omitempty"`
}

// AuditWebhook is a webhook to which something was done.
type AuditWebhook struct {
	// ID of the webhook, or callbacks.
	ID string `json:"id" example:"06dqz3n6hfae5k1w5pvy0wg1dc"`
	// Receiver is the scheme and host of its URL; the rest may be a secret. Of callbacks empty.
	Receiver string `json:"receiver" example:"https://example.org"`
	// Changed are the names of the changed fields. With `webhook.change`.
	Changed []string `json:"changed,omitempty" example:"url"`
	// Delivery of a test, or the delivery that was repeated.
	Delivery string `json:"delivery,omitempty" example:"1042-1"`
	// Since is the instant from which deliveries are repeated.
	Since *Instant `json:"since,omitempty" swaggertype:"string" format:"date-time" example:"2026-01-02T15:04:05.000Z"`
}
