package handlers

import (
	"encoding/base64"
	"strconv"
	"strings"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/lock/quota"
	"github.com/fencepost/fencepost/service"
	"github.com/fencepost/fencepost/service/view"
)

const (
	defaultPage = 100
	maxPage     = 1000

	cursorPrefix = "after:"
)

// lock tells about one lock.
//
// @Summary     Look at a lock
// @ID          getLock
// @Description Who holds it, who waits in which order, and how it was used. A lock that nobody uses has empty lists. The answer is at most 1 MiB long: beyond that, holders and waiters are left out, the last first. By default it is as the answering replica saw it last, up to `revision`; one that has not seen the store yet answers 503.
// @Tags        look
// @Produce     json
// @Security    bearer[locks:read]
// @Param       name       path  string true  "Lock name"
// @Param       consistent query bool   false "Wait until everything that happened before the request is in the answer"
// @Success     200 {object} api.Lock
// @Failure     400 {object} api.Problem "invalid_request, invalid_name"
// @Failure     503 {object} api.Problem "store_unavailable, memory_full, fence_floor_required"
// @Router      /locks/{name} [get]
func (a *endpoints) lock(r *request) error {
	consistent, err := r.boolParam("consistent")
	if err != nil {
		return err
	}
	v, err := a.Locks.Lock(r.context(), lock.Ref{Tenant: r.tenant(), Name: r.name}, consistent)
	if err != nil {
		return err
	}
	return r.respondLarge(fitLock(v), func() any { return lockOf(v) })
}

// list tells about the locks in use.
//
// @Summary     List the locks in use
// @ID          listLocks
// @Description In byte order of their names, only those that the bearer token may use, and without the metadata of their holders. A page may have fewer locks than `limit`: it is at most 1 MiB long, and ends after 2000 holders. By default they are as the answering replica saw them last, up to `revision`; one that has not seen the store yet answers 503.
// @Tags        look
// @Produce     json
// @Security    bearer[locks:read]
// @Param       prefix     query string false "Only names that begin with it"
// @Param       state      query string false "Only locks that are held, or that others wait for" Enums(held, contended)
// @Param       limit      query int    false "Locks on a page" minimum(1) maximum(1000) default(100)
// @Param       cursor     query string false "next_cursor of the page before"
// @Param       consistent query bool   false "Wait until everything that happened before the request is in the answer"
// @Success     200 {object} api.LockPage
// @Failure     503 {object} api.Problem "store_unavailable, memory_full, fence_floor_required"
// @Router      /locks [get]
func (a *endpoints) list(r *request) error {
	req, err := listRequest(r)
	if err != nil {
		return err
	}
	page, err := a.Locks.List(r.context(), req)
	if page != nil { // who goes away in between has had a part of them looked at
		r.owe(quota.PriceOfNames(page.Looked*req.Effort) + quota.PriceOfHolders(page.MoreHolders()))
	}
	if err != nil {
		return err
	}
	return r.respondLarge(fitPage(page), func() any { return pageText{page} })
}

// listRequest reads what is asked for. To look takes its turn as to answer does: it is a good part of
// what a list costs. Between its parts those of others have their turns.
func listRequest(r *request) (req service.ListRequest, err error) {
	req.Turn = r.nextTurn
	req.ListRequest = view.ListRequest{Tenant: r.tenant(), Prefix: r.Query("prefix"), State: r.Query("state"), May: r.principal.MayUse, Effort: r.principal.Effort()}
	if err := checkPrefix(req.Prefix); err != nil {
		return req, err
	}
	if _, sent := r.GetQuery("state"); sent && req.State != "held" && req.State != "contended" {
		return req, lock.Invalid("state", "must be held or contended")
	}
	if req.Limit, err = r.limitParam(); err != nil {
		return req, err
	}
	if text, sent := r.GetQuery("cursor"); sent {
		if req.After, err = decodeCursor(text); err != nil {
			return req, err
		}
	}
	req.Consistent, err = r.boolParam("consistent")
	return req, err
}

// checkPrefix says what is wrong with the beginning of names that is asked for.
func checkPrefix(prefix string) error {
	start, starred := strings.CutSuffix(prefix, "*")
	switch {
	case prefix == "" || lock.ValidName(prefix):
		return nil
	case starred && (start == "" || lock.ValidName(start)):
		return lock.Invalid("prefix", "is the beginning of names: leave out the star")
	}
	return lock.Invalid("prefix", "is not how a lock name can begin")
}

// limitParam is how many a page may have.
func (r *request) limitParam() (int, error) { return r.limitUpTo(maxPage, defaultPage) }

func (r *request) limitUpTo(most, standard int) (int, error) {
	text, sent := r.GetQuery("limit")
	if !sent {
		return standard, nil
	}
	limit, err := strconv.Atoi(text)
	if err != nil || limit < 1 || limit > most {
		return 0, lock.Invalid("limit", "must be a whole number from 1 to %d", most)
	}
	return limit, nil
}

func (r *request) boolParam(name string) (bool, error) {
	switch r.DefaultQuery(name, "false") {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return false, lock.Invalid(name, "must be true or false")
}

// A cursor is the last name of a page, wrapped so that clients do not take it
// for one.
func encodeCursor(name string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(cursorPrefix + name))
}

func decodeCursor(cursor string) (string, error) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	name, ok := strings.CutPrefix(string(raw), cursorPrefix)
	if err != nil || !ok || !lock.ValidName(name) {
		return "", lock.Invalid("cursor", "is not a next_cursor of ours")
	}
	return name, nil
}
