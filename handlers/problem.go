package handlers

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/fencepost/fencepost/api"
	"github.com/fencepost/fencepost/lock"
)

// statusClientGone is what the access log shows for a request whose client went
// away before the answer, or closed its side of the connection, which looks the
// same. It is never sent: the connection is closed without an answer.
const statusClientGone = 499

// detailed is an error with what belongs to its case in a problem document.
type detailed struct {
	error
	add func(*api.Problem)
}

func (d *detailed) Unwrap() error { return d.error }

// fail answers with err as a problem document.
func (r *request) fail(err error) {
	if errors.Is(err, context.Canceled) && r.context().Err() != nil {
		if r.whyGone() != isWithdrawn {
			r.Status(statusClientGone)
			return
		}
		err = r.challenge(errWithdrawn())
	}
	e := typed(err)
	code := api.Code(e.Code)
	status := code.Status()
	p := &api.Problem{
		Type: r.under(code.Type()), Title: code.Title(), Status: status, Detail: e.Detail,
		Code: code, RequestID: r.id, Field: e.Field, Reason: string(e.Reason),
	}
	if status == http.StatusServiceUnavailable || e.Code == lock.Overloaded {
		p.MayHaveTakenEffect = &e.OutcomeUnknown
	}
	if p.RevokeReason = e.RevokeReason; e.Replayed {
		r.Header(replayedHeader, "true")
	}
	if e.InUse != nil {
		p.InUse = &api.SetLock{Name: e.InUse.Name, Mode: string(e.InUse.Mode), Limit: e.InUse.Limit}
	}
	if e.Closure != nil {
		until := api.InstantOf(e.Closure.Until)
		p.Until, p.Reason = &until, e.Closure.Reason
	}
	if e.Quota != nil {
		p.Quota, p.Limit, p.Used = e.Quota.Name, &e.Quota.Limit, &e.Quota.Used
		r.noteRefusal(e.Quota)
	}
	var more *detailed
	if errors.As(err, &more) {
		more.add(p)
	}
	if e.RetryAfter > 0 {
		r.Header("Retry-After", strconv.Itoa(int(math.Ceil(e.RetryAfter.Seconds()))))
	}
	r.note(slog.String("code", string(e.Code)))
	r.refused.code = e.Code
	if status >= http.StatusInternalServerError {
		r.cause = err
	}
	r.expected = e.Code == lock.Draining
	r.write(status, "application/problem+json", p)
}

// typed returns err as the one error type. Anything else is internal, and its
// text stays in the log.
func typed(err error) *lock.Error {
	var e *lock.Error
	switch {
	case errors.As(err, &e) && api.Code(e.Code).Status() != http.StatusInternalServerError:
		return e
	case errors.Is(err, context.DeadlineExceeded):
		return &lock.Error{Code: lock.StoreUnavailable, Detail: "the request took too long", RetryAfter: time.Second, OutcomeUnknown: true}
	}
	return &lock.Error{Code: lock.Internal, Detail: "something went wrong in the server; the request id finds it in the log"}
}

func errWithdrawn() error { return lock.Errorf(lock.Unauthenticated, isWithdrawn) }
