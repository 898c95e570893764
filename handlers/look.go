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
// @Description The holders, the waiters in order, and how the lock was used. An unused lock has empty lists. The answer is at most 1 MiB long: beyond that, holders and waiters are left out, the last first. By default it is as the answering replica saw it last, up to `revision`; one that has not seen the store yet answers 503.
// @Security    bearer[locks:read]
// @Param       name       path  string true  "Lock name"
// @Param       consistent query bool   false "Wait until everything that happened before the request is in the answer"
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
// @Description In byte order of their names, only those that the bearer token may use, and without the metadata of their holders. A page may have fewer locks than `limit`: it is at most 1 MiB long, and ends after 2000 holders. By default they are as the answering replica saw them last, up to `revision`; one that has not seen the store yet answers 503.
// @Security    bearer[locks:read]
// @Param       prefix     query string false "Only names that begin with it"
// @Param       state      query string false "Only locks that are held, or that others wait for" Enums(held, contended)
// @Param       limit      query int    false "Locks on a page" minimum(1) maximum(1000) default(100)
// @Param       cursor     query string false "next_cursor of the page before"
// @Param       consistent query bool   false "Wait until everything that happened before the request is in the answer"
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
	req := service.ListRequest{Enter: r.walk, ListRequest: view.ListRequest{
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
	return lock.Invalid("prefix", "is not how a lock name can begin")
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
