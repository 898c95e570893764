package handlers

import (
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service"
)

// CycleStep is one wait of a cycle. Who is in the way of the last step is the
// holder of the first.
type CycleStep struct {
	// Holder is who waits.
	Holder string `json:"holder" example:"worker-7"`
	// WaitsFor is the lock that it waits for; left out if the bearer token may not use
	// that lock.
	WaitsFor string `json:"waits_for,omitempty" example:"orders:42"`
	// InTheWay is the worker that it waits for.
	InTheWay string `json:"in_the_way" example:"worker-8"`
	// Holds is false if that worker does not hold the lock but stands before the
	// holder in its queue.
	Holds bool `json:"holds"`
}

// DeadlockPage lists deadlocks.
type DeadlockPage struct {
	// Deadlocks that were refused, the newest first.
	Deadlocks []RefusedDeadlock `json:"deadlocks"`
}

// RefusedDeadlock is a cycle of waits that one request would have closed, and that
// was refused for it.
type RefusedDeadlock struct {
	// Tenant in which it happened.
	Tenant string `json:"tenant" example:"acme"`
	// At is when.
	At instant `json:"at" swaggertype:"string" format:"date-time" example:"2026-01-02T15:04:05.000Z"`
	// Refused is the worker whose request was refused.
	Refused string `json:"refused" example:"worker-7"`
	// Locks that the request asked for.
	Locks []string `json:"locks" example:"orders:42"`
	// Cycle of waits; of a long one the first 32.
	Cycle []CycleStep `json:"cycle"`
	// Waits is how many waits the cycle has.
	Waits int `json:"waits" minimum:"1" example:"2"`
}

// LockOrderReport tells in which orders workers take locks, as the answering
// replica has seen it since it started.
type LockOrderReport struct {
	// Contradictions, the newest first. Each can become a deadlock.
	Contradictions []OrderContradiction `json:"contradictions"`
	// Orders that were seen, the latest first.
	Orders []SeenOrder `json:"orders"`
	// Known is how many orders are remembered in all.
	Known int `json:"known" minimum:"0" example:"12"`
	// Forgotten is how many were forgotten to make room.
	Forgotten uint64 `json:"forgotten" format:"int64" minimum:"0" example:"0"`
}

// OrderContradiction is a ring of orders: each leads to the class of locks where
// the next one starts, and the last to the first.
type OrderContradiction struct {
	// Tenant in which it happened.
	Tenant string `json:"tenant" example:"acme"`
	// FoundAt is when the ring was closed.
	FoundAt instant `json:"found_at" swaggertype:"string" format:"date-time" example:"2026-01-02T15:04:05.000Z"`
	// Sides of the contradiction.
	Sides []OrderSide `json:"sides"`
}

// OrderSide is one order of a contradiction, with an example.
type OrderSide struct {
	// From is the class of the lock that was held.
	From string `json:"from" example:"orders:*"`
	// To is the class of the lock that was taken then.
	To string `json:"to" example:"stock:*"`
	// Example of it.
	Example OrderExample `json:"example"`
}

// OrderExample is one time that a worker took a lock while it held another.
type OrderExample struct {
	// Holder is the worker.
	Holder string `json:"holder" example:"worker-7"`
	// Held is the lock that it had.
	Held string `json:"held" example:"orders:42"`
	// Taken is the lock that it got then.
	Taken string `json:"taken" example:"stock:7"`
	// At is when.
	At instant `json:"at" swaggertype:"string" format:"date-time" example:"2026-01-02T15:04:05.000Z"`
}

// SeenOrder is a pair of classes of locks of which one was taken while a lock of
// the other was held.
type SeenOrder struct {
	// Tenant in which it happened.
	Tenant string `json:"tenant" example:"acme"`
	// From is the class of the lock that was held.
	From string `json:"from" example:"orders:*"`
	// To is the class of the lock that was taken then.
	To string `json:"to" example:"stock:*"`
	// Seen is how often.
	Seen uint64 `json:"seen" format:"int64" minimum:"1" example:"420"`
	// Examples of up to two workers.
	Examples []OrderExample `json:"examples"`
}

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
// @Success     200 {object} LockOrderReport
// @Failure     400 {object} Problem "invalid_request"
// @Failure     401 {object} Problem "unauthenticated"
// @Failure     403 {object} Problem "forbidden"
// @Failure     429 {object} Problem "overloaded"
// @Failure     500 {object} Problem "internal"
// @Router      /admin/lock-order [get]
func (a *api) lockOrder(c *gin.Context) {
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
// @Success     200 {object} DeadlockPage
// @Failure     400 {object} Problem "invalid_request"
// @Failure     401 {object} Problem "unauthenticated"
// @Failure     403 {object} Problem "forbidden"
// @Failure     429 {object} Problem "overloaded"
// @Failure     500 {object} Problem "internal"
// @Router      /admin/deadlocks [get]
func (a *api) deadlocks(c *gin.Context) {
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
	page := DeadlockPage{Deadlocks: []RefusedDeadlock{}}
	for _, d := range found {
		out := RefusedDeadlock{Tenant: d.Tenant, At: instantOf(d.At), Refused: d.Refused.Holder, Cycle: cycleOf(d.Cycle, everyLock), Waits: d.Waits}
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
func cycleIn(err error, may func(string) bool) []CycleStep {
	var e *lock.Error
	if !errors.As(err, &e) {
		return nil
	}
	return cycleOf(e.Cycle, may)
}

// maxShownWaits is how many waits of a cycle are told of.
const maxShownWaits = 32

// cycleOf describes a cycle to somebody who may know the locks that may selects.
func cycleOf(cycle []lock.Wait, may func(string) bool) []CycleStep {
	var out []CycleStep
	for _, w := range cycle[:min(len(cycle), maxShownWaits)] {
		step := CycleStep{Holder: w.Waiter.Holder, InTheWay: w.Blocker.Holder, Holds: w.Holds}
		if may(w.Lock) {
			step.WaitsFor = w.Lock
		}
		out = append(out, step)
	}
	return out
}

func orderReportOf(r service.OrderReport) *LockOrderReport {
	out := &LockOrderReport{
		Contradictions: []OrderContradiction{}, Orders: []SeenOrder{}, Known: r.Total, Forgotten: r.Dropped,
	}
	for _, c := range r.Contradictions {
		v := OrderContradiction{Tenant: c.Tenant, FoundAt: instantOf(c.Found)}
		for _, s := range c.Sides {
			v.Sides = append(v.Sides, OrderSide{From: s.From, To: s.To, Example: exampleOf(s.Example)})
		}
		out.Contradictions = append(out.Contradictions, v)
	}
	for _, o := range r.Orders {
		v := SeenOrder{Tenant: o.Tenant, From: o.From, To: o.To, Seen: o.Seen}
		for _, x := range o.Examples {
			v.Examples = append(v.Examples, exampleOf(x))
		}
		out.Orders = append(out.Orders, v)
	}
	return out
}

func exampleOf(x lock.Example) OrderExample {
	return OrderExample{Holder: x.Holder, Held: x.Held, Taken: x.Taken, At: instantOf(time.Time(x.At))}
}
