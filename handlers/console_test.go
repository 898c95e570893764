package handlers_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencepost/fencepost/api"
	"github.com/fencepost/fencepost/auth"
	"github.com/fencepost/fencepost/handlers"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/lock/blocking"
	"github.com/fencepost/fencepost/service"
	"github.com/fencepost/fencepost/service/lists"
	"github.com/fencepost/fencepost/service/view"
	"github.com/fencepost/fencepost/test/poll"
)

// operator is an operator of the client's tenant alone.
func (c *client) operator() *client {
	return c.as(func(cl *auth.Claims) { cl.Scopes = []auth.Scope{auth.TenantAdmin} })
}

// adminLocks polls a page of locks until it is right.
func (c *client) adminLocks(query string, right func(*api.AdminLockPage) bool) *api.AdminLockPage {
	c.t.Helper()
	page := &api.AdminLockPage{}
	poll.Until(c.t, "GET /admin/locks?"+query+" is right", func() bool {
		*page = api.AdminLockPage{}
		c.get("/admin/locks?"+query).want(http.StatusOK, page)
		return right(page)
	})
	if page.Replica != replicaID || page.Revision == 0 || page.ServerNow == "" {
		c.t.Errorf(
			"the page has replica %q, revision %d, time %q", page.Replica, page.Revision, page.ServerNow,
		)
	}
	return page
}

func shows(names ...string) func(*api.AdminLockPage) bool {
	return func(p *api.AdminLockPage) bool {
		got := make([]string, 0, len(p.Locks))
		for _, l := range p.Locks {
			got = append(got, l.Name)
		}
		return strings.Join(got, " ") == strings.Join(names, " ")
	}
}

// TestAdminLocks: locks of a tenant, sorted, searched, in pages; and only its own for its
// operators.
func TestAdminLocks(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	first := c.acquire("orders:1", body(`{"holder":"w1","metadata":{"job":"7"}}`))
	c.acquire("orders:2", worker("w2"))
	c.acquire("stock:1", worker("w1"))
	c.join("orders:2", waitsAs("w3"))
	other := newTenant(t)
	other.acquire("orders:1", worker("w1"))
	own := "tenant=" + c.claims.Tenant
	for query, want := range map[string][]string{
		"":                       {"orders:1", "orders:2", "stock:1"},
		"&sort=-name":            {"stock:1", "orders:2", "orders:1"},
		"&sort=-waiters&limit=1": {"orders:2"},
		"&search=OrDers":         {"orders:1", "orders:2"},
		"&search=*:1":            {"orders:1", "stock:1"},
		"&state=contended":       {"orders:2"},
		"&holder=w1":             {"orders:1", "stock:1"},
		"&state=held&holder=w3":  {},
	} {
		c.admin().adminLocks(own+query, shows(want...))
		c.operator().adminLocks(strings.TrimPrefix(query, "&"), shows(want...))
	}
	page := c.operator().adminLocks("", shows("orders:1", "orders:2", "stock:1"))
	one, two := page.Locks[0], page.Locks[1]
	if h := one.Holders; one.State != "held" || one.Tenant != c.claims.Tenant || len(h) != 1 ||
		one.Holding != 1 || h[0].ID != first.ID || h[0].Fence != *first.Fence || h[0].Holder != "w1" ||
		h[0].Metadata != nil || h[0].TTLSeconds != 30 || h[0].Mode != "exclusive" ||
		one.Fence != *first.Fence {
		t.Errorf("orders:1 is shown as %+v", one)
	}
	if two.State != "contended" || two.Waiting != 1 || two.OldestSince == nil ||
		one.OldestSince != nil {
		t.Errorf("orders:2 is shown as %+v", two)
	}
	limited := c.operator().within("stock:*")
	limited.adminLocks("", shows("stock:1"))
	c.operator().get("/admin/locks?tenant=" + other.claims.Tenant).wantProblem(ownTenantOnly())
}

