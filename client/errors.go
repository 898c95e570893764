package client

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/fencepost/fencepost/api"
)

// Codes of errors that no server sent.
const (
	// NoAnswer means that no server answered in time. What was asked may have taken effect.
	NoAnswer api.Code = "no_answer"
	// Cancelled means that the context of the call ended, or the client was closed. A request that
	// waited leaves its queue in the background, as far as the servers can be reached.
	Cancelled api.Code = "cancelled"
	// BadWebhook means that a webhook is not signed with a secret of the receiver, or is not of now.
	BadWebhook api.Code = "bad_webhook"
)

// Error is why a call failed: the problem that the server sent, or one with a code of this package.
type Error struct {
	api.Problem
	// RetryAfter is when the server expects that a retry succeeds; 0 if it does not say.
	RetryAfter time.Duration

	base  string // URL of the server that failed
	cause error
}

// Error names the problem, its detail, code and request id, and the base URL that failed.
func (e *Error) Error() string {
	text := "fencepost: " + e.Title
	if e.Detail != "" {
		text += ": " + e.Detail
	}
	if e.Code != "" {
		text += " (" + string(e.Code)
		if e.RequestID != "" {
			text += ", request " + e.RequestID
		}
		text += ")"
	}
	for _, part := range []string{e.base, textOf(e.cause)} {
		if part != "" {
			text += ": " + part
		}
	}
	return text
}

func textOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// Unwrap returns what the call met last, such as the error of the connection or of the context.
func (e *Error) Unwrap() error { return e.cause }

// Reasons of a [LostError] that no server sent.
const (
	// ReasonDeadline means that no renewal succeeded in time. The message says for how long.
	ReasonDeadline = "deadline"
	// ReasonClosed means that the client was closed.
	ReasonClosed = "closed"
	// ReasonNotGranted means that an event or a token is no grant that can be taken over.
	ReasonNotGranted = "not_granted"
)

// LostError says that a lock is not held any more, or that an entry in a queue is gone. Work under
// the lock has to stop. To go on, acquire again: the fence is then greater.
type LostError struct {
	// Name of the lock, or the names of a set with commas in between.
	Name string
	// Reason is what the server says, such as expired or revoked, or a reason of this package.
	Reason string
	// RevokeReason is what the operator said who revoked it, if the server knows.
	RevokeReason string
	// RequestID finds the answer in the server's log, if the server ended it.
	RequestID string

	unrenewed time.Duration // since the last renewal that succeeded was sent
	cause     error         // of the last renewal that failed
}

// Unwrap returns why the last renewal failed before the deadline, or nil.
func (e *LostError) Unwrap() error { return e.cause }

// Error says which lock is lost, and why.
func (e *LostError) Error() string {
	text := fmt.Sprintf("fencepost: %s is lost: %s", e.Name, e.Reason)
	if e.unrenewed > 0 {
		text += fmt.Sprintf(": no renewal succeeded for %v", e.unrenewed.Round(100*time.Millisecond))
	}
	if e.cause != nil {
		text += ": " + e.cause.Error()
	}
	if e.RevokeReason != "" {
		text += ": " + e.RevokeReason
	}
	if e.RequestID != "" {
		text += " (lock_lost, request " + e.RequestID + ")"
	}
	return text
}

// CodeOf returns the code of an error of this package: that of an [Error], lock_lost for a
// [LostError], and "" for others.
func CodeOf(err error) api.Code {
	var lost *LostError
	var e *Error
	switch {
	case errors.As(err, &lost):
		return api.Lost
	case errors.As(err, &e):
		return e.Code
	}
	return ""
}

// errReleased is the cause of the context of a lock that was released.
var errReleased = errors.New("fencepost: the lock is released")

// problemOf reads the error that an answer is. One that a proxy sent has no code.
func problemOf(a *answer) *Error {
	e := &Error{RetryAfter: retryAfter(a.header)}
	if json.Unmarshal(a.body, &e.Problem) != nil || e.Code == "" {
		e.Problem = api.Problem{Title: "the answer has the status " + strconv.Itoa(a.status)}
	}
	e.Status = a.status
	e.Entry, e.Set = nil, nil // these have the token of the lock
	return e
}

// lostOf reads why an entry is gone.
func lostOf(name string, e *Error) *LostError {
	return &LostError{
		Name: name, Reason: cmp.Or(e.Reason, "unknown"), RevokeReason: e.RevokeReason,
		RequestID: e.RequestID,
	}
}

func noAnswer(cause error) *Error { return newError(NoAnswer, "no server answered in time", cause) }

func cancelled(cause error) *Error { return newError(Cancelled, "the call was cancelled", cause) }

func newError(code api.Code, title string, cause error) *Error {
	return &Error{Problem: api.Problem{Code: code, Title: title}, cause: cause}
}

// retryAfter reads the header in seconds; servers of Fencepost send no dates.
func retryAfter(header http.Header) time.Duration {
	seconds, err := strconv.Atoi(header.Get("Retry-After"))
	if err != nil || seconds < 0 {
		return 0
	}
	return time.Duration(min(seconds, math.MaxInt32)) * time.Second
}
