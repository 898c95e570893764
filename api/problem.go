package api

// Problem is an error as a client sees it (RFC 9457).
type Problem struct {
	// Type is the path of the page that explains the code.
	Type string `json:"type" format:"uri-reference" example:"/problems/lock_held"`
	// Title of the code, always in the same words.
	Title string `json:"title" example:"The lock is held"`
	// Status of the response.
	Status int `json:"status" minimum:"400" maximum:"599" example:"423"`
	// Detail is for people: what is wrong with this request.
	Detail string `json:"detail,omitempty" example:"others hold the lock or wait for it; retry after Retry-After, or queue with wait_seconds"`
	// Code is for programs: decide by it.
	Code Code `json:"code" swaggertype:"string" example:"lock_held"`
	// RequestID finds the request in the server's log.
	RequestID string `json:"request_id" example:"4f1a7c0b9d2e83a6"`

	// Field of the request that is at fault. With invalid_request.
	Field string `json:"field,omitempty" example:"ttl_seconds"`
	// Reason for which the entry is gone, with `lock_lost`; or the operator's reason, with
	// `lock_closed` and for a closed lock `wait_timeout`.
	Reason string `json:"reason,omitempty" example:"expired"`
	// RevokeReason is the operator's reason. With `lock_lost`, if the reason is `revoked` and the
	// replica knows it.
	RevokeReason string `json:"revoke_reason,omitempty" example:"its node was lost in the fire"`
	// Until when the lock is closed, unless it is opened before. With lock_closed, and with
	// wait_timeout if the lock is closed.
	Until *Instant `json:"until,omitempty" swaggertype:"string" format:"date-time" example:"2026-01-02T15:04:05.000Z"`
	// MayHaveTakenEffect is whether the server may have carried out the request. With
	// `store_unavailable`, `draining` and `overloaded`.
	MayHaveTakenEffect *bool `json:"may_have_taken_effect,omitempty"`

	// Quota that is used up. With `quota_exceeded` and `rate_limited`, if an operator can set it.
	Quota string `json:"quota,omitempty" example:"held_locks"`
	// Limit that the quota has. With quota.
	Limit *int `json:"limit,omitempty" minimum:"0" example:"1000"`
	// Used is how much of it was in use. With quota.
	Used *int `json:"used,omitempty" minimum:"0" example:"1000"`

	// Holders of the lock or of the set's locks. With `lock_held`, `lock_closed` and `wait_timeout`;
	// can be empty.
	Holders []Holder `json:"holders,omitzero" validate:"optional"`
	// Waiting is how many entries wait, added up over a set. With `lock_held`, `lock_closed` and
	// `wait_timeout`.
	Waiting *int `json:"waiting,omitempty" minimum:"0" example:"3"`
	// InUse is the mode in which the lock is in use. With `mode_mismatch`.
	InUse *SetLock `json:"in_use,omitempty"`

	// Locks of the set that others hold or wait for. With lock_held, lock_closed and wait_timeout, of
	// a set.
	Locks []BusyLock `json:"locks,omitzero" validate:"optional"`
	// Cycle of waits that the request would close; of a long one the first 32. With
	// deadlock.
	Cycle []CycleStep `json:"cycle,omitempty"`

	// Entry that still waits; resume at `Location`. With `store_unavailable` and `draining`.
	Entry *Entry `json:"entry,omitempty"`
	// Set that still waits; resume at `Location`. With `store_unavailable` and `draining`.
	Set *Set `json:"set,omitempty"`
}

// Error says what went wrong, for a person, and how to find it in the server's log.
func (p *Problem) Error() string {
	text := p.Title
	if p.Detail != "" {
		text += ": " + p.Detail
	}
	return text + " (" + string(p.Code) + ", request " + p.RequestID + ")"
}
