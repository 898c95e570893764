package handlers

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/fencepost/fencepost/lock"
)

// statusClientGone is what the access log shows for a request whose client went
// away before the answer, or closed its side of the connection, which looks the
// same. It is never sent: the connection is closed without an answer.
const statusClientGone = 499

// kind is how a code appears over HTTP.
type kind struct {
	status int
	title  string
}

// kindOf is the one table from codes to HTTP. A code without a row is a bug that
// a test finds; a client sees it as internal.
func kindOf(code lock.Code) kind {
	switch code {
	case lock.InvalidRequest:
		return kind{http.StatusBadRequest, "The request is not valid"}
	case lock.InvalidName:
		return kind{http.StatusBadRequest, "The lock name is not valid"}
	case lock.Unauthenticated:
		return kind{http.StatusUnauthorized, "The bearer token is missing or not valid"}
	case lock.Forbidden:
		return kind{http.StatusForbidden, "The bearer token does not allow this"}
	case lock.TokenMismatch:
		return kind{http.StatusForbidden, "The lock token does not belong to this entry"}
	case lock.NotFound:
		return kind{http.StatusNotFound, "Not found"}
	case lock.MethodNotAllowed:
		return kind{http.StatusMethodNotAllowed, "Method not allowed"}
	case lock.IdempotencyMismatch:
		return kind{http.StatusConflict, "The idempotency key was used with other parameters"}
	case lock.ModeMismatch:
		return kind{http.StatusConflict, "The lock is in use in another mode"}
	case lock.Deadlock:
		return kind{http.StatusConflict, "Waiting would close a cycle"}
	case lock.Changed:
		return kind{http.StatusConflict, "It has changed meanwhile"}
	case lock.Lost:
		return kind{http.StatusGone, "The entry is gone"}
	case lock.BodyTooLarge:
		return kind{http.StatusRequestEntityTooLarge, "The body is too large"}
	case lock.UnsupportedMedia:
		return kind{http.StatusUnsupportedMediaType, "The body is not JSON"}
	case lock.Held:
		return kind{http.StatusLocked, "The lock is held"}
	case lock.TimedOut:
		return kind{http.StatusLocked, "The lock was not granted in time"}
	case lock.RateLimited:
		return kind{http.StatusTooManyRequests, "Too many requests"}
	case lock.Overloaded:
		return kind{http.StatusTooManyRequests, "The server is overloaded"}
	case lock.QuotaExceeded:
		return kind{http.StatusTooManyRequests, "A quota is used up"}
	case lock.StoreUnavailable:
		return kind{http.StatusServiceUnavailable, "The store is unavailable"}
	case lock.Draining:
		return kind{http.StatusServiceUnavailable, "The replica is shutting down"}
	default:
		return kind{http.StatusInternalServerError, "Internal error"}
	}
}

// Problem is an error as a client sees it (RFC 9457).
type Problem struct {
	// Type is the code as a URI.
	Type string `json:"type" format:"uri" example:"urn:fencepost:problem:lock_held"`
	// Title says what the code means, always in the same words.
	Title string `json:"title" example:"The lock is held"`
	// Status of the response.
	Status int `json:"status" minimum:"400" maximum:"599" example:"423"`
	// Detail says what is wrong with this request, for a person.
	Detail string `json:"detail,omitempty" example:"others are in front; with wait_seconds the request would queue"`
	// Code says what went wrong, for a program.
	Code string `json:"code" example:"lock_held"`
	// RequestID finds the request in the server's log.
	RequestID string `json:"request_id" example:"4f1a7c0b9d2e83a6"`

	// Field of the request that is at fault. With invalid_request.
	Field string `json:"field,omitempty" example:"ttl_seconds"`
	// Reason for which the entry is gone. With lock_lost.
	Reason string `json:"reason,omitempty" enums:"released,expired,revoked,wait_timeout,deadlock,mode_mismatch,unknown"`
	// MayHaveTakenEffect says whether the request may have been carried out all
	// the same. With store_unavailable, draining and overloaded, where it is false.
	MayHaveTakenEffect *bool `json:"may_have_taken_effect,omitempty"`

	// Holders of the lock. With lock_held and wait_timeout.
	Holders []Holder `json:"holders,omitempty"`
	// Waiting tells how many wait for the lock. With lock_held and wait_timeout.
	Waiting *int `json:"waiting,omitempty" minimum:"0" example:"3"`
	// InUse says as what the lock is in use. With mode_mismatch.
	InUse *SetLock `json:"in_use,omitempty"`

	// Locks of the set that others hold or wait for. With lock_held and wait_timeout.
	Locks []BusyLock `json:"locks,omitempty"`
	// Cycle of waits that the request would close; of a long one the first 32. With
	// deadlock.
	Cycle []CycleStep `json:"cycle,omitempty"`

	// Entry that still stands in the queue and can be gone on with at Location.
	// With store_unavailable and draining.
	Entry *Entry `json:"entry,omitempty"`
	// Set that still stands in its queues and can be gone on with at Location. With
	// store_unavailable and draining.
	Set *Set `json:"set,omitempty"`
}

// fail answers with err as a problem document.
func fail(c *gin.Context, err error) { failWith(c, err, nil) }

// failWith answers with err, and lets add put in what belongs to the case.
func failWith(c *gin.Context, err error, add func(*Problem)) {
	if errors.Is(err, context.Canceled) && c.Request.Context().Err() != nil {
		c.Abort()
		c.Status(statusClientGone)
		return
	}
	e := typed(err)
	k := kindOf(e.Code)
	p := &Problem{
		Type: "urn:fencepost:problem:" + string(e.Code), Title: k.title, Status: k.status, Detail: e.Detail,
		Code: string(e.Code), RequestID: requestID(c), Field: e.Field, Reason: string(e.Reason),
	}
	if k.status == http.StatusServiceUnavailable || e.Code == lock.Overloaded {
		p.MayHaveTakenEffect = &e.Ambiguous
	}
	if e.InUse != nil {
		p.InUse = &SetLock{Name: e.InUse.Name, Mode: string(e.InUse.Mode), Limit: e.InUse.Limit}
	}
	if add != nil {
		add(p)
	}
	if e.RetryAfter > 0 {
		c.Header("Retry-After", strconv.Itoa(int(math.Ceil(e.RetryAfter.Seconds()))))
	}
	note(c, slog.String("code", string(e.Code)))
	if k.status >= http.StatusInternalServerError {
		noteCause(c, err)
	}
	recordOf(c).draining = e.Code == lock.Draining
	c.Abort()
	write(c, k.status, "application/problem+json", p)
}

// typed returns err as the one error type. Anything else is internal, and its
// text stays in the log.
func typed(err error) *lock.Error {
	var e *lock.Error
	switch {
	case errors.As(err, &e) && kindOf(e.Code).status != http.StatusInternalServerError:
		return e
	case errors.Is(err, context.DeadlineExceeded):
		return &lock.Error{Code: lock.StoreUnavailable, Detail: "the request took too long", RetryAfter: time.Second, Ambiguous: true}
	}
	return &lock.Error{Code: lock.Internal, Detail: "something went wrong in the server; the request id finds it in the log"}
}
