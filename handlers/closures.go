package handlers

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/gin-gonic/gin"

	"github.com/fencepost/fencepost/api"
	"github.com/fencepost/fencepost/auth"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service/closures"
)

func (a *endpoints) closures(r *gin.Engine) {
	o := operation{scopes: operators(), always: true}
	r.POST("/admin/closures", a.authorized(o, a.closeLocks))
	o.query = []string{"reason"}
	r.DELETE("/admin/closures/:id", a.authorized(o, a.openLocks))
	o.query = []string{"tenant", "limit", "cursor"}
	r.GET("/admin/closures", a.authorized(o, a.listClosures))
}

// closeLocks closes locks.
//
// @Summary     Close locks for a time
// @ID          closeLocks
// @Description Within a second, at every replica, no new entry joins a matching lock: the request is answered 423 `lock_closed`, whatever its `wait_seconds`. Holders finish, and entries that already wait are granted in order. The closure is in the audit before it begins. After an answer 503 it may stand; the list tells. At most 100 closures of a tenant stand at a time.
// @Tags        admin
// @Accept      json
// @Produce     json
// @Security    bearer[admin]
// @Security    bearer[tenant-admin]
// @Param       body body     api.CloseBody true "Which locks, until when, and why"
// @Success     201  {object} api.Closure
// @Failure     429  {object} api.Problem "rate_limited, quota_exceeded, overloaded"
// @Failure     503  {object} api.Problem "store_unavailable"
// @Router      /admin/closures [post]
func (a *endpoints) closeLocks(r *request) error {
	var body api.CloseBody
	if err := r.readJSON(&body); err != nil {
		return err
	}
	if err := r.operate(body.Tenant); err != nil {
		return err
	}
	if p, err := auth.ParsePattern(body.Locks); err == nil && !r.principal.MayUseAll(p) {
		return lock.Errorf(lock.Forbidden, "the caller is limited to other lock names")
	}
	until, err := body.Until.Time()
	if err != nil {
		return lock.Invalid("until", "must be an instant as 2026-01-02T15:04:05Z")
	}
	made, err := a.Closures.Close(r.context(), closures.CloseRequest{
		Tenant: body.Tenant, Locks: body.Locks, Until: until, Reason: body.Reason, Description: body.Description, By: r.who(),
	})
	if err != nil {
		return err
	}
	r.Header("Location", r.under("/admin/closures/"+string(made.ID)))
	return r.respond(http.StatusCreated, closureOf(made))
}

// openLocks ends a closure.
//
// @Summary     End a closure
// @ID          openLocks
// @Description Within a second new entries join again, at every replica. It is in the audit before.
// @Tags        admin
// @Produce     json
// @Security    bearer[admin]
// @Security    bearer[tenant-admin]
// @Param       id     path  string true  "Closure id"
// @Param       reason query string false "Why, for the audit; at least 10 characters"
// @Success     204
// @Failure     404 {object} api.Problem "not_found"
// @Failure     503 {object} api.Problem "store_unavailable"
// @Router      /admin/closures/{id} [delete]
func (a *endpoints) openLocks(r *request) error {
	if err := r.readJSON(&struct{}{}); err != nil {
		return err
	}
	reason, err := r.reasonParam()
	if err != nil {
		return err
	}
	err = a.Closures.Open(r.context(), closures.OpenRequest{ID: lock.ID(r.Param("id")), Reason: reason, By: r.who(), May: r.mayRule})
	if err != nil {
		return err
	}
	r.Status(http.StatusNoContent)
	r.Writer.Flush()
	return nil
}

// mayRule reports whether a closure of a tenant's locks is the operator's concern.
func (r *request) mayRule(tenant, locks string) bool {
	p, err := auth.ParsePattern(locks)
	return err == nil && r.principal.MayOperate(tenant) && r.principal.MayUseAll(p)
}

// listClosures tells which closures stand.
//
// @Summary     List the closures that stand
// @ID          listClosures
// @Description Of all tenants that the bearer token may see, in the order in which they began. Of a token that is limited to names, only those that are about no others.
// @Tags        admin
// @Produce     json
// @Security    bearer[admin]
// @Security    bearer[tenant-admin]
// @Param       tenant query string false "Only this tenant; the token's own with the scope `tenant-admin`"
// @Param       limit  query int    false "Closures on a page" minimum(1) maximum(1000) default(100)
// @Param       cursor query string false "next_cursor of the page before"
// @Success     200 {object} api.ClosurePage
// @Failure     503 {object} api.Problem "store_unavailable"
// @Router      /admin/closures [get]
func (a *endpoints) listClosures(r *request) error {
	tenant, err := r.operatedTenant()
	if err != nil {
		return err
	}
	limit, err := r.limitParam()
	if err != nil {
		return err
	}
	after, err := r.closureCursor()
	if err != nil {
		return err
	}
	all, err := a.Closures.List(r.context(), tenant)
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(c *lock.Closure) bool {
		return c.Compare(&after) <= 0 || !r.mayRule(c.Tenant, c.Locks.String())
	})
	left := maxPageBytes
	n := fit(min(limit, len(all)), &left, func(i int) int { return rowBytes + textBytes(all[i].Reason) + textBytes(all[i].Description) })
	return r.respondLarge(maxPageBytes-left, func() any { return a.closurePage(all, n) })
}

// closureCursor returns the closure after which a page begins. Closures that were written together
// share their number.
func (r *request) closureCursor() (after lock.Closure, err error) {
	text, sent := r.GetQuery("cursor")
	if !sent {
		return after, nil
	}
	last, err := decodeCursor(text)
	if err != nil {
		return after, err
	}
	number, id, _ := strings.Cut(last, ":")
	after.ID = lock.ID(id)
	if after.Number, err = strconv.ParseUint(number, 10, 64); err != nil {
		return after, lock.Invalid("cursor", "is not a next_cursor of ours")
	}
	return after, nil
}

func (a *endpoints) closurePage(all []*lock.Closure, n int) *api.ClosurePage {
	page := &api.ClosurePage{Closures: make([]api.Closure, 0, n), StoreLostSince: a.lostSince()}
	for _, c := range all[:n] {
		page.Closures = append(page.Closures, closureOf(c))
	}
	if n < len(all) && n > 0 {
		last := all[n-1]
		page.NextCursor = encodeCursor(strconv.FormatUint(last.Number, 10) + ":" + string(last.ID))
	}
	return page
}

func closureOf(c *lock.Closure) api.Closure {
	return api.Closure{
		ID: string(c.ID), Tenant: c.Tenant, Locks: c.Locks.String(), Since: api.InstantOf(c.Since),
		Until: api.InstantOf(c.Until), Reason: c.Reason, Description: c.Description, By: c.By,
	}
}

func closingOf(c *lock.Closure) *api.LockClosing {
	if c == nil {
		return nil
	}
	return &api.LockClosing{Until: api.InstantOf(c.Until), Reason: c.Reason}
}
