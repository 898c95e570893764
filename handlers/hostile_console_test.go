package handlers_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/fencepost/fencepost/api"
	"github.com/fencepost/fencepost/audit"
	"github.com/fencepost/fencepost/auth"
	"github.com/fencepost/fencepost/handlers"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service/lists"
	"github.com/fencepost/fencepost/service/view"
	"github.com/fencepost/fencepost/test/poll"
)

// slowConsole makes nothing until it is let go.
type slowConsole struct {
	consoleStub
	gate chan struct{}

	mu        sync.Mutex
	now, most int
}

func (s *slowConsole) Locks(context.Context, lists.Query) (*lists.Page, error) {
	s.mu.Lock()
	s.now++
	s.most = max(s.most, s.now)
	s.mu.Unlock()
	<-s.gate
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now--
	return &lists.Page{}, nil
}

func (s *slowConsole) making() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

// TestRenderingsAtOnce: a tenant that asks for very many different pages at once has only a few of
// them made, the rest is rejected, and another tenant's page comes next.
func TestRenderingsAtOnce(t *testing.T) {
	t.Parallel()
	s := &slowConsole{gate: make(chan struct{})}
	open := sync.OnceFunc(func() { close(s.gate) })
	defer open()
	c, _ := overRouter(t, &stub{}, func(h *handlers.Config) { h.Console = s })
	atOnce := handlers.GateSlots()
	most := atOnce + handlers.MaxGateWaitersOfTenant
	asked := make([]*pending, most+20)
	for i := range asked {
		asked[i] = c.operator().start("GET", fmt.Sprintf("/admin/locks?search=x%d", i))
	}
	rejected := func() (n int) {
		for _, p := range asked {
			if p.answered() {
				n++
			}
		}
		return n
	}
	poll.Until(
		t, "pages are made, and others rejected",
		func() bool { return s.making() == atOnce && rejected() == 20 },
	)
	other := newTenant(t).at(c.replica).admin().start("GET", "/admin/locks")
	open()
	other.wait().wantStatus(http.StatusOK)
	made := 0
	for _, p := range asked {
		if a := p.wait(); a.status == http.StatusOK {
			made++
		} else {
			a.wantProblem(
				problem{
					code: "overloaded", detail: "too many lists and looks are under way; retry after Retry-After",
				},
				"may_have_taken_effect",
			)
		}
	}
	if s.most > atOnce || made != most {
		t.Errorf("%d are made at once, and %d of %d in all", s.most, made, len(asked))
	}
}

// namesConsole has one lock, and shows it to callers that may see it.
type namesConsole struct{ consoleStub }

func (*namesConsole) Locks(_ context.Context, q lists.Query) (*lists.Page, error) {
	p := &lists.Page{}
	if row := (&view.Row{Ref: lock.Ref{Tenant: q.Tenant, Name: "a"}}); q.Sees(row.Ref) {
		p.Rows, p.Matching = []lists.Line{{Row: row}}, 1
	}
	return p, nil
}

// TestSharedWithin: a page that was made for one set of patterns is never given to a caller with
// another, however the patterns are written.
func TestSharedWithin(t *testing.T) {
	t.Parallel()
	c, _ := overRouter(t, &stub{}, func(h *handlers.Config) { h.Console = &namesConsole{} })
	op := c.operator()
	for range 20 { // what is made is kept for a moment only
		var seen, none api.AdminLockPage
		op.within("a", "b").get("/admin/locks").want(http.StatusOK, &seen)
		op.within("a b").get("/admin/locks").want(http.StatusOK, &none)
		if len(seen.Locks) != 1 || len(none.Locks) != 0 {
			t.Fatalf("%d and %d locks are shown, want 1 and 0", len(seen.Locks), len(none.Locks))
		}
	}
}

