package handlers

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fencepost/fencepost/api"
	"github.com/fencepost/fencepost/auth"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service"
	"github.com/fencepost/fencepost/service/lists"
	"github.com/fencepost/fencepost/service/view"
)

// Console is what operators see; [service.Console] has it.
type Console interface {
	Replica() string
	Draining() <-chan struct{}
	LostSince() (at time.Time, lost bool)
	Overview(lists.Sight) (*service.Overview, error)
	Locks(context.Context, lists.Query) (*lists.Page, error)
	Inspect(context.Context, lock.Ref) (*service.Inspection, error)
	Blocking(s lists.Sight, trees int) (*service.Blocking, error)
	Holdings(s lists.Sight, holder string, most int) (*service.Holdings, error)
	Series(tenant string, step time.Duration) (*service.Series, error)
	History(context.Context, lock.Ref) (*service.History, error)
	HeatMap(s lists.Sight, most int) (*service.HeatMap, error)
	Tenants(s lists.Sight, after string, most int) (*service.Tenants, error)
}

func (a *endpoints) seen(revision uint64, now time.Time) api.Seen {
	return api.Seen{
		Revision: revision, ServerNow: api.InstantOf(now), Replica: a.Console.Replica(),
		StoreLostSince: a.lostSince(),
	}
}

// lostSince is since when the replica does not see what happens in the store, nil if it does.
func (a *endpoints) lostSince() *api.Instant {
	at, lost := a.Console.LostSince()
	if !lost {
		return nil
	}
	return new(api.InstantOf(at))
}

// getOverview tells how everything is.
//
// @Summary     See the overview
// @Description Returns how many locks are in use, held and contended, and the most contended locks of the tenants that the token may see.
// @Param       tenant query string false "Only this tenant; the token's own with the scope `tenant-admin`"
// @Success     200 {object} api.AdminOverview
// @Failure     503 {object} api.Problem "store_unavailable, fence_floor_required"
// @Router      /admin/overview [get]
func getOverview(q *query) maker {
	s, all := q.sight(), q.r.principal.MayOperate("")
	return func() (any, error) {
		o, err := q.r.endpoints.Console.Overview(s)
		if err != nil {
			return nil, err
		}
		if !all {
			o.Replicas = nil
		}
		return q.r.endpoints.overviewOf(o), nil
	}
}

// listAllLocks lists locks in use.
//
// @Summary     List the locks of all tenants
// @Description Returns the locks in use, searched and sorted, without metadata. A page is at most 1 MiB long and up to a quarter of a second old.
// @Param       tenant query string false "Only this tenant; the token's own with the scope `tenant-admin`"
// @Param       search query string false "Only names that contain this text, or match it if it has stars; upper and lower case are the same"
// @Param       state  query string false "Only held locks, or only contended ones" Enums(held, contended)
// @Param       holder query string false "Only locks with this holder among their first ten"
// @Param       sort   query string false "Order; with a minus the largest first" Enums(name, -name, waiters, -waiters, oldest_wait, -oldest_wait, held_for, -held_for, utilization, -utilization) default(name)
// @Param       limit  query int    false "Locks on a page" minimum(1) maximum(1000) default(100)
// @Param       cursor query string false "`next_cursor` of the previous page"
// @Success     200 {object} api.AdminLockPage
// @Failure     503 {object} api.Problem "store_unavailable, fence_floor_required"
// @Router      /admin/locks [get]
func listAllLocks(q *query) maker {
	of, ctx := q.lockQuery(), context.WithoutCancel(q.r.context())
	return func() (any, error) {
		page, err := q.r.endpoints.Console.Locks(ctx, of)
		if err != nil {
			return nil, err
		}
		return q.r.endpoints.adminPageOf(page, of, maxPageBytes), nil
	}
}

// getAnyLock tells about one lock.
//
// @Summary     Look at a lock of any tenant
// @Description Returns the holders, waiters and figures of a lock, with the ids that a revocation needs. The answer is at most 1 MiB long.
// @Param       tenant path string true "Tenant"
// @Param       name   path string true "Lock name"
// @Param       limit  query int   false "Waiters" minimum(1) maximum(1000) default(1000)
// @Success     200 {object} api.AdminLockView
// @Failure     503 {object} api.Problem "store_unavailable, fence_floor_required"
// @Router      /admin/locks/{tenant}/{name} [get]
func getAnyLock(q *query) maker {
	of := lock.Ref{Tenant: q.r.Param("tenant"), Name: q.r.name}
	q.reject(q.r.operate(of.Tenant))
	waiters, ctx := q.limit(
		view.MaxShownWaiters, view.MaxShownWaiters,
	), context.WithoutCancel(q.r.context())
	return func() (any, error) {
		v, err := q.r.endpoints.Console.Inspect(ctx, of)
		if err != nil {
			return nil, err
		}
		v.Waiters = v.Waiters[:min(len(v.Waiters), waiters)]
		fitLock(v.LockView)
		return q.r.endpoints.adminLockOf(v), nil
	}
}

// maxSearch is how long the text may be that is searched for, in bytes.
const maxSearch = 200

// lockQuery reads which locks are listed.
func (q *query) lockQuery() (of lists.Query) {
	of.State, of.Holder = q.state(), q.r.Query("holder")
	if of.Holder != "" {
		q.invalid("holder", lock.CheckHolder(of.Holder))
	}
	of.Sight, of.Match, of.Limit = q.sight(), q.search(), q.page()
	order := q.r.DefaultQuery("sort", string(lists.ByName))
	name, down := strings.CutPrefix(order, "-")
	if of.Sort, of.Down = lists.Sort(name), down; !slices.Contains(lists.Sorts(), of.Sort) {
		q.invalid(
			"sort",
			"must be name, waiters, oldest_wait, held_for or utilization, "+
				"with a minus for the largest first",
		)
	}
	if place := q.cursor(order, isWhole, lock.ValidTenant, lock.ValidName); place != nil {
		key, _ := strconv.ParseInt(place[0], 10, 64)
		of.After = &lists.Cursor{Key: key, Ref: lock.Ref{Tenant: place[1], Name: place[2]}}
	}
	return of
}

func isWhole(part string) bool {
	_, err := strconv.ParseInt(part, 10, 64)
	return err == nil
}

// search reads what the listed names are like; nil is all names.
func (q *query) search() func(name string) bool {
	text := q.r.Query("search")
	if text == "" {
		return nil
	}
	p, err := auth.ParseNamePattern(text)
	switch {
	case err != nil || len(text) > maxSearch:
		q.reject(lock.Invalid(
			"search", "must be up to %d characters of lock names, with at most one star", maxSearch,
		))
		return nil
	case strings.Contains(text, "*"):
		return p.Match
	}
	lower := strings.ToLower(text)
	return func(name string) bool { return strings.Contains(strings.ToLower(name), lower) }
}

// listCursor has the order, the key of the last lock in it, and that lock.
func listCursor(c *lists.Cursor, q lists.Query) string {
	if c == nil {
		return ""
	}
	return cursorOf(orderOf(q), strconv.FormatInt(c.Key, 10), c.Tenant, c.Name)
}

func orderOf(q lists.Query) string {
	if q.Down {
		return "-" + string(q.Sort)
	}
	return string(q.Sort)
}
