package handlers

import (
	"errors"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/fencepost/fencepost/api"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service"
)

const maxIdempotencyKey = 200 // characters

// acquire takes the lock, or a place in its queue.
//
// @Summary     Acquire a lock
// @ID          acquireLock
// @Description Puts an entry into the lock's queue and waits for the grant, for at most wait_seconds in all and 50 seconds in one request. An Idempotency-Key whose entry has ended answers 410 for ten minutes.
// @Tags        locks
// @Accept      json
// @Produce     json
// @Security    bearer[locks:write]
// @Param       name             path   string      true  "Lock name"
// @Param       Idempotency-Key  header string      false "Makes a repeated request the same entry; printable characters" minlength(1) maxlength(200)
// @Param       body             body   api.AcquireBody false "How to acquire"
// @Success     201 {object} api.HeldEntry "The lock is held"
// @Success     202 {object} api.WaitingEntry "The entry still waits; go on at Location, or repeat the request with its Idempotency-Key"
// @Failure     400 {object} api.Problem "invalid_request, invalid_name"
// @Failure     401 {object} api.Problem "unauthenticated"
// @Failure     403 {object} api.Problem "forbidden"
// @Failure     409 {object} api.Problem "idempotency_mismatch, mode_mismatch, deadlock"
// @Failure     410 {object} api.Problem "lock_lost"
// @Failure     413 {object} api.Problem "body_too_large"
// @Failure     415 {object} api.Problem "unsupported_media_type"
// @Failure     423 {object} api.Problem "lock_held, wait_timeout"
// @Failure     429 {object} api.Problem "overloaded, quota_exceeded"
// @Failure     500 {object} api.Problem "internal"
// @Failure     503 {object} api.Problem "store_unavailable, draining"
// @Header      503 {string} Location "Where to go on waiting, if the entry still stands"
// @Router      /locks/{name} [post]
func (a *endpoints) acquire(c *gin.Context) {
	req, err := a.acquireRequest(c)
	if err != nil {
		fail(c, err)
		return
	}
	recordOf(c).waits = req.Wait > 0
	g, err := a.Locks.Acquire(c.Request.Context(), req)
	answerWait(c, g, err, http.StatusCreated)
}

func (a *endpoints) acquireRequest(c *gin.Context) (service.AcquireRequest, error) {
	p := principal(c)
	req := service.AcquireRequest{Tenant: p.Tenant, Holder: p.Subject}
	key, err := idempotencyKey(c)
	if err != nil {
		return req, err
	}
	req.IdempotencyKey = key
	var body api.AcquireBody
	if err := readJSON(c, &body); err != nil {
		return req, err
	}
	req.Claims = []lock.Claim{claimOf(recordOf(c).name, body.Mode, body.Limit)}
	return req, apply(&body.Terms, &req)
}

// claimOf reads what is asked of a lock. The service checks what it comes to.
func claimOf(name string, mode *string, limit *api.Whole) lock.Claim {
	c := lock.Claim{Name: name, Mode: lock.Exclusive}
	if mode != nil {
		c.Mode = lock.Mode(*mode)
	}
	if limit != nil {
		if c.Limit = int(*limit); c.Limit == 0 {
			c.Limit = outOfBounds // 0 is none there
		}
	}
	return c
}

// outOfBounds stands for a 0 that was sent where 0 means that nothing was.
const outOfBounds = -1

// apply puts what the terms say into the request. The service checks bounds.
func apply(b *api.Terms, req *service.AcquireRequest) error {
	if b.TTLSeconds != nil {
		if req.TTL = b.TTLSeconds.Duration(); req.TTL == 0 {
			req.TTL = outOfBounds
		}
	}
	if b.WaitSeconds != nil {
		req.Wait = b.WaitSeconds.Duration()
	}
	if b.Holder != nil {
		if *b.Holder == "" { // which the service could not tell from none
			return lock.Invalid("holder", "must not be empty")
		}
		req.Holder, req.Named = *b.Holder, true
	}
	for k, v := range b.Metadata {
		if v == nil {
			return lock.Invalid("metadata", "must be an object of strings")
		}
		if req.Metadata == nil {
			req.Metadata = make(map[string]string, len(b.Metadata))
		}
		req.Metadata[k] = *v
	}
	return nil
}

