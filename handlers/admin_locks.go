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
	Series(tenant string) (*service.Series, error)
	History(context.Context, lock.Ref) (*service.History, error)
	HeatMap(s lists.Sight, most int) (*service.HeatMap, error)
	Tenants(s lists.Sight, after string, most int) (*service.Tenants, error)
}

func (a *endpoints) seen(revision uint64, now time.Time) api.Seen {
	return api.Seen{
		Revision:       revision,
		ServerNow:      api.InstantOf(now),
		Replica:        a.Console.Replica(),
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
// @Summary     See how everything is
// @Description How many locks are in use, held and waited for, and where most wait, of all tenants that the bearer token may see. Requests within a quarter of a second get the same answer. Like all lists and looks of operators it has an `ETag`, and answers `If-None-Match` with 304.
// @Param       tenant query string false "Only this tenant; the token's own with the scope `tenant-admin`"
// @Success     200 {object} api.AdminOverview
// @Failure     503 {object} api.Problem "store_unavailable, fence_floor_required"
// @Router      /admin/overview [get]
func getOverview(q *query) maker {
	s, all := q.sight(), q.principal.MayOperate("")
	return func() (any, error) {
		o, err := q.endpoints.Console.Overview(s)
		if err != nil {
			return nil, err
		}
		if !all {
			o.Replicas = nil
		}
		return q.endpoints.overviewOf(o), nil
	}
}

// listAllLocks lists locks in use.
//
// @Summary     List the locks of all tenants
// @Description Locks in use, searched and sorted. Requests within a quarter of a second, or within ten times as long as the page took to make, get the same page. Locks that are alike follow each other by tenant and name. Metadata are left out. A page may have fewer locks than `limit`: it is at most 1 MiB long. While pages are read locks may change places, and so be listed twice or not at all. The replicas' own locks are listed only for their tenant, `fencepost-internal`.
// @Param       tenant query string false "Only this tenant; the token's own with the scope `tenant-admin`"
// @Param       search query string false "Only names that contain this text, in capital letters or not; or, if it has stars, which match anything, names that are like it"
// @Param       state  query string false "Only locks that are held, or that others wait for" Enums(held, contended)
// @Param       holder query string false "Only locks that have this holder among their first ten"
// @Param       sort   query string false "By what; with a minus the largest first" Enums(name, -name, waiters, -waiters, oldest_wait, -oldest_wait, held_for, -held_for, utilization, -utilization) default(name)
// @Param       limit  query int    false "Locks on a page" minimum(1) maximum(1000) default(100)
// @Param       cursor query string false "next_cursor of the page before"
// @Success     200 {object} api.AdminLockPage
// @Failure     503 {object} api.Problem "store_unavailable, fence_floor_required"
// @Router      /admin/locks [get]
func listAllLocks(q *query) maker {
	of, ctx := q.lockQuery(), context.WithoutCancel(q.context())
	return func() (any, error) {
		page, err := q.endpoints.Console.Locks(ctx, of)
		if err != nil {
			return nil, err
		}
		return q.endpoints.adminPageOf(page, of, maxPageBytes), nil
	}
}

// getAnyLock tells about one lock.
//
// @Summary     Look at a lock of any tenant
// @Description The holders and the waiters, with the ids by which they can be revoked, and how the lock was used. An unused lock has empty lists. The answer is at most 1 MiB long: beyond that, holders and waiters are left out, the last first.
// @Param       tenant path string true "Tenant"
// @Param       name   path string true "Lock name"
// @Param       limit  query int   false "Waiters" minimum(1) maximum(1000) default(1000)
// @Success     200 {object} api.AdminLockView
// @Failure     503 {object} api.Problem "store_unavailable, fence_floor_required"
// @Router      /admin/locks/{tenant}/{name} [get]
func getAnyLock(q *query) maker {
	of := lock.Ref{Tenant: q.Param("tenant"), Name: q.name}
	q.reject(q.operate(of.Tenant))
	waiters, ctx := q.limit(
		view.MaxShownWaiters,
		view.MaxShownWaiters,
	), context.WithoutCancel(q.context())
	return func() (any, error) {
		v, err := q.endpoints.Console.Inspect(ctx, of)
		if err != nil {
			return nil, err
		}
		v.Waiters = v.Waiters[:min(len(v.Waiters), waiters)]
		fitLock(v.LockView)
		return q.endpoints.adminLockOf(v), nil
	}
}

// maxSearch is how long the text may be that is searched for, in bytes.
const maxSearch = 200

// lockQuery reads which locks are listed.
func (q *query) lockQuery() (of lists.Query) {
	of.State, of.Holder = q.state(), q.Query("holder")
	if of.Holder != "" {
		q.invalid("holder", lock.CheckHolder(of.Holder))
	}
	of.Sight, of.Match, of.Limit = q.sight(), q.search(), q.page()
	order := q.DefaultQuery("sort", string(lists.ByName))
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
	text := q.Query("search")
	if text == "" {
		return nil
	}
	p, err := auth.ParseNamePattern(text)
	switch {
	case err != nil || len(text) > maxSearch:
		q.reject(
			lock.Invalid(
				"search",
				"must be up to %d characters of lock names, with at most one star",
				maxSearch,
			),
		)
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
