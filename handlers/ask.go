package handlers

import (
	"net/http"
	"time"

	"github.com/fencepost/fencepost/api"
	"github.com/fencepost/fencepost/service"
)

// requestRelease asks those who hold to finish.
//
// @Summary     Ask those who hold a lock to finish
// @Description For an entry that waits. Those who hold see it in the answer to their next renewal, and in lock.release_requested. Nothing is taken away from them. It counts for as long as the entry waits; to repeat it changes nothing.
// @Security    bearer[locks:write]
// @Param       name       path   string true  "Lock name"
// @Param       id         path   string true  "Entry id"
// @Param       Lock-Token header string true  "The entry's token"
// @Param       body       body   api.ReleaseWish false "Within what time it is hoped for"
// @Success     204 "They will be told"
// @Failure     400 {object} api.Problem "invalid_request, invalid_name"
// @Failure     403 {object} api.Problem "forbidden, token_mismatch"
// @Failure     409 {object} api.Problem "already_held"
// @Failure     410 {object} api.Problem "lock_lost"
// @Failure     429 {object} api.Problem "overloaded, quota_exceeded, rate_limited"
// @Failure     503 {object} api.Problem "store_unavailable, fence_floor_required"
// @Router      /locks/{name}/entries/{id}/request-release [post]
func requestRelease(r *request) error { return ask(r, ofLock(r)) }

// requestReleaseForSet asks those who hold what a set waits for to finish.
//
// @Summary     Ask those who hold what a set waits for to finish
// @ID          requestReleaseForLockSet
// @Description As for one lock. Only those are asked who hold a lock for which the set waits.
// @Security    bearer[locks:write]
// @Param       id         path   string true  "Set id"
// @Param       Lock-Token header string true  "The set's token"
// @Param       body       body   api.ReleaseWish false "Within what time it is hoped for"
// @Success     204 "They will be told"
// @Failure     403 {object} api.Problem "forbidden, token_mismatch"
// @Failure     409 {object} api.Problem "already_held"
// @Failure     410 {object} api.Problem "lock_lost"
// @Failure     429 {object} api.Problem "overloaded, quota_exceeded, rate_limited"
// @Failure     503 {object} api.Problem "store_unavailable, fence_floor_required"
// @Router      /locksets/{id}/request-release [post]
func requestReleaseForSet(r *request) error { return ask(r, ofSet(r)) }

func ask(r *request, req service.TokenRequest) error {
	var body api.ReleaseWish
	if err := r.readJSON(&body); err != nil {
		return err
	}
	if err := readTokenHeader(r, &req); err != nil {
		return err
	}
	if err := r.endpoints.Locks.RequestRelease(r.context(), req, wishOf(&body)); err != nil {
		return err
	}
	r.Status(http.StatusNoContent)
	r.Writer.Flush()
	return nil
}

// wishOf is the time that is wished for. The service checks its bounds.
func wishOf(wish *api.ReleaseWish) time.Duration {
	if wish.WithinSeconds == nil {
		return 0
	}
	return wish.WithinSeconds.Duration()
}
