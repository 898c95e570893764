package handlers

import (
	"errors"
	"math"
	"slices"
	"strings"

	"github.com/fencepost/fencepost/api"
	"github.com/fencepost/fencepost/auth"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/lock/order"
	"github.com/fencepost/fencepost/service/figures"
	"github.com/fencepost/fencepost/service/view"
)

// getLockOrder tells in which orders locks are taken.
//
// @Summary     Find orders of locks that contradict each other
// @Description Returns in which orders named workers take locks, and which orders contradict each other, as this replica saw it since it started.
// @Param       tenant query string false "Only this tenant; the token's own with the scope `tenant-admin`"
// @Param       limit  query int    false "Entries in each list" minimum(1) maximum(1000) default(100)
// @Success     200 {object} api.LockOrderReport
// @Router      /admin/lock-order [get]
func getLockOrder(r *request) (reply, error) {
	q := r.query()
	limit, tenant := q.page(), q.tenant()
	if q.err != nil {
		return reply{}, q.err
	}
	if err := r.enterGate(); err != nil {
		return reply{}, err
	}
	found := ownOrders(r, tenant, limit)
	left := maxPageBytes / 2
	found.Contradictions = fit(found.Contradictions, &left, contradictionBytes)
	left += maxPageBytes / 2
	found.Orders = fit(found.Orders, &left, orderBytes)
	return large(maxPageBytes-left, func() any { return orderReport(r, found) }), nil
}

// listDeadlocks tells which deadlocks were refused.
//
// @Summary     List refused deadlocks
// @Description Returns the last 100 deadlocks that the answering replica refused since it started.
// @Param       tenant query string false "Only this tenant; the token's own with the scope `tenant-admin`"
// @Param       limit  query int    false "Deadlocks in the list" minimum(1) maximum(1000) default(100)
// @Success     200 {object} api.DeadlockPage
// @Router      /admin/deadlocks [get]
func listDeadlocks(r *request) (reply, error) {
	q := r.query()
	limit, tenant := q.page(), q.tenant()
	if q.err != nil {
		return reply{}, q.err
	}
	if err := r.enterGate(); err != nil {
		return reply{}, err
	}
	found, left := ownDeadlocks(r, tenant, limit), maxPageBytes
	found = fit(found, &left, deadlockBytes)
	return large(maxPageBytes-left, func() any { return deadlockPage(r, found) }), nil
}

// ownDeadlocks are those with a lock that the bearer token may use. The other names of such a
// deadlock are left out.
func ownDeadlocks(r *request, tenant string, limit int) []view.Deadlock {
	if r.principal.Locks == nil {
		return r.endpoints.Locks.Deadlocks(tenant, limit)
	}
	found := slices.DeleteFunc(
		r.endpoints.Locks.Deadlocks(tenant, math.MaxInt),
		func(d view.Deadlock) bool {
			asked := func(c lock.Claim) bool { return r.principal.MayUse(c.Name) }
			waits := func(w lock.Wait) bool { return r.principal.MayUse(w.Lock) }
			return !slices.ContainsFunc(d.Refused.Claims, asked) && !slices.ContainsFunc(d.Cycle, waits)
		},
	)
	return found[:min(len(found), limit)]
}

// ownOrders is the report without the classes of locks that are not all the bearer token's.
func ownOrders(r *request, tenant string, limit int) figures.OrderReport {
	if r.principal.Locks == nil {
		return r.endpoints.Locks.LockOrder(tenant, limit)
	}
	all := r.endpoints.Locks.LockOrder(tenant, math.MaxInt)
	all.Contradictions = slices.DeleteFunc(all.Contradictions, func(c order.Contradiction) bool {
		return slices.ContainsFunc(c.Steps, func(s order.Step) bool { return !mayKnow(r, s.From, s.To) })
	})
	all.Orders = slices.DeleteFunc(
		all.Orders, func(e order.Edge) bool { return !mayKnow(r, e.From, e.To) },
	)
	all.Total = len(all.Orders)
	all.Contradictions = all.Contradictions[:min(len(all.Contradictions), limit)]
	all.Orders = all.Orders[:min(len(all.Orders), limit)]
	return all
}

func mayKnow(r *request, classes ...string) bool {
	for _, class := range classes {
		names, _, _ := strings.Cut(class, " ") // what follows tells two of one class apart
		if p, err := auth.ParsePattern(names); err != nil || !r.principal.MayUseAll(p) {
			return false
		}
	}
	return true
}

// learntBy names the replica that learnt what an answer tells.
func learntBy(a *endpoints) api.Learnt {
	return api.Learnt{
		Replica: a.Console.Replica(), Since: api.InstantOf(a.Locks.Started()),
		StoreLostSince: a.lostSince(),
	}
}

func deadlockPage(r *request, found []view.Deadlock) *api.DeadlockPage {
	may := r.principal.MayUse
	page := &api.DeadlockPage{Deadlocks: []api.RefusedDeadlock{}, Learnt: learntBy(r.endpoints)}
	for _, d := range found {
		out := api.RefusedDeadlock{
			Tenant: d.Tenant, At: api.InstantOf(d.At), Refused: d.Refused.Holder, Locks: []string{},
			Cycle: cycleOf(d.Cycle, may), Waits: d.Waits,
		}
		for _, claim := range d.Refused.Claims {
			if may(claim.Name) {
				out.Locks = append(out.Locks, claim.Name)
			}
		}
		page.Deadlocks = append(page.Deadlocks, out)
	}
	return page
}

// cycleIn returns the cycle that an error tells of, or nothing.
func cycleIn(err error, may func(string) bool) []api.CycleStep {
	var e *lock.Error
	if !errors.As(err, &e) {
		return nil
	}
	return cycleOf(e.Cycle, may)
}

// maxShownWaits is how many waits of a cycle an answer has.
const maxShownWaits = 32

// cycleOf describes a cycle, with the names of the locks that may selects.
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

func orderReport(by *request, r figures.OrderReport) *api.LockOrderReport {
	out := &api.LockOrderReport{
		Contradictions: []api.OrderContradiction{}, Orders: []api.SeenOrder{}, Known: r.Total,
		Forgotten: r.Dropped, Learnt: learntBy(by.endpoints),
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
	return api.OrderExample{Holder: x.Holder, Held: x.Held, Taken: x.Taken, At: api.InstantOf(x.At)}
}
