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

	"github.com/fencepost/fencepost/api"
	"github.com/fencepost/fencepost/lock"
)

// statusClientGone is what the access log shows for a request whose client went
// away before the answer, or closed its side of the connection, which looks the
// same. It is never sent: the connection is closed without an answer.
const statusClientGone = 499

// fail answers with err as a problem document.
func fail(c *gin.Context, err error) { failWith(c, err, nil) }

// failWith answers with err, and lets add put in what belongs to the case.
func failWith(c *gin.Context, err error, add func(*api.Problem)) {
	if errors.Is(err, context.Canceled) && c.Request.Context().Err() != nil {
		c.Abort()
		c.Status(statusClientGone)
		return
	}
	e := typed(err)
	code := api.Code(e.Code)
	status := code.Status()
	p := &api.Problem{
		Type: "urn:fencepost:problem:" + string(e.Code), Title: code.Title(), Status: status, Detail: e.Detail,
		Code: code, RequestID: requestID(c), Field: e.Field, Reason: string(e.Reason),
	}
	if status == http.StatusServiceUnavailable || e.Code == lock.Overloaded {
		p.MayHaveTakenEffect = &e.Ambiguous
	}
	if e.InUse != nil {
		p.InUse = &api.SetLock{Name: e.InUse.Name, Mode: string(e.InUse.Mode), Limit: e.InUse.Limit}
	}
	if add != nil {
		add(p)
	}
	if e.RetryAfter > 0 {
		c.Header("Retry-After", strconv.Itoa(int(math.Ceil(e.RetryAfter.Seconds()))))
	}
	note(c, slog.String("code", string(e.Code)))
	if status >= http.StatusInternalServerError {
		noteCause(c, err)
	}
	recordOf(c).draining = e.Code == lock.Draining
	c.Abort()
	write(c, status, "application/problem+json", p)
}

// typed returns err as the one error type. Anything else is internal, and its
// text stays in the log.
func typed(err error) *lock.Error {
	var e *lock.Error
	switch {
	case errors.As(err, &e) && api.Code(e.Code).Status() != http.StatusInternalServerError:
		return e
	case errors.Is(err, context.DeadlineExceeded):
		return &lock.Error{Code: lock.StoreUnavailable, Detail: "the request took too long", RetryAfter: time.Second, Ambiguous: true}
	}
	return &lock.Error{Code: lock.Internal, Detail: "something went wrong in the server; the request id finds it in the log"}
}
