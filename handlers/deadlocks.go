package handlers

import (
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/fencepost/fencepost/api"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/lock/order"
	"github.com/fencepost/fencepost/service"
)

// lockOrder tells in which orders locks are taken.
//
// @Summary     Find orders of locks that contradict each other
// @ID          getLockOrder
// @Description In which orders workers that name themselves take locks, and where these contradict each other, so that a deadlock is possible. Locks are grouped into classes: what stands before the last colon, or a configured pattern. As the answering replica has seen it since it started, and as much of it as fits into 1 MiB.
// @Tags        admin
// @Produce     json
// @Security    bearer[admin]
// @Param       tenant query string false "Only this tenant"
// @Param       limit  query int    false "Entries in each list" minimum(1) maximum(1000) default(100)
// @Success     200 {object} api.LockOrderReport
// @Failure     400 {object} api.Problem "invalid_request"
// @Failure     401 {object} api.Problem "unauthenticated"
// @Failure     403 {object} api.Problem "forbidden"
// @Failure     429 {object} api.Problem "overloaded"
// @Failure     500 {object} api.Problem "internal"
// @Router      /admin/lock-order [get]
func (a *endpoints) lockOrder(c *gin.Context) {
	tenant, limit, err := tenantAndLimit(c)
	if err != nil {
		fail(c, err)
		return
	}
	r := a.Locks.LockOrder(tenant, limit)
	left := maxPageBytes / 2
	r.Contradictions = r.Contradictions[:fit(len(r.Contradictions), &left, func(i int) int { return contradictionBytes(r.Contradictions[i]) })]
	left += maxPageBytes / 2
	r.Orders = r.Orders[:fit(len(r.Orders), &left, func(i int) int { return orderBytes(r.Orders[i]) })]
	if a.room(c, maxPageBytes-left) {
		respond(c, http.StatusOK, orderReportOf(r))
	}
}

// deadlocks tells which deadlocks were refused.
//
// @Summary     Look at deadlocks that were refused
// @ID          listDeadlocks
// @Description The last 100 of the answering replica since it started; if there were more, those of the tenants with most give way. As many as fit into 1 MiB.
// @Tags        admin
// @Produce     json
// @Security    bearer[admin]
// @Param       tenant query string false "Only this tenant"
// @Param       limit  query int    false "Deadlocks in the list" minimum(1) maximum(1000) default(100)
// @Success     200 {object} api.DeadlockPage
// @Failure     400 {object} api.Problem "invalid_request"
// @Failure     401 {object} api.Problem "unauthenticated"
// @Failure     403 {object} api.Problem "forbidden"
// @Failure     429 {object} api.Problem "overloaded"
// @Failure     500 {object} api.Problem "internal"
// @Router      /admin/deadlocks [get]
func (a *endpoints) deadlocks(c *gin.Context) {
	tenant, limit, err := tenantAndLimit(c)
	if err != nil {
		fail(c, err)
		return
	}
	found, left := a.Locks.Deadlocks(tenant, limit), maxPageBytes
	found = found[:fit(len(found), &left, func(i int) int { return deadlockBytes(found[i]) })]
	if !a.room(c, maxPageBytes-left) {
		return
	}
	page := api.DeadlockPage{Deadlocks: []api.RefusedDeadlock{}}
	for _, d := range found {
		out := api.RefusedDeadlock{Tenant: d.Tenant, At: api.InstantOf(d.At), Refused: d.Refused.Holder, Cycle: cycleOf(d.Cycle, everyLock), Waits: d.Waits}
		for _, claim := range d.Refused.Claims {
			out.Locks = append(out.Locks, claim.Name)
		}
		page.Deadlocks = append(page.Deadlocks, out)
	}
	respond(c, http.StatusOK, page)
}

func everyLock(string) bool { return true }

func tenantAndLimit(c *gin.Context) (tenant string, limit int, err error) {
	limit = defaultPage
	if text, sent := c.GetQuery("limit"); sent {
		if limit, err = strconv.Atoi(text); err != nil || limit < 1 || limit > maxPage {
			return "", 0, lock.Invalid("limit", "must be a whole number from 1 to %d", maxPage)
		}
	}
	tenant = c.Query("tenant")
	if _, sent := c.GetQuery("tenant"); sent && !lock.ValidTenant(tenant) {
		return "", 0, lock.Invalid("tenant", "is not a tenant's name")
	}
	return tenant, limit, nil
}

// cycleIn returns the cycle that an error tells of, or nothing.
func cycleIn(err error, may func(string) bool) []api.CycleStep {
	var e *lock.Error
	if !errors.As(err, &e) {
		return nil
	}
	return cycleOf(e.Cycle, may)
}

// maxShownWaits is how many waits of a cycle are told of.
const maxShownWaits = 32

// cycleOf describes a cycle to somebody who may know the locks that may selects.
func cycleOf(cycle []lock.Wait, may func(string) bool) []api.CycleStep {
	var out []api.CycleStep
	for _, w := range cycle[:min(len(cycle), maxShownWaits)] {
		step := api.CycleStep{Holder: w.Waiter.Holder, InTheWay: w.Blocker.Holder, Holds: w.Holds}
		if may(w.Lock) {
			step.WaitsFor = w.Lock
		}
		out = append(out, step)
	}
	return out
}

func orderReportOf(r service.OrderReport) *api.LockOrderReport {
	out := &api.LockOrderReport{
		Contradictions: []api.OrderContradiction{}, Orders: []api.SeenOrder{}, Known: r.Total, Forgotten: r.Dropped,
	}
	for _, c := range r.Contradictions {
		v := api.OrderContradiction{Tenant: c.Tenant, FoundAt: api.InstantOf(c.Found)}
		for _, s := range c.Steps {
			v.Sides = append(v.Sides, api.OrderSide{From: s.From, To: s.To, Example: exampleOf(s.Example)})
		}
		out.Contradictions = append(out.Contradictions, v)
	}
	for _, o := range r.Orders {
		v := api.SeenOrder{Tenant: o.Tenant, From: o.From, To: o.To, Seen: o.Seen}
		for _, x := range o.Examples {
			v.Examples = append(v.Examples, exampleOf(x))
		}
		out.Orders = append(out.Orders, v)
	}
	return out
}

func exampleOf(x order.Example) api.OrderExample {
	return api.OrderExample{Holder: x.Holder, Held: x.Held, Taken: x.Taken, At: api.InstantOf(time.Time(x.At))}
}
