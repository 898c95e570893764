package handlers

import (
	"context"
	"errors"
	"fmt"
	"html"
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
	if errors.Is(err, context.Canceled) && r.ended() {
		why := r.whyGone()
		if why == clientGone {
			r.Status(statusClientGone)
			return
		}
		err = r.challenge(lock.Errorf(lock.Unauthenticated, "%s", why))
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
		p.InUse = new(setLockOf(*e.InUse))
	}
	if e.Closure != nil {
		p.Until, p.Reason = new(api.InstantOf(e.Closure.Until)), e.Closure.Reason
	}
	if e.Quota != nil {
		p.Quota, p.Limit, p.Used = e.Quota.Name, &e.Quota.Limit, &e.Quota.Used
		noteRefusal(r, e.Quota)
	}
	var more *detailed
	if errors.As(err, &more) {
		more.add(p)
	}
	if e.RetryAfter > 0 {
		r.Header("Retry-After", strconv.Itoa(int(math.Ceil(e.RetryAfter.Seconds()))))
	}
	r.note(slog.String("code", string(e.Code)))
	r.line.refused.code = e.Code
	if status >= http.StatusInternalServerError {
		r.line.cause = err
	}
	r.line.expected = e.Code == lock.Draining
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
		return &lock.Error{
			Code:       lock.StoreUnavailable,
			Detail:     "the request took too long; retry with the same Idempotency-Key",
			RetryAfter: time.Second, OutcomeUnknown: true,
		}
	}
	return &lock.Error{
		Code: lock.Internal,
		Detail: "something went wrong in the server; " +
			"retry, and find the cause by the request id in its log",
	}
}

// errOverloaded rejects a request because too many of its kind are under way, of the tenant or in
// all.
func errOverloaded(kind string) error {
	return &lock.Error{
		Code: lock.Overloaded, RetryAfter: time.Second,
		Detail: "too many " + kind + " are under way; retry after Retry-After",
	}
}

// problemPage shows a code: title, code, status, when, advice.
const problemPage = `<!doctype html>
<html lang="en"><meta charset="utf-8"><title>%[1]s - Fencepost</title>
<style>body{font:1rem/1.5 system-ui,sans-serif;max-width:40rem;margin:3rem auto;padding:0 1rem}</style>
<h1>%[1]s</h1>
<p><code>%[2]s</code>, HTTP status %[3]d</p>
<p>%[4]s</p>
<p><b>What to do.</b> %[5]s</p>
</html>
`

// getProblem explains a code.
//
// @Summary  Read what a problem means
// @Produce  html
// @Param    code path string true "Code of the problem"
// @Success  200 {string} string "A page that explains the code"
// @Failure  404 {object} api.Problem "not_found"
// @Router   /problems/{code} [get]
func getProblem(r *request) error {
	code := api.Code(r.Param("code"))
	if !code.Known() {
		return nothingHere(r)
	}
	page := fmt.Sprintf(problemPage, html.EscapeString(code.Title()), code, code.Status(),
		html.EscapeString(code.When()), html.EscapeString(code.Advice()))
	r.Header("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
	r.Data(http.StatusOK, "text/html; charset=utf-8", []byte(page))
	return nil
}