func idempotencyKey(c *gin.Context) (string, error) {
	values, sent := c.Request.Header["Idempotency-Key"]
	if !sent {
		return "", nil
	}
	if len(values) > 1 || values[0] == "" || len(values[0]) > maxIdempotencyKey || !printable(values[0]) {
		return "", lock.Invalid("Idempotency-Key", "must be 1 to %d printable characters", maxIdempotencyKey)
	}
	return values[0], nil
}

func printable(s string) bool {
	for i := range len(s) {
		if s[i] < 0x20 || s[i] > 0x7e {
			return false
		}
	}
	return true
}

// answerWait answers a request that may have waited. held is the status of a
// grant.
func answerWait(c *gin.Context, g *service.Grant, err error, held int) {
	switch {
	case err != nil:
		failWait(c, g, err)
	case g.Held:
		c.Header("Location", location(g.Entry))
		respond(c, held, answerOf(g))
	default:
		c.Header("Location", location(g.Entry))
		respond(c, http.StatusAccepted, answerOf(g))
	}
}

// failWait adds to an error who is in the way, or the entry that still stands.
func failWait(c *gin.Context, g *service.Grant, err error) {
	if g == nil {
		failWith(c, err, func(p *api.Problem) { p.Cycle = cycleIn(err, principal(c).MayUse) })
		return
	}
	// A refusal that is too large for now does without the holders: that it is refused
	// has to be said, and once.
	if size := fitRefusal(g); size > smallAnswer && !recordOf(c).endpoints.take(c, size, false) {
		hideHolders(g)
	}
	failWith(c, err, func(p *api.Problem) {
		switch busy := errors.Is(err, lock.Held) || errors.Is(err, lock.TimedOut); {
		case busy && g.Entry.Set:
			p.Locks = busyOf(g.Busy)
		case busy:
			p.Holders, p.Waiting = holdersOf(g.Holders, g.Entry.Name()), &g.Waiters
		case g.Entry.Set:
			p.Set = setOf(g)
			c.Header("Location", location(g.Entry))
		default:
			p.Entry = entryOf(g)
			c.Header("Location", location(g.Entry))
		}
	})
}

// answerOf is what a client sees of an entry: a lock, or a set of them, held or
// waiting.
func answerOf(g *service.Grant) any {
	switch {
	case g.Entry.Set && g.Held:
		return setOf(g).Held
	case g.Entry.Set:
		return setOf(g).Waiting
	case g.Held:
		return entryOf(g).Held
	}
	return entryOf(g).Waiting
}

// location is where an entry can be asked for; names need no escaping there.
func location(e *lock.Entry) string {
	if e.Set {
		return "/locksets/" + string(e.ID)
	}
	return "/locks/" + e.Name() + "/entries/" + string(e.ID)
}

// renew starts the lease anew.
//
// @Summary     Renew a lease
// @ID          renewLock
// @Description Starts the lease anew for its full TTL and proves that the entry is still there. Works on a waiting entry too, and keeps its place.
// @Tags        locks
// @Produce     json
// @Security    bearer[locks:write]
// @Param       name       path   string true "Lock name"
// @Param       Lock-Token header string true "The entry's token"
// @Success     200 {object} api.Entry "The entry with its new expires_at"
// @Failure     400 {object} api.Problem "invalid_request, invalid_name"
// @Failure     401 {object} api.Problem "unauthenticated"
// @Failure     403 {object} api.Problem "forbidden, token_mismatch"
// @Failure     409 {object} api.Problem "mode_mismatch, deadlock"
// @Failure     410 {object} api.Problem "lock_lost"
// @Failure     413 {object} api.Problem "body_too_large"
// @Failure     415 {object} api.Problem "unsupported_media_type"
// @Failure     500 {object} api.Problem "internal"
// @Failure     503 {object} api.Problem "store_unavailable"
// @Router      /locks/{name}/renew [put]
func (a *endpoints) renew(c *gin.Context) {
	req, err := tokenRequest(c)
	if err != nil {
		fail(c, err)
		return
	}
	g, err := a.Locks.Renew(c.Request.Context(), req)
	if err != nil {
		failWait(c, nil, err)
		return
	}
	respond(c, http.StatusOK, answerOf(g))
}

