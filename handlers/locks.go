package handlers

import (
	"errors"
	"net/http"
	"time"

	"github.com/fencepost/fencepost/api"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service"
)

const maxIdempotencyKey = 200 // characters

// acquireLock takes the lock, or a place in its queue.
//
// @Summary     Acquire a lock
// @Description Joins the queue of a lock and waits for the grant, for up to 50 seconds in one request.
// @Security    bearer[locks:write]
// @Param       name             path   string      true  "Lock name"
// @Param       Idempotency-Key  header string      false "Makes a retry return the same entry; 1 to 200 printable characters" minlength(1) maxlength(200)
// @Param       Prefer           header string      false "`wait=N` holds this request open for at most N seconds; `respond-async` answers at once, as `async` does"
// @Param       body             body   api.AcquireBody false "How to acquire"
// @Success     201 {object} api.HeldEntry "The lock is held"
// @Success     202 {object} api.WaitingEntry "The entry waits; resume at `Location`, or repeat the request with its `Idempotency-Key`"
// @Failure     409 {object} api.Problem "idempotency_mismatch, mode_mismatch, deadlock, superseded, no_callback_secret"
// @Failure     410 {object} api.Problem "lock_lost"
// @Failure     423 {object} api.Problem "lock_held, wait_timeout, lock_closed"
// @Failure     429 {object} api.Problem "overloaded, quota_exceeded, rate_limited"
// @Failure     503 {object} api.Problem "store_unavailable, draining, fence_floor_required"
// @Header      202 {string} Location "Where the entry can be asked for, and waited for"
// @Header      201 {string} Idempotency-Replayed "true if an earlier request with the key wrote the entry"
// @Header      202 {string} Idempotency-Replayed "true if an earlier request with the key wrote the entry"
// @Header      410 {string} Idempotency-Replayed "true if the key was used by an entry that has ended"
// @Header      201 {string} Preference-Applied "respond-async, if that was preferred"
// @Header      202 {string} Preference-Applied "respond-async, if that was preferred"
// @Header      503 {string} Location "Where to go on waiting, if the entry still stands"
// @Router      /locks/{name} [post]
func acquireLock(r *request, body *api.AcquireBody) (reply, error) {
	var req service.AcquireRequest
	if err := readTerms(r, &body.Terms, &req); err != nil {
		return reply{}, err
	}
	req.Claims = []lock.Claim{claimOf(r.name, body.Mode, body.Limit, body.Permits)}
	return enqueue(r, &req)
}

// enqueue takes what is asked for, or a place in the queues of all of it.
func enqueue(r *request, req *service.AcquireRequest) (reply, error) {
	req.PrefersAsync, req.Hold = prefersAsync(r.Request.Header), preferredHold(r.Request.Header)
	if err := checkCallback(r, req); err != nil {
		return reply{}, err
	}
	if req.Wait > 0 && !req.Async {
		defer r.lasts(req.Wait)()
	}
	req.Trace = r.Request.Header.Get("Traceparent")
	g, err := r.endpoints.Service.Acquire(r.context(), *req)
	if err != nil {
		return reply{}, explainWait(r, g, err)
	}
	return enqueued(r, req, g), nil
}

// enqueued answers with the entry, which is held or waits.
func enqueued(r *request, req *service.AcquireRequest, g *service.Grant) reply {
	if req.PrefersAsync && g.Entry.Async {
		r.Header("Preference-Applied", respondAsync)
	}
	if g.Replayed {
		r.Header(replayedHeader, "true")
	}
	status := http.StatusAccepted
	if g.Held {
		status = http.StatusCreated
	}
	return r.at(location(g.Entry), reply{status: status, body: answerOf(g)})
}

// checkCallback finds out whether there can be the callback that is asked for, and what
// signs it.
func checkCallback(r *request, req *service.AcquireRequest) (err error) {
	switch {
	case req.Callback == nil:
		return nil
	case !req.Async && !req.PrefersAsync:
		return lock.Invalid("callback_url", "is for async requests; set async, or leave it out")
	}
	req.Callback, err = r.endpoints.Webhooks.Callback(r.context(), req.Tenant, req.Callback.URL)
	return err
}

// readTerms reads into req what is the same for one lock and for a set. It returns no copy, which
// would stay on the stack of each waiting request.
func readTerms(r *request, terms *api.Terms, req *service.AcquireRequest) (err error) {
	who := r.principal
	req.Tenant, req.Subject, req.Holder = who.Tenant, who.Subject, who.Subject
	if req.IdempotencyKey, err = idempotencyKey(r.Request.Header); err != nil {
		return err
	}
	return apply(terms, req)
}

// claimOf reads what is asked of a lock. The service checks what it comes to.
func claimOf(name string, mode *string, limit, permits *api.Whole) lock.Claim {
	c := lock.Claim{Name: name, Mode: lock.Exclusive}
	if mode != nil {
		c.Mode = lock.Mode(*mode)
	}
	if limit != nil {
		c.Limit = sent(*limit)
	}
	if permits != nil {
		c.Permits = sent(*permits)
	} else if c.Mode == lock.Semaphore {
		c.Permits = 1
	}
	return c
}

