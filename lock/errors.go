package lock

import (
	"fmt"
	"time"
)

// Code is what went wrong, for programs. It is an error itself, so that errors.Is(err,
// lock.TokenMismatch) works on any error that carries it.
type Code string

// Error returns the code as it appears in a problem document.
func (c Code) Error() string { return string(c) }

// The codes, as they appear in problem documents.
const (
	InvalidRequest      Code = "invalid_request"
	InvalidName         Code = "invalid_name"
	Unauthenticated     Code = "unauthenticated"
	Forbidden           Code = "forbidden"
	TokenMismatch       Code = "token_mismatch"
	NotFound            Code = "not_found"
	MethodNotAllowed    Code = "method_not_allowed"
	IdempotencyMismatch Code = "idempotency_mismatch"
	ModeMismatch        Code = "mode_mismatch"
	Deadlock            Code = "deadlock"
	NotNewest           Code = "superseded"
	NoCallbackSecret    Code = "no_callback_secret"
	Lost                Code = "lock_lost"
	BodyTooLarge        Code = "body_too_large"
	UnsupportedMedia    Code = "unsupported_media_type"
	Held                Code = "lock_held"
	TimedOut            Code = "wait_timeout"
	Closed              Code = "lock_closed"
	RateLimited         Code = "rate_limited"
	QuotaExceeded       Code = "quota_exceeded"
	Overloaded          Code = "overloaded"
	StoreUnavailable    Code = "store_unavailable"
	Draining            Code = "draining"
	FenceFloorRequired  Code = "fence_floor_required"
	Internal            Code = "internal"

	// Changed means that the grounds of a request no longer hold.
	Changed Code = "changed"
)

// Error is the one error type that crosses package boundaries.
type Error struct {
	Code   Code
	Detail string // for people; never a secret, never a library's text
	Field  string // the faulty field of the request, if one is at fault

	// Reason is why the entry ended. Only with [Lost].
	Reason Reason

	// RevokeReason is the operator's reason, if this replica knows it. Only with [Lost].
	RevokeReason string

	// Replayed is set if an earlier request with the idempotency key wrote the entry.
	Replayed bool

	// RetryAfter is how long to wait before a retry; 0 is unspecified.
	RetryAfter time.Duration

	// Cycle lists which entry waits for which. Only with [Deadlock].
	Cycle []Wait

	// InUse is a claim in use. Only with [ModeMismatch].
	InUse *Claim

	// Closure is the closure that rejected the request. Only with [Closed].
	Closure *Closure

	// Quota is the tenant's exhausted quota. With [QuotaExceeded] and [RateLimited], if the
	// operator can set it for a tenant.
	Quota *Exceeded

	// OutcomeUnknown is set if the request may have taken effect.
	OutcomeUnknown bool

	// Cause is for the log only.
	Cause error
}

// Exceeded is a tenant's exhausted limit.
type Exceeded struct {
	Name        string
	Limit, Used int
}

// Error describes the error for a log.
func (e *Error) Error() string {
	text := string(e.Code)
	if e.Detail != "" {
		text += ": " + e.Detail
	}
	if e.Cause != nil {
		text += ": " + e.Cause.Error()
	}
	return text
}

// Is reports whether target is the error's code. A store that needs a fence floor is also
// unavailable.
func (e *Error) Is(target error) bool {
	return target == error(e.Code) || e.Code == FenceFloorRequired && target == error(StoreUnavailable)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// Errorf returns an error with a code and a formatted detail.
func Errorf(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Detail: fmt.Sprintf(format, args...)}
}

// Invalid returns an [InvalidRequest] error that names the field at fault.
func Invalid(field, format string, args ...any) *Error {
	return &Error{
		Code: InvalidRequest, Field: field, Detail: field + " " + fmt.Sprintf(format, args...),
	}
}

// lostAdvice says what to do after any end of an entry.
const lostAdvice = "; stop what it protects, then acquire again with a new Idempotency-Key"

// LostBecause returns a [Lost] error with the reason for which the entry ended.
func LostBecause(r Reason) *Error {
	if r == Superseded {
		return &Error{Code: Lost, Reason: r, Detail: "the entry is gone: " + ErrNotNewest().Detail}
	}
	return &Error{Code: Lost, Reason: r, Detail: "the entry is gone: " + string(r) + lostAdvice}
}

// ErrHeld returns a [Held] error: earlier entries block a request that does not wait.
func ErrHeld() *Error {
	return &Error{
		Code: Held, Detail: "others hold the lock or wait for it; " +
			"retry after Retry-After, or queue with wait_seconds",
		RetryAfter: time.Second,
	}
}

// ErrModeMismatch returns a [ModeMismatch] error with the mode in use.
func ErrModeMismatch(inUse Claim) *Error {
	return &Error{
		Code: ModeMismatch, InUse: &inUse,
		Detail: "the lock " + inUse.Name + " is in use in the mode " + string(inUse.Mode) +
			"; use that, or wait until it is free",
	}
}

// ErrNotNewest returns a [NotNewest] error: a later request took the place of one that waits with
// [Entry.OnlyNewest].
func ErrNotNewest() *Error {
	return &Error{
		Code:   NotNewest,
		Detail: "a later request with only_newest took its place; leave the work to that one",
	}
}

// ErrDeadlock returns a [Deadlock] error with the cycle that a wait would close.
func ErrDeadlock(cycle []Wait) *Error {
	e := &Error{
		Code: Deadlock, Cycle: cycle,
		Detail: "to wait would close a cycle of waits; release what the holder has, then acquire again",
	}
	if len(cycle) == 1 && cycle[0].Holds {
		e.Detail = fmt.Sprintf("the holder %s holds the lock %s already: it would wait for itself. "+
			"Release it first, or use the entry that holds",
			cycle[0].Waiter.Holder, cycle[0].Lock)
	}
	return e
}
