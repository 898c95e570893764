package handlers

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service"
)

// Set is one acquisition of several locks as a whole. Its state says which of the
// two it is.
type Set struct {
	Held    *HeldSet
	Waiting *WaitingSet
}

// MarshalJSON writes the one that there is.
func (s *Set) MarshalJSON() ([]byte, error) {
	if s.Held != nil {
		return plainJSON(s.Held)
	}
	return plainJSON(s.Waiting)
}

// HeldSet is a set that holds all its locks.
type HeldSet struct {
	// ID of the set, the same for every request with its Idempotency-Key.
	ID string `json:"id" example:"5mdrk1w5pvy0wg1dcjt2b2gthr"`
	// Locks of the set in byte order of their names.
	Locks []HeldSetLock `json:"locks"`
	grantFields
	// State of the set.
	State string `json:"state" enums:"held" example:"held"`
	// WaitedSeconds is how long the grant took.
	WaitedSeconds seconds `json:"waited_seconds" swaggertype:"number" minimum:"0" example:"0.25"`
}

// WaitingSet is a set that stands in the queues of its locks.
type WaitingSet struct {
	// ID of the set, the same for every request with its Idempotency-Key.
	ID string `json:"id" example:"5mdrk1w5pvy0wg1dcjt2b2gthr"`
	// Locks of the set in byte order of their names.
	Locks []SetLock `json:"locks"`
	grantFields
	// State of the set.
	State string `json:"state" enums:"waiting" example:"waiting"`
	// Position in the queue where the set is furthest back, 1 is next.
	Position int `json:"position" minimum:"1" example:"3"`
}

// SetLock is one lock of a set.
type SetLock struct {
	// Name of the lock.
	Name string `json:"name" example:"orders:42"`
	// Mode in which the set shares the lock.
	Mode string `json:"mode" enums:"exclusive,shared,semaphore"`
	// Limit of a semaphore.
	Limit int `json:"limit,omitempty" minimum:"1" maximum:"1000000"`
}

// HeldSetLock is one lock of a set that holds.
type HeldSetLock struct {
	SetLock
	// Fence grows from each grant of the lock to the next, for ever; below 2^53.
	Fence uint64 `json:"fence" format:"int64" minimum:"1" maximum:"9007199254740991" example:"1042"`
}

// BusyLock is a lock of a set that was not granted, with those who use it.
type BusyLock struct {
	// Name of the lock.
	Name string `json:"name" example:"orders:42"`
	// Holders, the longest holding first, without their metadata.
	Holders []Holder `json:"holders"`
	// Waiting tells how many wait for the lock.
	Waiting int `json:"waiting" minimum:"0" example:"3"`
}

