package api

import (
	"net/http"
	"slices"
)

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
	Superseded          Code = "superseded"
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

// Codes returns all codes, by status.
func Codes() []Code {
	return []Code{
		InvalidRequest, InvalidName, Unauthenticated, Forbidden, TokenMismatch, NotFound,
		MethodNotAllowed, IdempotencyMismatch, ModeMismatch, Deadlock, Superseded, Changed,
		NoCallbackSecret, Lost, BodyTooLarge, UnsupportedMedia, Held, TimedOut, Closed,
		RateLimited, Overloaded, QuotaExceeded, StoreUnavailable, Draining, FenceFloorRequired,
		Internal,
	}
}

// meaning is how a code appears over HTTP.
type meaning struct {
	status int
	title  string
	when   string
	advice string
}

// meaning is the one table from codes to HTTP. A code without a row is a bug that a
// test finds; a client sees it as internal.
func (c Code) meaning() meaning {
	switch c {
	case InvalidRequest:
		return meaning{
			http.StatusBadRequest, "The request is not valid",
			"A header, a query parameter or a field of the body is unknown, missing, or " +
				"outside its bounds.",
			"Correct the field that the problem names.",
		}
	case InvalidName:
		return meaning{
			http.StatusBadRequest, "The lock name is not valid",
			"The path has no valid lock name.",
			"Use 1 to 200 of the characters A-Z a-z 0-9 . _ : @ = + - and begin with a letter or a digit.",
		}
	case Unauthenticated:
		return meaning{
			http.StatusUnauthorized, "The caller is not known",
			"The credential is missing, expired, badly signed, without a claim that the " +
				"server needs, or of a key that was withdrawn.",
			"Send one Authorization header with a bearer token that is valid now, or a client certificate.",
		}
	case Forbidden:
		return meaning{
			http.StatusForbidden, "The caller may not do this",
			"The credential is valid, but lacks the scope, is of another tenant, or is " +
				"limited to other lock names.",
			"Ask for a token with the scope, the tenant or the lock names that the request needs.",
		}
	case TokenMismatch:
		return meaning{
			http.StatusForbidden, "The lock token does not belong to this entry",
			"The Lock-Token is forged, or belongs to another entry.",
			"Send the Lock-Token that the acquire of this very entry returned.",
		}
	case NotFound:
		return meaning{
			http.StatusNotFound, "Not found",
			"Nothing has this path or id, or it belongs to another tenant.",
			"Check the path and the id in it.",
		}
	case MethodNotAllowed:
		return meaning{
			http.StatusMethodNotAllowed, "Method not allowed",
			"The path exists, but not with this method.",
			"Use one of the methods in the Allow header.",
		}
	case IdempotencyMismatch:
		return meaning{
			http.StatusConflict, "The idempotency key was used with other parameters",
			"An entry with this Idempotency-Key was requested with other parameters. The " +
				"holder is one: by default the sub of the bearer token.",
			"Repeat a request with its key unchanged, or use a new key for another request.",
		}
	case ModeMismatch:
		return meaning{
			http.StatusConflict, "The lock is in use in another mode",
			"The entries of the lock are of a semaphore and the request is not, or the " +
				"reverse.",
			"Use the mode in in_use, or wait until the lock is free.",
		}
	case Deadlock:
		return meaning{
			http.StatusConflict, "Waiting would close a cycle",
			"The request names its holder, and its wait would close a cycle of waits. A " +
				"holder that waits for its own lock is such a cycle.",
			"Release what the holder has, then acquire again. The cycle is in the problem.",
		}
	case Superseded:
		return meaning{
			http.StatusConflict, "A later request waits",
			"The request has only_newest, and a later one with it waits for one of its locks.",
			"Leave the work to the later request.",
		}
	case Changed:
		return meaning{
			http.StatusConflict, "It has changed meanwhile",
			"The entry has another fence, or the record another version, than the request " +
				"names.",
			"Read the object again and repeat the request if you still want it.",
		}
	case NoCallbackSecret:
		return meaning{
			http.StatusConflict, "There is no callback secret",
			"The request has a callback_url, and the tenant has no secret that signs " +
				"callbacks.",
			"Make a secret by POST /webhooks/callback-secret/rotate.",
		}
	case Lost:
		return meaning{
			http.StatusGone, "The entry is gone",
			"The Lock-Token or the Idempotency-Key is genuine, and its entry has ended. " +
				"reason says how.",
			"Stop what the lock protects. Acquire again, with a new Idempotency-Key.",
		}
	case BodyTooLarge:
		return meaning{
			http.StatusRequestEntityTooLarge, "The body is too large",
			"The body is longer than the server reads.",
			"Send a shorter body: 16 KiB at most.",
		}
	case UnsupportedMedia:
		return meaning{
			http.StatusUnsupportedMediaType, "The body is not JSON",
			"The body has another content type, another charset, or a Content-Encoding.",
			"Send JSON in UTF-8 as application/json, without a Content-Encoding.",
		}
	case Held:
		return meaning{
			http.StatusLocked, "The lock is held",
			"The lock is held, or others wait for it, and wait_seconds is 0.",
			"Retry after Retry-After, or queue with wait_seconds.",
		}
	case TimedOut:
		return meaning{
			http.StatusLocked, "The lock was not granted in time",
			"The lock was not granted within wait_seconds.",
			"The request left the queue. Retry after Retry-After, or wait longer.",
		}
	case Closed:
		return meaning{
			http.StatusLocked, "The lock is closed",
			"An operator has closed the lock for a time. No request joins its queue, whatever " +
				"wait_seconds is.",
			"Retry after the time in until.",
		}
	case RateLimited:
		return meaning{
			http.StatusTooManyRequests, "Too many requests",
			"The tenant sends more requests, writes more audit records or uses more new " +
				"keys than its rate allows.",
			"Retry after Retry-After, and send fewer requests.",
		}
	case Overloaded:
		return meaning{
			http.StatusTooManyRequests, "The server is overloaded",
			"The server has reached a bound: requests, lists, streams or large answers " +
				"under way. Nothing was carried out.",
			"Retry after Retry-After.",
		}
	case QuotaExceeded:
		return meaning{
			http.StatusTooManyRequests, "A quota is used up",
			"The request would exceed a quota of the tenant. Nothing was written.",
			"Release what the tenant does not need, or ask an operator for a higher quota.",
		}
	case StoreUnavailable:
		return meaning{
			http.StatusServiceUnavailable, "The store is unavailable",
			"The store did not answer in time, has no space, or is out of this replica's " +
				"reach.",
			"Retry after Retry-After with the same Idempotency-Key. " +
				"may_have_taken_effect says whether the request may have been carried out.",
		}
	case FenceFloorRequired:
		return meaning{
			http.StatusServiceUnavailable, "The store lost its past and needs a fence floor",
			"The store was restored from a backup or replaced, so that it could issue a " +
				"fence twice.",
			"An operator has to start the server with --fence-floor " +
				"above every fence ever handed out. Until then nothing is granted.",
		}
	case Draining:
		return meaning{
			http.StatusServiceUnavailable, "The replica is shutting down",
			"The server received SIGTERM and ends.",
			"Retry at another replica, with the same Idempotency-Key or at Location.",
		}
	default:
		return meaning{
			http.StatusInternalServerError, "Internal error",
			"The server met an error that it does not expect.",
			"Retry with the same Idempotency-Key. The request id finds the cause in the server's log.",
		}
	}
}

// Status is the HTTP status of a problem with the code.
func (c Code) Status() int { return c.meaning().status }

// Title says what the code means, always in the same words.
func (c Code) Title() string { return c.meaning().title }

// When says in which cases there is a problem with the code.
func (c Code) When() string { return c.meaning().when }

// Advice says what a client does about a problem with the code.
func (c Code) Advice() string { return c.meaning().advice }

// Known reports whether there are problems with the code.
func (c Code) Known() bool { return slices.Contains(Codes(), c) }

// Type is the URI of a problem with the code: the path of a page that explains it.
func (c Code) Type() string { return "/problems/" + string(c) }
