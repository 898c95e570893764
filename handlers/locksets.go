package handlers

import (
	"log/slog"

	"github.com/fencepost/fencepost/api"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service"
)

// acquireLockSet takes several locks, or a place in all their queues.
//
// @Summary     Acquire several locks, all or nothing
// @Description Joins the queues of all the locks with one entry, and waits until it holds all of them, or with `any` so many. The order of the names matters only with `any`.
// @Security    bearer[locks:write]
// @Param       Idempotency-Key  header string      false "Makes a retry with the same `sub` return the same set; 1 to 200 printable characters" minlength(1) maxlength(200)
// @Param       Prefer           header string      false "`wait=N` holds this request open for at most N seconds; `respond-async` answers at once, as `async` does"
// @Param       body             body   api.LockSetBody true  "Which locks, and how to acquire them"
// @Success     201 {object} api.HeldSet "All locks are held, or `any` of them"
// @Success     202 {object} api.WaitingSet "The set waits; resume at `Location`, or repeat the request with its `Idempotency-Key`"
// @Failure     409 {object} api.Problem "idempotency_mismatch, mode_mismatch, deadlock, superseded, no_callback_secret"
// @Failure     410 {object} api.Problem "lock_lost"
// @Failure     423 {object} api.Problem "lock_held, wait_timeout, lock_closed"
// @Failure     429 {object} api.Problem "overloaded, quota_exceeded, rate_limited"
// @Failure     503 {object} api.Problem "store_unavailable, draining, fence_floor_required"
// @Header      202 {string} Location "Where the set can be asked for, and waited for"
// @Header      201 {string} Idempotency-Replayed "true if an earlier request with the key wrote the entry"
// @Header      202 {string} Idempotency-Replayed "true if an earlier request with the key wrote the entry"
// @Header      410 {string} Idempotency-Replayed "true if the key was used by an entry that has ended"
// @Header      201 {string} Preference-Applied "respond-async, if that was preferred"
// @Header      202 {string} Preference-Applied "respond-async, if that was preferred"
// @Header      503 {string} Location "Where to go on waiting, if the set still stands"
// @Router      /locksets [post]
func acquireLockSet(r *request, body *api.LockSetBody) (reply, error) {
	req := service.AcquireRequest{Set: true}
	if err := readTerms(r, &body.Terms, &req); err != nil {
		return reply{}, err
	}
	for _, l := range body.Locks {
		if lock.ValidName(l.Name) && !r.principal.MayUse(l.Name) {
			return reply{}, errOtherNames(l.Name)
		}
		req.Claims = append(req.Claims, claimOf(l.Name, l.Mode, l.Limit, l.Permits))
	}
	if body.Any != nil {
		req.Any = sent(*body.Any)
	}
	r.note(slog.Int("locks", len(req.Claims)))
	if err := r.charge(min(len(req.Claims), lock.MaxSetSize) - 1); err != nil {
		return reply{}, err
	}
	return enqueue(r, &req)
}

// renewLockSet restarts the lease of a set.
//
// @Summary     Renew the lease of a set
// @Description Restarts the one lease of all its locks. A waiting set keeps its positions.
// @Security    bearer[locks:write]
// @Param       id         path   string true "Set id"
// @Param       Lock-Token header string true "The set's token"
// @Success     200 {object} api.Set "The set with its new expires_at"
// @Failure     403 {object} api.Problem "forbidden, token_mismatch"
// @Failure     409 {object} api.Problem "mode_mismatch, deadlock, superseded"
// @Failure     410 {object} api.Problem "lock_lost"
// @Failure     503 {object} api.Problem "store_unavailable, fence_floor_required"
// @Router      /locksets/{id}/renew [put]
func renewLockSet(r *request, _ *empty) (reply, error) { return renew(r, ofSet(r)) }

// releaseLockSet gives all locks of a set back, or its places in their queues.
//
// @Summary     Release a set
// @Description Removes the set from all its queues at once. A second release gets 410 with the reason `released`.
// @Security    bearer[locks:write]
// @Param       id         path   string true "Set id"
// @Param       Lock-Token header string true "The set's token"
// @Success     204 "Released"
// @Failure     403 {object} api.Problem "forbidden, token_mismatch"
// @Failure     410 {object} api.Problem "lock_lost"
// @Failure     503 {object} api.Problem "store_unavailable, fence_floor_required"
// @Router      /locksets/{id} [delete]
func releaseLockSet(r *request, _ *empty) (reply, error) { return release(r, ofSet(r)) }

