package handlers

import (
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/fencepost/fencepost/api"
	"github.com/fencepost/fencepost/auth"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service/closures"
)

// closeLocks closes locks.
//
// @Summary     Close locks for a time
// @Description Keeps new entries out of matching locks, at every replica from this answer on. Holders finish, and entries that already wait are granted in order.
// @Param       body body     api.CloseBody true "Which locks, until when, and why"
// @Success     201  {object} api.Closure
// @Failure     429  {object} api.Problem "rate_limited, quota_exceeded, overloaded"
// @Failure     503  {object} api.Problem "store_unavailable"
// @Router      /admin/closures [post]
func closeLocks(r *request, body *api.CloseBody) (reply, error) {
	if err := r.operate(body.Tenant); err != nil {
		return reply{}, err
	}
	if p, err := auth.ParsePattern(body.Locks); err == nil && !r.principal.MayUseAll(p) {
		return reply{}, lock.Errorf(lock.Forbidden, "the caller is limited to other lock names; "+
			"use a credential that covers them")
	}
	until, err := body.Until.Time()
	if err != nil {
		return reply{}, lock.Invalid("until", instantForm)
	}
	made, err := r.endpoints.Closures.Close(r.context(), closures.CloseRequest{
		Tenant: body.Tenant, Locks: body.Locks, Until: until, Reason: body.Reason,
		Description: body.Description, By: r.who(),
	})
	if err != nil {
		return reply{}, err
	}
	created := reply{status: http.StatusCreated, body: closureOf(made)}
	return r.at("/admin/closures/"+string(made.ID), created), nil
}

// openLocks ends a closure.
//
// @Summary     End a closure
// @Description Lets new entries join again, at every replica within a second.
// @Param       id     path  string true  "Closure id"
// @Param       reason query string false "Why, for the audit; at least 10 characters"
// @Success     204
// @Failure     404 {object} api.Problem "not_found"
// @Failure     503 {object} api.Problem "store_unavailable"
// @Router      /admin/closures/{id} [delete]
func openLocks(r *request, _ *empty) (reply, error) {
	q := r.query()
	req := closures.OpenRequest{
		ID: lock.ID(r.Param("id")), Reason: q.reason(), By: r.who(),
		May: func(tenant, locks string) bool { return mayRule(r, tenant, locks) },
	}
	if q.err != nil {
		return reply{}, q.err
	}
	return noContent(), r.endpoints.Closures.Open(r.context(), req)
}

// mayRule reports whether a closure of a tenant's locks is the operator's concern.
func mayRule(r *request, tenant, locks string) bool {
	p, err := auth.ParsePattern(locks)
	return err == nil && r.principal.MayOperate(tenant) && r.principal.MayUseAll(p)
}

// listClosures tells which closures stand.
//
// @Summary     List the closures
// @Description Returns the closures of the tenants that the token may see, oldest first.
// @Param       tenant query string false "Only this tenant; the token's own with the scope `tenant-admin`"
// @Param       limit  query int    false "Closures on a page" minimum(1) maximum(1000) default(100)
// @Param       cursor query string false "`next_cursor` of the previous page"
// @Success     200 {object} api.ClosurePage
// @Failure     503 {object} api.Problem "store_unavailable"
// @Router      /admin/closures [get]
func listClosures(r *request) (reply, error) {
	q := r.query()
	tenant, limit, after := q.tenant(), q.page(), lock.Closure{}
	if place := q.cursor("closures", isNumber, lock.ValidName); place != nil {
		after.Since, after.ID = time.UnixMilli(int64(numberIn(place[0]))), lock.ID(place[1])
	}
	if q.err != nil {
		return reply{}, q.err
	}
	all, err := r.endpoints.Closures.List(r.context(), tenant)
	if err != nil {
		return reply{}, err
	}
	all = slices.DeleteFunc(all, func(c *lock.Closure) bool {
		return c.Compare(&after) <= 0 || !mayRule(r, c.Tenant, c.Locks.String())
	})
	left := maxPageBytes
	shown := fit(all[:min(limit, len(all))], &left, func(c *lock.Closure) int {
		return rowBytes + textBytes(c.Reason) + textBytes(c.Description)
	})
	return large(maxPageBytes-left, func() any { return closurePage(r, all, len(shown)) }), nil
}

func closurePage(r *request, all []*lock.Closure, n int) *api.ClosurePage {
	page := &api.ClosurePage{
		Closures: make([]api.Closure, 0, n), StoreLostSince: r.endpoints.lostSince(),
	}
	for _, c := range all[:n] {
		page.Closures = append(page.Closures, closureOf(c))
	}
	if n < len(all) && n > 0 {
		last := all[n-1]
		since := strconv.FormatInt(last.Since.UnixMilli(), 10)
		page.NextCursor = cursorOf("closures", since, string(last.ID))
	}
	return page
}

func closureOf(c *lock.Closure) api.Closure {
	return api.Closure{
		ID: string(c.ID), Tenant: c.Tenant, Locks: c.Locks.String(), Since: api.InstantOf(c.Since),
		Until: api.InstantOf(c.Until), Reason: c.Reason, Description: c.Description, By: c.By,
		Revision: c.Number,
	}
}

func closingOf(c *lock.Closure) *api.LockClosing {
	if c == nil {
		return nil
	}
	return &api.LockClosing{Until: api.InstantOf(c.Until), Reason: c.Reason}
}