// TestSharedWithinTenant: what is made for one tenant's operators is not given to another's,
// nor to those of all, who ask for the same at the same moment.
func TestSharedWithinTenant(t *testing.T) {
	t.Parallel()
	c, _ := overRouter(t, &stub{}, func(h *handlers.Config) { h.Console = &namesConsole{} })
	asks := []*client{c.operator(), newTenant(t).at(c.replica).operator(), c.admin()}
	of := []string{asks[0].claims.Tenant, asks[1].claims.Tenant, ""}
	for range 20 { // what is made is kept for a moment only
		for i, op := range asks {
			var page api.AdminLockPage
			if op.get("/admin/locks").want(http.StatusOK, &page); len(page.Locks) != 1 ||
				page.Locks[0].Tenant != of[i] {
				t.Fatalf("who operates %q is shown %+v", of[i], page.Locks)
			}
		}
	}
}

// TestSharedForLong: what was made is forgotten after its moment, and leaves room for others.
func TestSharedForLong(t *testing.T) {
	t.Parallel()
	large := &consoleStub{page: manyRows()}
	c, router := overRouter(t, &stub{}, func(h *handlers.Config) { h.Console = large })
	op := c.admin()
	for i := range 5 {
		op.get(fmt.Sprintf("/admin/locks?search=x%d", i)).wantStatus(http.StatusOK)
	}
	poll.Until(t, "it is forgotten", func() bool {
		op.get("/admin/overview").wantStatus(http.StatusOK)
		counted, kept := router.Kept()
		return counted == kept && kept < 1<<20
	})
}

// TestExportsOfTenant: one tenant that reads what it exports slowly does not keep others from
// theirs.
func TestExportsOfTenant(t *testing.T) {
	t.Parallel()
	records := make([]*audit.Record, 0, 20_000) // more than a connection holds
	for range cap(records) {
		records = append(records, &audit.Record{ID: someID, Reason: strings.Repeat("r", 500)})
	}
	c, _ := overRouter(
		t, &stub{}, func(h *handlers.Config) { h.Audit = trail{page: &audit.Page{Records: records}} },
	)
	lines := header("Accept", "application/x-ndjson")
	hostile := c.operator()
	slow, err := c.replica.transport.RoundTrip(
		hostile.request(t.Context(), "GET", "/admin/audit", lines).Request,
	)
	if err != nil || slow.StatusCode != http.StatusOK {
		t.Fatal(slow, err)
	}
	defer slow.Body.Close()
	hostile.get("/admin/audit", lines).wantStatus(http.StatusTooManyRequests)
	newTenant(t).at(c.replica).admin().get("/admin/audit", lines).wantStatus(http.StatusOK)
}

// slowTrail answers when the test lets it.
type slowTrail struct {
	asked chan struct{}
	let   chan struct{}
}

func (s slowTrail) Page(ctx context.Context, _ audit.Query) (*audit.Page, error) {
	s.asked <- struct{}{}
	select {
	case <-s.let:
	case <-ctx.Done():
	}
	return &audit.Page{}, nil
}

// TestAuditPagesOfTenant: one tenant cannot have the store read as many pages as it likes.
func TestAuditPagesOfTenant(t *testing.T) {
	t.Parallel()
	slow := slowTrail{make(chan struct{}, 10), make(chan struct{})}
	c, _ := overRouter(t, &stub{}, func(h *handlers.Config) { h.Audit = slow })
	hostile := c.operator()
	var pages []*pending
	for range 4 {
		pages = append(pages, hostile.start("GET", "/admin/audit"))
		<-slow.asked
	}
	hostile.get("/admin/audit").wantStatus(http.StatusTooManyRequests)
	other := newTenant(t).at(c.replica).admin().start("GET", "/admin/audit")
	<-slow.asked
	close(slow.let)
	for _, page := range append(pages, other) {
		page.wait().wantStatus(http.StatusOK)
	}
}

// TestOperatorsNotCached: no cache keeps what an operator sees, as a cookie alone can ask for it.
func TestOperatorsNotCached(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	for _, path := range []string{
		"/admin/overview", "/admin/locks", "/admin/audit", "/admin/deadlocks", "/admin/lock-order",
	} {
		if a := c.as(
			func(cl *auth.Claims) { cl.Scopes = []auth.Scope{auth.Admin} },
		).get(path); a.header.Get("Cache-Control") != "no-store" {
			t.Errorf("%v has Cache-Control %q", a.asked, a.header.Get("Cache-Control"))
		}
	}
}