// getLockSet tells how a set stands, or waits for its grant.
//
// @Summary     Look at a set or wait for it
// @Description Returns a set by its token. With `wait_seconds` the request waits for the grant.
// @Security    bearer[locks:read]
// @Security    bearer[locks:write]
// @Param       id           path   string true  "Set id"
// @Param       Lock-Token   header string true  "The set's token"
// @Param       wait_seconds query  number false "How long to wait for the grant; one request waits for at most 50" minimum(0) maximum(86400)
// @Success     200 {object} api.Set "The set, with its state"
// @Failure     403 {object} api.Problem "forbidden, token_mismatch"
// @Failure     409 {object} api.Problem "mode_mismatch, deadlock, superseded"
// @Failure     410 {object} api.Problem "lock_lost"
// @Failure     413 {object} api.Problem "body_too_large"
// @Failure     415 {object} api.Problem "unsupported_media_type"
// @Failure     423 {object} api.Problem "wait_timeout"
// @Failure     503 {object} api.Problem "store_unavailable, draining, fence_floor_required"
// @Header      503 {string} Location "Where to go on waiting, if the set still stands"
// @Router      /locksets/{id} [get]
func getLockSet(r *request, _ *empty) (reply, error) { return awaitGrant(r, ofSet(r)) }

// setOf describes a set.
func setOf(g *service.Grant) *api.Set {
	id := string(g.Entry.ID)
	if !g.Held {
		return &api.Set{
			Waiting: &api.WaitingSet{
				ID: id, Locks: waitingLocks(g), Any: g.Entry.Any, GrantFields: fieldsOf(g), State: "waiting",
				Position: max(1, g.Position), WaitUntil: waitUntil(g.Entry),
			},
		}
	}
	held := make([]api.HeldSetLock, 0, len(g.Entry.Claims))
	for _, c := range g.Entry.Claims {
		held = append(held, api.HeldSetLock{SetLock: setLockOf(c), Fence: g.Entry.Number})
	}
	return &api.Set{Held: &api.HeldSet{
		ID: id, Locks: held, Any: g.Entry.Any, GrantFields: fieldsOf(g), State: "held",
		WaitedSeconds: api.SecondsOf(g.Waited), ReleaseRequested: askedOf(g.Asked),
	}}
}

func setLockOf(c lock.Claim) api.SetLock {
	return api.SetLock{Name: c.Name, Mode: string(c.Mode), Limit: c.Limit, Permits: c.Permits}
}

// waitingLocks describes the locks for which a set waits, with the positions that are known.
func waitingLocks(g *service.Grant) []api.WaitingSetLock {
	locks := make([]api.WaitingSetLock, len(g.Entry.Claims))
	for i, c := range g.Entry.Claims {
		locks[i].SetLock = setLockOf(c)
		for _, p := range g.Places { // the view may show fewer by now
			if p.Claim == c {
				locks[i].Position = p.Position
			}
		}
	}
	return locks
}

// describeBusy adds the holders that an entry would wait for: of a set lock by lock, and of all
// together as of one lock.
func describeBusy(p *api.Problem, g *service.Grant) {
	if !g.Entry.Set {
		p.Holders, p.Waiting = holdersOf(g.Holders, g.Entry.Name()), &g.Waiters
		return
	}
	p.Locks, p.Holders, p.Waiting = busyOf(g.Busy), []api.Holder{}, new(0)
	seen := map[lock.ID]bool{}
	for i, b := range g.Busy {
		*p.Waiting += b.Waiters
		for j, h := range b.Holders {
			if !seen[h.Entry.ID] {
				seen[h.Entry.ID] = true
				p.Holders = append(p.Holders, p.Locks[i].Holders[j])
			}
		}
	}
}

// busyOf describes the locks that are in use.
func busyOf(busy []service.Busy) []api.BusyLock {
	out := []api.BusyLock{}
	for _, b := range busy {
		out = append(
			out, api.BusyLock{Name: b.Name, Holders: briefly(b.Holders, b.Name), Waiting: b.Waiters},
		)
	}
	return out
}