// release gives the lock back, or the place in its queue.
//
// @Summary     Release a lock
// @ID          releaseLock
// @Description Removes the entry, held or waiting. Repeating it answers 410 with the reason released.
// @Tags        locks
// @Produce     json
// @Security    bearer[locks:write]
// @Param       name       path   string true "Lock name"
// @Param       Lock-Token header string true "The entry's token"
// @Success     204 "Released"
// @Failure     400 {object} api.Problem "invalid_request, invalid_name"
// @Failure     401 {object} api.Problem "unauthenticated"
// @Failure     403 {object} api.Problem "forbidden, token_mismatch"
// @Failure     410 {object} api.Problem "lock_lost"
// @Failure     413 {object} api.Problem "body_too_large"
// @Failure     415 {object} api.Problem "unsupported_media_type"
// @Failure     500 {object} api.Problem "internal"
// @Failure     503 {object} api.Problem "store_unavailable"
// @Router      /locks/{name} [delete]
func (a *endpoints) release(c *gin.Context) {
	req, err := tokenRequest(c)
	if err == nil {
		err = a.Locks.Release(c.Request.Context(), req)
	}
	if err != nil {
		fail(c, err)
		return
	}
	c.Status(http.StatusNoContent)
	c.Writer.Flush()
}

// entry tells how an entry stands, or waits for its grant.
//
// @Summary     Look at an entry, or go on waiting with it
// @ID          getEntry
// @Tags        locks
// @Produce     json
// @Security    bearer[locks:read]
// @Security    bearer[locks:write]
// @Param       name         path   string true  "Lock name"
// @Param       id           path   string true  "Entry id"
// @Param       Lock-Token   header string true  "The entry's token"
// @Param       wait_seconds query  number false "How long to wait for the grant; one request waits for at most 50" minimum(0) maximum(86400)
// @Success     200 {object} api.Entry "The entry holds, or waits and was not to be waited for"
// @Success     202 {object} api.WaitingEntry "The entry still waits after wait_seconds"
// @Header      200 {string} Location "Where the entry can be asked for, if it was waited for"
// @Failure     400 {object} api.Problem "invalid_request, invalid_name"
// @Failure     401 {object} api.Problem "unauthenticated"
// @Failure     403 {object} api.Problem "forbidden, token_mismatch"
// @Failure     409 {object} api.Problem "mode_mismatch, deadlock"
// @Failure     410 {object} api.Problem "lock_lost"
// @Failure     413 {object} api.Problem "body_too_large"
// @Failure     415 {object} api.Problem "unsupported_media_type"
// @Failure     423 {object} api.Problem "wait_timeout"
// @Failure     429 {object} api.Problem "overloaded"
// @Failure     500 {object} api.Problem "internal"
// @Failure     503 {object} api.Problem "store_unavailable, draining"
// @Header      503 {string} Location "Where to go on waiting, if the entry still stands"
// @Router      /locks/{name}/entries/{id} [get]
func (a *endpoints) entry(c *gin.Context) {
	req, err := tokenRequest(c)
	if err != nil {
		fail(c, err)
		return
	}
	wait, err := waitParam(c)
	if err != nil {
		fail(c, err)
		return
	}
	recordOf(c).waits = wait > 0
	g, err := a.Locks.Entry(c.Request.Context(), req, wait)
	if err == nil && wait == 0 {
		respond(c, http.StatusOK, answerOf(g))
		return
	}
	answerWait(c, g, err, http.StatusOK)
}

func waitParam(c *gin.Context) (time.Duration, error) {
	const longest = 24 * time.Hour
	text, sent := c.GetQuery("wait_seconds")
	if !sent {
		return 0, nil
	}
	wait := api.Decimal(text).Duration
	if !api.IsDecimal(text) || wait() < 0 || wait() > longest {
		return 0, lock.Invalid("wait_seconds", "must be a number from 0 to %g", longest.Seconds())
	}
	return wait(), nil
}

// tokenRequest reads the lock token, and the body, of which only an empty object
// has a meaning here.
func tokenRequest(c *gin.Context) (service.TokenRequest, error) {
	p := principal(c)
	req := service.TokenRequest{Tenant: p.Tenant, Name: recordOf(c).name, ID: lock.ID(c.Param("id"))}
	if req.Name == "" {
		req.Set, req.May = true, p.MayUse
	}
	if err := readJSON(c, &struct{}{}); err != nil {
		return req, err
	}
	values := c.Request.Header["Lock-Token"]
	if len(values) != 1 || values[0] == "" {
		return req, lock.Invalid("Lock-Token", "must be sent, once, as a header")
	}
	req.Token = values[0]
	return req, nil
}