// TestAdminPages: cursors lead through all locks, in the order for which they are only.
func TestAdminPages(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	var want []string
	for i := range 10 {
		c.acquire(fmt.Sprintf("a:%d", i))
		want = append(want, fmt.Sprintf("a:%d", i))
	}
	c.operator().adminLocks("", shows(want...))
	for _, sort := range []string{"name", "-held_for", "waiters"} {
		got, query := []string{}, "sort="+sort+"&limit=3"
		for {
			page := c.operator().adminLocks(query, func(*api.AdminLockPage) bool { return true })
			for _, l := range page.Locks {
				got = append(got, l.Name)
			}
			if page.Matching != 10 || len(page.Locks) > 3 {
				t.Errorf("%d of %d locks are on a page of three of ten", len(page.Locks), page.Matching)
			}
			if page.NextCursor == "" {
				break
			}
			query = "sort=" + sort + "&limit=3&cursor=" + page.NextCursor
			c.operator().get("/admin/locks?sort=-name&cursor=" + page.NextCursor).
				wantProblem(invalid("cursor", "must be the next_cursor of a page of this list; "+
					"leave it out to begin again"))
		}
		if strings.Join(got, " ") != strings.Join(want, " ") {
			t.Errorf("by %s: %v, want %v", sort, got, want)
		}
	}
}

func TestAdminLocksRefusals(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	for query, want := range map[string]problem{
		"sort=age": invalid(
			"sort",
			"must be name, waiters, oldest_wait, held_for or utilization, with a minus for the largest "+
				"first",
		),
		"state=free": invalid("state", "must be held or contended"),
		"search=a/b": invalid(
			"search", "must be up to 200 characters of lock names, with at most one star",
		),
		"search=" + strings.Repeat("a", 201): invalid(
			"search", "must be up to 200 characters of lock names, with at most one star",
		),
		"search=*a*": invalid(
			"search", "must be up to 200 characters of lock names, with at most one star",
		),
		"holder=" + "%0a": invalid(
			"holder",
			"must not have control characters, line breaks or marks that turn the direction of writing",
		),
		"limit=0": invalid("limit", "must be a whole number from 1 to 1000"),
		"cursor=YWZ0ZXI6b3JkZXJzOjQy": invalid("cursor", "must be the next_cursor of a page of this "+
			"list; leave it out to begin again"),
		"tenant=A":                              noTenant(),
		"tenant=" + c.claims.Tenant + "&name=x": invalid("name", notAParameter),
	} {
		c.admin().get("/admin/locks?" + query).wantProblem(want)
	}
	for _, path := range []string{
		"/admin/overview?tenant=A", "/admin/series?tenant=A", "/admin/tenants?tenant=A",
		"/admin/locks/A/a/history",
	} {
		c.admin().get(path).wantProblem(noTenant())
	}
	c.admin().get("/admin/locks/A/a").wantProblem(noTenant())
	c.admin().get("/admin/locks/acme/-a").wantStatus(http.StatusBadRequest)
	c.operator().get("/admin/locks/acme/a").wantProblem(ownTenantOnly())
	limited := c.admin().within("a")
	limited.get("/admin/locks/acme/b").wantProblem(otherNames("b"))
}

// TestOverview counts what the operator may see, and names where most wait.
func TestOverview(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	e := c.acquire("a", worker("w1"))
	c.acquire("b")
	c.join("a", waitsAs("w2"))
	c.join("a", waitsAs("w3"))
	c.post("/locksets", body(`{"locks":[{"name":"c"},{"name":"d"}]}`))
	newTenant(t).acquire("a")
	var o api.AdminOverview
	poll.Until(t, "everything is counted", func() bool {
		o = api.AdminOverview{}
		c.operator().get("/admin/overview").want(http.StatusOK, &o)
		return o.Locks == 4 && o.Held == 4 && o.Contended == 1 && o.Holding == 4 && o.Waiting == 2
	})
	if o.Oldest == nil || o.Oldest.Holder != "w2" || o.Oldest.Name != "a" ||
		o.Oldest.Tenant != c.claims.Tenant || !o.Store.Current || o.Replicas != nil {
		t.Errorf("overview: %+v", o)
	}
	if b := o.Blockers; len(b) != 1 || b[0].Name != "a" || b[0].Waiting != 2 || b[0].Holder == nil ||
		b[0].Holder.ID != e.ID || b[0].OldestSince != o.Oldest.Since {
		t.Errorf("blockers: %+v", o.Blockers)
	}
	var everything api.AdminOverview
	c.admin().get("/admin/overview").want(http.StatusOK, &everything)
	if everything.Locks < 5 || len(everything.Replicas) != 1 ||
		everything.Replicas[0].Replica != replicaID || everything.Replicas[0].Host != "pod-1" {
		t.Errorf("overview of all: %+v", everything)
	}
}

