package api

import "net/http"

// Code says what went wrong, for programs. New ones may come; a program treats one
// that it does not know by the status.
type Code string

// The codes. What each means is its title.
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
	Changed             Code = "changed"
	NoCallbackSecret    Code = "no_callback_secret"
	AlreadyHeld         Code = "already_held"
	Lost                Code = "lock_lost"
	BodyTooLarge        Code = "body_too_large"
	UnsupportedMedia    Code = "unsupported_media_type"
	Held                Code = "lock_held"
	TimedOut            Code = "wait_timeout"
	Closed              Code = "lock_closed"
	RateLimited         Code = "rate_limited"
	Overloaded          Code = "overloaded"
	MemoryFull          Code = "memory_full"
	QuotaExceeded       Code = "quota_exceeded"
	StoreUnavailable    Code = "store_unavailable"
	Draining            Code = "draining"
	FenceFloorRequired  Code = "fence_floor_required"
	Internal            Code = "internal"
)

// meaning is how a code appears over HTTP.
type meaning struct {
	status int
	title  string
}

// meaning is the one table from codes to HTTP. A code without a row is a bug that a
// test finds; a client sees it as internal.
func (c Code) meaning() meaning {
	switch c {
	case InvalidRequest:
		return meaning{http.StatusBadRequest, "The request is not valid"}
	case InvalidName:
		return meaning{http.StatusBadRequest, "The lock name is not valid"}
	case Unauthenticated:
		return meaning{http.StatusUnauthorized, "The caller is not known"}
	case Forbidden:
		return meaning{http.StatusForbidden, "The caller may not do this"}
	case TokenMismatch:
		return meaning{http.StatusForbidden, "The lock token does not belong to this entry"}
	case NotFound:
		return meaning{http.StatusNotFound, "Not found"}
	case MethodNotAllowed:
		return meaning{http.StatusMethodNotAllowed, "Method not allowed"}
	case IdempotencyMismatch:
		return meaning{http.StatusConflict, "The idempotency key was used with other parameters"}
	case ModeMismatch:
		return meaning{http.StatusConflict, "The lock is in use in another mode"}
	case Deadlock:
		return meaning{http.StatusConflict, "Waiting would close a cycle"}
	case Changed:
		return meaning{http.StatusConflict, "It has changed meanwhile"}
	case NoCallbackSecret:
		return meaning{http.StatusConflict, "There is no callback secret"}
	case AlreadyHeld:
		return meaning{http.StatusConflict, "The entry holds already"}
	case Lost:
		return meaning{http.StatusGone, "The entry is gone"}
	case BodyTooLarge:
		return meaning{http.StatusRequestEntityTooLarge, "The body is too large"}
	case UnsupportedMedia:
		return meaning{http.StatusUnsupportedMediaType, "The body is not JSON"}
	case Held:
		return meaning{http.StatusLocked, "The lock is held"}
	case TimedOut:
		return meaning{http.StatusLocked, "The lock was not granted in time"}
	case Closed:
		return meaning{http.StatusLocked, "The lock is closed"}
	case RateLimited:
		return meaning{http.StatusTooManyRequests, "Too many requests"}
	case Overloaded:
		return meaning{http.StatusTooManyRequests, "The server is overloaded"}
	case MemoryFull:
		return meaning{http.StatusServiceUnavailable, "The server has no memory for new work"}
	case QuotaExceeded:
		return meaning{http.StatusTooManyRequests, "A quota is used up"}
	case StoreUnavailable:
		return meaning{http.StatusServiceUnavailable, "The store is unavailable"}
	case FenceFloorRequired:
		return meaning{http.StatusServiceUnavailable, "The store lost its past and needs a fence floor"}
	case Draining:
		return meaning{http.StatusServiceUnavailable, "The replica is shutting down"}
	default:
		return meaning{http.StatusInternalServerError, "Internal error"}
	}
}

// Status is the HTTP status of a problem with the code.
func (c Code) Status() int { return c.meaning().status }

// Title says what the code means, always in the same words.
func (c Code) Title() string { return c.meaning().title }
