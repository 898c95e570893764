package handlers

import (
	"strings"

	"github.com/fencepost/fencepost/api"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service"
	"github.com/fencepost/fencepost/service/view"
)

// getLock tells about one lock.
//
// @Summary     Look at a lock
// @Description Returns the holders, the waiters in order, and figures of a lock, as the answering replica last saw them. The answer is at most 1 MiB long.
// @Security    bearer[locks:read]
// @Param       name       path  string true  "Lock name"
// @Param       consistent query bool   false "Wait until the answer has everything that happened before the request"
// @Success     200 {object} api.Lock
// @Failure     503 {object} api.Problem "store_unavailable, fence_floor_required"
// @Router      /locks/{name} [get]
func getLock(r *request) (reply, error) {
	q := r.query()
	consistent := q.flag("consistent")
	if q.err != nil {
		return reply{}, q.err
	}
	of := lock.Ref{Tenant: r.tenant(), Name: r.name}
	v, err := r.endpoints.Locks.Lock(r.context(), of, consistent, r.behindGate)
	if err != nil {
		return reply{}, err
	}
	return large(fitLock(v), func() any { return lockOf(v) }), nil
}

// listLocks tells about the locks in use.
//
// @Summary     List the locks in use
// @Description Returns the locks in use in byte order of their names, without metadata, as the answering replica last saw them. A page is at most 1 MiB long.
// @Security    bearer[locks:read]
// @Param       prefix     query string false "Only names that begin with it"
// @Param       state      query string false "Only held locks, or only contended ones" Enums(held, contended)
// @Param       limit      query int    false "Locks on a page" minimum(1) maximum(1000) default(100)
// @Param       cursor     query string false "`next_cursor` of the previous page"
// @Param       consistent query bool   false "Wait until the answer has everything that happened before the request"
// @Success     200 {object} api.LockPage
// @Failure     503 {object} api.Problem "store_unavailable, fence_floor_required"
// @Router      /locks [get]
func listLocks(r *request) (reply, error) {
	req, err := listRequest(r)
	if err != nil {
		return reply{}, err
	}
	page, err := r.endpoints.Locks.List(r.context(), req)
	if err != nil {
		return reply{}, err
	}
	return large(fitPage(page), func() any { return pageOf(page) }), nil
}

// listRequest reads which page is asked for.
func listRequest(r *request) (service.ListRequest, error) {
	q := r.query()
	req := service.ListRequest{Enter: r.enterGate, ListRequest: view.ListRequest{
		Tenant: r.tenant(), Prefix: r.Query("prefix"), May: r.principal.MayUse,
	}}
	q.reject(checkPrefix(req.Prefix))
	req.State, req.Limit = q.state(), q.page()
	req.After = q.after("locks", lock.ValidName)
	req.Consistent = q.flag("consistent")
	return req, q.err
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
	return lock.Invalid(
		"prefix", "must be how a lock name begins: a letter or digit, then also . _ : @ = + -",
	)
}

func pageOf(p *view.Page) *api.LockPage {
	out := &api.LockPage{Locks: make([]api.LockSummary, 0, len(p.Locks)), Revision: p.Revision}
	if p.Next != "" {
		out.NextCursor = cursorOf("locks", p.Next)
	}
	for i := range p.Locks {
		l := &p.Locks[i]
		s := api.LockSummary{
			Name: l.Name, State: "held", Holders: briefly(l.Holders, l.Name), Waiting: l.Waiting,
			Fence: l.Newest,
		}
		if l.Waiting > 0 {
			s.State = "contended"
		}
		out.Locks = append(out.Locks, s)
	}
	return out
}