// TestAdminLock: an operator sees everything about one lock.
func TestAdminLock(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	e := c.acquire("a", body(`{"holder":"w1","metadata":{"job":"7"}}`))
	next := c.join("a", body(`{"holder":"w2","wait_seconds":60,"metadata":{"job":"8"}}`))
	c.start(
		"POST", "/locksets",
		body(`{"locks":[{"name":"a"},{"name":"b","mode":"shared"}],"holder":"w3","wait_seconds":60}`),
	)
	path := "/admin/locks/" + c.claims.Tenant + "/a"
	var v api.AdminLockView
	poll.Until(t, "both wait", func() bool {
		v = api.AdminLockView{}
		c.admin().get(path).want(http.StatusOK, &v)
		return v.Waiting == 2
	})
	if h := v.Holders; len(h) != 1 || v.Holding != 1 || h[0].ID != e.ID || h[0].Fence != *e.Fence ||
		h[0].ExpiresAt == nil || h[0].Metadata["job"] != "7" {
		t.Errorf("holders: %+v", h)
	}
	w := v.Waiters
	if len(w) != 2 || w[0].Position != 1 || w[0].Holder != "w2" || w[0].Number <= *e.Fence ||
		w[0].WaitUntil == nil || w[0].Metadata["job"] != "8" || w[1].Set != 2 ||
		w[1].Mode != "exclusive" {
		t.Errorf("waiters: %+v", w)
	}
	if !strings.Contains(v.Figures.RecommendedTTLReason, "too few") {
		t.Errorf("the reason is %q", v.Figures.RecommendedTTLReason)
	}
	c.release(e)
	c.release(next.wait().held(http.StatusCreated))
	for range 10 {
		c.release(c.acquire("z"))
	}
	poll.Until(t, "the figures are there", func() bool {
		v = api.AdminLockView{}
		c.operator().get("/admin/locks/"+c.claims.Tenant+"/z").want(http.StatusOK, &v)
		return v.Figures.RecommendedTTLSeconds != nil && v.Figures.Acquisitions == 10 &&
			len(v.Holders) == 0
	})
	count := 0
	for _, s := range v.Figures.Holds {
		count += s.Count
	}
	if count != 10 || !strings.Contains(v.Figures.RecommendedTTLReason, "99 of 100") ||
		len(v.Holders) != 0 || v.Fence == 0 {
		t.Errorf("%d holds are distributed: %+v", count, v)
	}
}

// consoleStub stands in for the console on bad days.
type consoleStub struct {
	handlers.Console
	err   error
	panic any
	page  lists.Page
	lock  service.LockView
	lost  atomic.Pointer[time.Time] // since when the store is out of sight

	blocking *service.Blocking
}

func (s *consoleStub) Replica() string { return replicaID }

func (s *consoleStub) Draining() <-chan struct{} { return nil }

func (s *consoleStub) LostSince() (time.Time, bool) {
	if at := s.lost.Load(); at != nil {
		return *at, true
	}
	return time.Time{}, false
}

func (s *consoleStub) fail() error {
	if s.panic != nil {
		panic(s.panic)
	}
	return s.err
}

func (s *consoleStub) Overview(lists.Sight) (*service.Overview, error) {
	return &service.Overview{
		Totals: &lists.Totals{}, LostFor: 2 * time.Second, Refusal: s.err,
	}, s.fail()
}

func (s *consoleStub) Locks(context.Context, lists.Query) (*lists.Page, error) {
	p := s.page
	return &p, s.fail()
}

func (s *consoleStub) Inspect(context.Context, lock.Ref) (*service.Inspection, error) {
	return &service.Inspection{LockView: &s.lock}, s.fail()
}

func (s *consoleStub) Blocking(lists.Sight, int) (*service.Blocking, error) {
	return s.blocking, s.fail()
}

func (s *consoleStub) Holdings(lists.Sight, string, int) (*service.Holdings, error) {
	return &service.Holdings{}, s.fail()
}

