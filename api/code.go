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
	Lost                Code = "lock_lost"
	BodyTooLarge        Code = "body_too_large"
	UnsupportedMedia    Code = "unsupported_media_type"
	Held                Code = "lock_held"
	TimedOut            Code = "wait_timeout"
	Closed              Code = "lock_closed"
	RateLimited         Code = "rate_limited"
	Overloaded          Code = "overloaded"
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
	advice string
}

// meaning is the one table from codes to HTTP. A code without a row is a bug that a
// test finds; a client sees it as internal.
func (c Code) meaning() meaning {
	switch c {
	case InvalidRequest:
		return meaning{
			http.StatusBadRequest, "The request is not valid",
			"Correct the field that the problem names. A retry of the same request gets the same answer.",
		}
	case InvalidName:
		return meaning{
			http.StatusBadRequest, "The lock name is not valid",
			"Use 1 to 200 of the characters A-Z a-z 0-9 . _ : @ = + - and begin with a letter or a digit.",
		}
	case Unauthenticated:
		return meaning{
			http.StatusUnauthorized, "The caller is not known",
			"Send one Authorization header with a bearer token that is valid now, or a client certificate.",
		}
	case Forbidden:
		return meaning{
			http.StatusForbidden, "The caller may not do this",
			"Ask for a token with the scope, the tenant or the lock names that the request needs.",
		}
	case TokenMismatch:
		return meaning{
			http.StatusForbidden, "The lock token does not belong to this entry",
			"Send the Lock-Token that the acquire of this very entry returned.",
		}
	case NotFound:
		return meaning{
			http.StatusNotFound, "Not found",
			"Check the path and the id in it.",
		}
	case MethodNotAllowed:
		return meaning{
			http.StatusMethodNotAllowed, "Method not allowed",
			"Use one of the methods in the Allow header.",
		}
	case IdempotencyMismatch:
		return meaning{
			http.StatusConflict, "The idempotency key was used with other parameters",
			"Repeat a request with its key unchanged, or use a new key for another request.",
		}
	case ModeMismatch:
		return meaning{
			http.StatusConflict, "The lock is in use in another mode",
			"Use the mode and limit in in_use, or wait until the lock is free.",
		}
	case Deadlock:
		return meaning{
			http.StatusConflict, "Waiting would close a cycle",
			"Release what the holder has, then acquire again. The cycle is in the problem.",
		}
	case Changed:
		return meaning{
			http.StatusConflict, "It has changed meanwhile",
			"Read the object again and repeat the request if you still want it.",
		}
	case NoCallbackSecret:
		return meaning{
			http.StatusConflict, "There is no callback secret",
			"Make a secret by POST /webhooks/callback-secret/rotate.",
		}
	case Lost:
		return meaning{
			http.StatusGone, "The entry is gone",
			"Stop what the lock protects. Acquire again, with a new Idempotency-Key.",
		}
	case BodyTooLarge:
		return meaning{
			http.StatusRequestEntityTooLarge, "The body is too large",
			"Send a shorter body: 16 KiB at most.",
		}
	case UnsupportedMedia:
		return meaning{
			http.StatusUnsupportedMediaType, "The body is not JSON",
			"Send JSON in UTF-8 as application/json, without a Content-Encoding.",
		}
	case Held:
		return meaning{
			http.StatusLocked, "The lock is held",
			"Retry after Retry-After, or queue with wait_seconds.",
		}
	case TimedOut:
		return meaning{
			http.StatusLocked, "The lock was not granted in time",
			"The request left the queue. Retry after Retry-After, or wait longer.",
		}
	case Closed:
		return meaning{
			http.StatusLocked, "The lock is closed",
			"An operator closed the lock. Retry after the time in until.",
		}
	case RateLimited:
		return meaning{
			http.StatusTooManyRequests, "Too many requests",
			"Retry after Retry-After, and send fewer requests.",
		}
	case Overloaded:
		return meaning{
			http.StatusTooManyRequests, "The server is overloaded",
			"The server has too much to do. Retry after Retry-After.",
		}
	case QuotaExceeded:
		return meaning{
			http.StatusTooManyRequests, "A quota is used up",
			"Release what the tenant does not need, or ask an operator for a higher quota.",
		}
	case StoreUnavailable:
		return meaning{
			http.StatusServiceUnavailable, "The store is unavailable",
			"Retry after Retry-After with the same Idempotency-Key. " +
				"may_have_taken_effect says whether the request may have been carried out.",
		}
	case FenceFloorRequired:
		return meaning{
			http.StatusServiceUnavailable, "The store lost its past and needs a fence floor",
			"An operator has to start the server with --fence-floor " +
				"above every fence ever handed out. Until then nothing is granted.",
		}
	case Draining:
		return meaning{
			http.StatusServiceUnavailable, "The replica is shutting down",
			"Retry at another replica, with the same Idempotency-Key or at Location.",
		}
	default:
		return meaning{
			http.StatusInternalServerError, "Internal error",
			"Retry with the same Idempotency-Key. The request id finds the cause in the server's log.",
		}
	}
}

// Status is the HTTP status of a problem with the code.
func (c Code) Status() int { return c.meaning().status }

// Title says what the code means, always in the same words.
func (c Code) Title() string { return c.meaning().title }

// Advice says what a client does about a problem with the code.
func (c Code) Advice() string { return c.meaning().advice }

// Known reports whether there are problems with the code.
func (c Code) Known() bool { return c == Internal || c.Status() != http.StatusInternalServerError }

// Type is the URI of a problem with the code: the path of a page that explains it.
func (c Code) Type() string { return "/problems/" + string(c) }