// UnmarshalJSON reads a claim as strictly as the body that it is in.
func (s *SetClaim) UnmarshalJSON(text []byte) error {
	type plain SetClaim
	text = bytes.TrimSpace(text)
	if len(text) == 0 || text[0] != '{' {
		return lock.Invalid("locks", "must be a list of objects")
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode((*plain)(s)); err != nil {
		return explainWithin("locks", err)
	}
	if err := checkMembers(text); err != nil {
		return explainWithin("locks", err)
	}
	return nil
}

// explainWithin names the field at fault by the one that it is in.
func explainWithin(field string, err error) error {
	err = explain(err)
	var e *lock.Error
	if errors.As(err, &e) && e.Field != "" {
		inner := *e
		inner.Field, inner.Detail = field+"."+e.Field, field+"."+e.Detail
		return &inner
	}
	return err
}

// acquireSet takes several locks, or a place in all their queues.
//
// @Summary     Acquire several locks, all or nothing
// @ID          acquireLockSet
// @Description Puts one entry into the queues of all the locks at once and waits until it holds in each, as for one lock. The order of the names does not matter: sets cannot deadlock each other. All sets of a tenant share their Idempotency-Keys, whatever their locks are.
// @Tags        locksets
// @Accept      json
// @Produce     json
// @Security    bearer[locks:write]
// @Param       Idempotency-Key  header string      false "Makes a repeated request the same entry; printable characters" minlength(1) maxlength(200)
// @Param       body             body   LockSetBody true  "Which locks, and how to acquire them"
// @Success     201 {object} HeldSet "All locks are held"
// @Success     202 {object} WaitingSet "The set still waits; go on at Location, or repeat the request with its Idempotency-Key"
// @Failure     400 {object} Problem "invalid_request"
// @Failure     401 {object} Problem "unauthenticated"
// @Failure     403 {object} Problem "forbidden"
// @Failure     409 {object} Problem "idempotency_mismatch, mode_mismatch, deadlock"
// @Failure     410 {object} Problem "lock_lost"
// @Failure     413 {object} Problem "body_too_large"
// @Failure     415 {object} Problem "unsupported_media_type"
// @Failure     423 {object} Problem "lock_held, wait_timeout"
// @Failure     429 {object} Problem "overloaded"
// @Failure     500 {object} Problem "internal"
// @Failure     503 {object} Problem "store_unavailable, draining"
// @Header      503 {string} Location "Where to go on waiting, if the set still stands"
// @Router      /locksets [post]
func (a *api) acquireSet(c *gin.Context) {
	req, err := setRequest(c)
	if err != nil {
		fail(c, err)
		return
	}
	note(c, slog.Int("locks", len(req.Claims)))
	recordOf(c).waits = req.Wait > 0
	g, err := a.Locks.Acquire(c.Request.Context(), req)
	answerWait(c, g, err, http.StatusCreated)
}

func setRequest(c *gin.Context) (service.AcquireRequest, error) {
	p := principal(c)
	req := service.AcquireRequest{Tenant: p.Tenant, Holder: p.Subject, Set: true}
	key, err := idempotencyKey(c)
	if err != nil {
		return req, err
	}
	req.IdempotencyKey = key
	var body LockSetBody
	if err := readJSON(c, &body); err != nil {
		return req, err
	}
	for _, l := range body.Locks {
		if lock.ValidName(l.Name) && !p.MayUse(l.Name) {
			return req, lock.Errorf(lock.Forbidden, "the bearer token is limited to other lock names")
		}
		req.Claims = append(req.Claims, claimOf(l.Name, l.Mode, l.Limit))
	}
	return req, body.apply(&req)
}

// renewSet starts the lease of a set anew.
//
// @Summary     Renew the lease of a set
// @ID          renewLockSet
// @Description Starts the one lease of all its locks anew for its full TTL and proves that the set is still there. Works on a waiting set too, and keeps its places.
// @Tags        locksets
// @Produce     json
// @Security    bearer[locks:write]
// @Param       id         path   string true "Set id"
// @Param       Lock-Token header string true "The set's token"
// @Success     200 {object} Set "The set with its new expires_at"
// @Failure     400 {object} Problem "invalid_request"
// @Failure     401 {object} Problem "unauthenticated"
// @Failure     403 {object} Problem "forbidden, token_mismatch"
// @Failure     409 {object} Problem "mode_mismatch, deadlock"
// @Failure     410 {object} Problem "lock_lost"
// @Failure     413 {object} Problem "body_too_large"
// @Failure     415 {object} Problem "unsupported_media_type"
// @Failure     500 {object} Problem "internal"
// @Failure     503 {object} Problem "store_unavailable"
// @Router      /locksets/{id}/renew [put]
func (a *api) renewSet(c *gin.Context) { a.renew(c) }

// releaseSet gives all locks of a set back, or its places in their queues.
//
// @Summary     Release a set
// @ID          releaseLockSet
// @Description Removes the set from all its locks at once, held or waiting. Repeating it answers 410 with the reason released.
// @Tags        locksets
// @Produce     json
// @Security    bearer[locks:write]
// @Param       id         path   string true "Set id"
// @Param       Lock-Token header string true "The set's token"
// @Success     204 "Released"
// @Failure     400 {object} Problem "invalid_request"
// @Failure     401 {object} Problem "unauthenticated"
// @Failure     403 {object} Problem "forbidden, token_mismatch"
// @Failure     410 {object} Problem "lock_lost"
// @Failure     413 {object} Problem "body_too_large"
// @Failure     415 {object} Problem "unsupported_media_type"
// @Failure     500 {object} Problem "internal"
// @Failure     503 {object} Problem "store_unavailable"
// @Router      /locksets/{id} [delete]
func (a *api) releaseSet(c *gin.Context) { a.release(c) }

// set tells how a set stands, or waits for its grant.
//
// @Summary     Look at a set, or go on waiting with it
// @ID          getLockSet
// @Tags        locksets
// @Produce     json
// @Security    bearer[locks:read]
// @Security    bearer[locks:write]
// @Param       id           path   string true  "Set id"
// @Param       Lock-Token   header string true  "The set's token"
// @Param       wait_seconds query  number false "How long to wait for the grant; one request waits for at most 50" minimum(0) maximum(86400)
// @Success     200 {object} Set "The set holds, or waits and was not to be waited for"
// @Success     202 {object} WaitingSet "The set still waits after wait_seconds"
// @Header      200 {string} Location "Where the set can be asked for, if it was waited for"
// @Failure     400 {object} Problem "invalid_request"
// @Failure     401 {object} Problem "unauthenticated"
// @Failure     403 {object} Problem "forbidden, token_mismatch"
// @Failure     409 {object} Problem "mode_mismatch, deadlock"
// @Failure     410 {object} Problem "lock_lost"
// @Failure     413 {object} Problem "body_too_large"
// @Failure     415 {object} Problem "unsupported_media_type"
// @Failure     423 {object} Problem "wait_timeout"
// @Failure     500 {object} Problem "internal"
// @Failure     503 {object} Problem "store_unavailable, draining"
// @Header      503 {string} Location "Where to go on waiting, if the set still stands"
// @Router      /locksets/{id} [get]
func (a *api) set(c *gin.Context) { a.entry(c) }

// setOf describes a set.
func setOf(g *service.Grant) *Set {
	id := string(g.Entry.ID)
	locks := make([]SetLock, 0, len(g.Entry.Claims))
	for _, c := range g.Entry.Claims {
		locks = append(locks, SetLock{Name: c.Name, Mode: string(c.Mode), Limit: c.Limit})
	}
	if !g.Held {
		return &Set{Waiting: &WaitingSet{ID: id, Locks: locks, grantFields: fieldsOf(g), State: "waiting", Position: max(1, g.Position)}}
	}
	held := make([]HeldSetLock, 0, len(locks))
	for _, l := range locks {
		held = append(held, HeldSetLock{l, g.Entry.Number})
	}
	return &Set{Held: &HeldSet{ID: id, Locks: held, grantFields: fieldsOf(g), State: "held", WaitedSeconds: inSeconds(g.Waited)}}
}

// busyOf describes the locks that somebody uses.
func busyOf(busy []service.Busy) []BusyLock {
	var out []BusyLock
	for _, b := range busy {
		if len(b.Holders) > 0 || b.Waiters > 0 {
			out = append(out, BusyLock{Name: b.Name, Holders: briefly(b.Holders, b.Name), Waiting: b.Waiters})
		}
	}
	return out
}