// sent returns a number as the service takes it, where 0 is none.
func sent(n api.Whole) int {
	if n == 0 {
		return outOfBounds
	}
	return int(n)
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
	req.Async = b.Async != nil && *b.Async
	req.OnlyNewest = b.OnlyNewest != nil && *b.OnlyNewest
	if b.CallbackURL != nil {
		req.Callback = &lock.Callback{URL: *b.CallbackURL}
	}
	if b.RequestRelease != nil {
		req.AskWithin = new(time.Duration)
		if within := b.RequestRelease.WithinSeconds; within != nil {
			*req.AskWithin = within.Duration()
		}
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

// explainWait adds to an error the holders, or the entry that still stands.
func explainWait(r *request, g *service.Grant, err error) error {
	if g == nil {
		return &detailed{err, func(p *api.Problem) { p.Cycle = cycleIn(err, r.principal.MayUse) }}
	}
	// A refusal that is too large for now goes without the holders.
	if size := fitRefusal(g); size > smallAnswer && !r.bytes.take(r.tenant(), size) {
		hideHolders(g)
	}
	busy := errors.Is(err, lock.Held) || errors.Is(err, lock.TimedOut)
	return &detailed{err, func(p *api.Problem) {
		switch {
		case busy:
			describeBusy(p, g)
		case g.Entry.Set:
			p.Set = setOf(g)
			r.Header("Location", r.under(location(g.Entry)))
		default:
			p.Entry = new(entryOf(g))
			r.Header("Location", r.under(location(g.Entry)))
		}
	}}
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

// renewLock restarts the lease.
//
// @Summary     Renew a lease
// @Description Restarts the lease for its full TTL. A waiting entry keeps its position.
// @Security    bearer[locks:write]
// @Param       name       path   string true "Lock name"
// @Param       Lock-Token header string true "The entry's token"
// @Success     200 {object} api.Entry "The entry with its new expires_at"
// @Failure     403 {object} api.Problem "forbidden, token_mismatch"
// @Failure     409 {object} api.Problem "mode_mismatch, deadlock, superseded"
// @Failure     410 {object} api.Problem "lock_lost"
// @Failure     503 {object} api.Problem "store_unavailable, fence_floor_required"
// @Router      /locks/{name}/renew [put]
func renewLock(r *request, _ *empty) (reply, error) { return renew(r, ofLock(r)) }

func renew(r *request, req service.TokenRequest) (reply, error) {
	if err := readTokenHeader(r, &req); err != nil {
		return reply{}, err
	}
	g, err := r.endpoints.Entries.Renew(r.context(), req)
	if err != nil {
		return reply{}, explainWait(r, nil, err)
	}
	return ok(answerOf(g)), nil
}

// releaseLock gives the lock back, or the place in its queue.
//
// @Summary     Release a lock
// @Description Removes the entry, whether it holds or waits. A second release gets 410 with the reason `released`.
// @Security    bearer[locks:write]
// @Param       name       path   string true "Lock name"
// @Param       Lock-Token header string true "The entry's token"
// @Success     204 "Released"
// @Failure     403 {object} api.Problem "forbidden, token_mismatch"
// @Failure     410 {object} api.Problem "lock_lost"
// @Failure     503 {object} api.Problem "store_unavailable, fence_floor_required"
// @Router      /locks/{name} [delete]
func releaseLock(r *request, _ *empty) (reply, error) { return release(r, ofLock(r)) }

func release(r *request, req service.TokenRequest) (reply, error) {
	if err := readTokenHeader(r, &req); err != nil {
		return reply{}, err
	}
	return noContent(), r.endpoints.Entries.Release(r.context(), req)
}

// getEntry tells how an entry stands, or waits for its grant.
//
// @Summary     Look at an entry or wait for it
// @Description Returns an entry by its token. With `wait_seconds` the request waits for the grant.
// @Security    bearer[locks:read]
// @Security    bearer[locks:write]
// @Param       name         path   string true  "Lock name"
// @Param       id           path   string true  "Entry id"
// @Param       Lock-Token   header string true  "The entry's token"
// @Param       wait_seconds query  number false "How long to wait for the grant; one request waits for at most 50" minimum(0) maximum(86400)
// @Success     200 {object} api.Entry "The entry, with its state"
// @Failure     403 {object} api.Problem "forbidden, token_mismatch"
// @Failure     409 {object} api.Problem "mode_mismatch, deadlock, superseded"
// @Failure     410 {object} api.Problem "lock_lost"
// @Failure     413 {object} api.Problem "body_too_large"
// @Failure     415 {object} api.Problem "unsupported_media_type"
// @Failure     423 {object} api.Problem "wait_timeout"
// @Failure     503 {object} api.Problem "store_unavailable, draining, fence_floor_required"
// @Header      503 {string} Location "Where to go on waiting, if the entry still stands"
// @Router      /locks/{name}/entries/{id} [get]
func getEntry(r *request, _ *empty) (reply, error) { return awaitGrant(r, ofLock(r)) }

func awaitGrant(r *request, req service.TokenRequest) (reply, error) {
	if err := readTokenHeader(r, &req); err != nil {
		return reply{}, err
	}
	q := r.query()
	wait := q.wait()
	if q.err != nil {
		return reply{}, q.err
	}
	if wait > 0 {
		defer r.lasts(wait)()
	}
	g, err := r.endpoints.Service.Entry(r.context(), req, wait)
	if err != nil {
		return reply{}, explainWait(r, g, err)
	}
	return ok(answerOf(g)), nil
}

// ofLock asks for an entry of the lock in the path, by its id if that has one.
func ofLock(r *request) service.TokenRequest {
	return service.TokenRequest{Tenant: r.tenant(), Name: r.name, ID: lock.ID(r.Param("id"))}
}

// ofSet asks for the set in the path, if the bearer token may use its locks.
func ofSet(r *request) service.TokenRequest {
	return service.TokenRequest{
		Tenant: r.tenant(), Set: true, ID: lock.ID(r.Param("id")), May: r.principal.MayUse,
	}
}