func (s *consoleStub) Series(string, time.Duration) (*service.Series, error) {
	return &service.Series{}, s.fail()
}

func (s *consoleStub) History(context.Context, lock.Ref) (*service.History, error) {
	return &service.History{}, s.fail()
}

func (s *consoleStub) HeatMap(lists.Sight, int) (*service.HeatMap, error) {
	return &service.HeatMap{}, s.fail()
}

func (s *consoleStub) Tenants(lists.Sight, string, int) (*service.Tenants, error) {
	return &service.Tenants{Tenants: &lists.Tenants{}}, s.fail()
}

func overConsole(t *testing.T, s *consoleStub) *client {
	t.Helper()
	h := shared.handlers(&stub{})
	h.Console, h.Closures = s, closuresStub{&stub{}}
	r := serve(nil, handlers.New(h))
	t.Cleanup(r.close)
	return newTenant(t).at(r).admin()
}

// shownPaths are of answers that can be large.
func shownPaths() []string {
	return []string{
		"/admin/locks", "/admin/locks/acme/a", "/admin/blocking", "/admin/holders?tenant=acme&holder=w1",
		"/admin/series", "/admin/tenants", "/admin/heatmap", "/admin/locks/acme/a/history",
	}
}

// TestOverviewSaysForHowLongTheStoreIsAway: in seconds.
func TestOverviewSaysForHowLongTheStoreIsAway(t *testing.T) {
	t.Parallel()
	var o api.AdminOverview
	overConsole(t, &consoleStub{}).get("/admin/overview").want(http.StatusOK, &o)
	if o.Store.Current || o.Store.LostSeconds == nil || *o.Store.LostSeconds != 2 {
		t.Errorf("store: %+v", o.Store)
	}
}

// TestStoreOutOfSight: every answer says since when the replica does not see the store, and says
// nothing of it while it does.
func TestStoreOutOfSight(t *testing.T) {
	t.Parallel()
	s := &consoleStub{blocking: &service.Blocking{Forest: &blocking.Forest{}}}
	c, since := overConsole(t, s), time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC)
	paths := slices.DeleteFunc(
		append(shownPaths(), "/admin/overview", "/admin/closures"),
		func(path string) bool {
			return strings.HasPrefix(path, "/admin/locks/") // the stub has none that could be described
		},
	)
	says := func(want string) {
		for _, path := range paths {
			poll.Until(
				t,
				path+" says since when the store is out of sight",
				func() bool { // the page is cached for a moment
					a := c.get(path)
					a.wantStatus(http.StatusOK)
					_, rest, _ := strings.Cut(string(a.body), `"store_lost_since":"`)
					since, _, _ := strings.Cut(rest, `"`)
					return since == want
				},
			)
		}
	}
	says("")
	s.lost.Store(&since)
	says("2026-01-02T15:04:05.000Z")
	s.lost.Store(nil)
	says("")
}

func manyRows() (p lists.Page) {
	long := strings.Repeat("h", 200)
	for i := range 1000 {
		row := &view.Row{Ref: lock.Ref{Tenant: "acme", Name: fmt.Sprintf("a:%d", i)}, Holding: 10}
		for range 10 {
			e := &lock.Entry{
				ID: someID, Tenant: "acme", Holder: long, Number: 7,
				Claims:   []lock.Claim{{Name: row.Name, Mode: lock.Shared}},
				Metadata: map[string]string{"a": long},
			}
			row.Holders = append(row.Holders, view.Holder{Entry: e, Since: time.Now()})
		}
		p.Rows = append(p.Rows, lists.Line{Row: row})
	}
	return p
}

// TestLargeAdminPage: it ends where it would be too long, and says where to go on.
func TestLargeAdminPage(t *testing.T) {
	t.Parallel()
	a := overConsole(t, &consoleStub{page: manyRows()}).get("/admin/locks?limit=1000")
	var page api.AdminLockPage
	a.want(http.StatusOK, &page)
	if n := len(page.Locks); len(a.body) > 1<<20 || n == 0 || n == 1000 || page.NextCursor == "" {
		t.Errorf("%d locks in %d bytes, cursor %q", n, len(a.body), page.NextCursor)
	}
}
