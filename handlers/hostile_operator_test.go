package handlers_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fencepost/fencepost/api"
	"github.com/fencepost/fencepost/audit"
	"github.com/fencepost/fencepost/auth"
	"github.com/fencepost/fencepost/handlers"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/lock/quota"
	"github.com/fencepost/fencepost/service"
	"github.com/fencepost/fencepost/service/lists"
	"github.com/fencepost/fencepost/service/quotas"
	"github.com/fencepost/fencepost/service/view"
	"github.com/fencepost/fencepost/webhook"
	"github.com/fencepost/fencepost/webhook/outbox"
)

// knownAs takes every bearer token for that of somebody.
type knownAs auth.Principal

func (k *knownAs) Verify(context.Context, string) (*auth.Principal, error) {
	return (*auth.Principal)(k), nil
}

// TestListOfWhoGoesAway: who hangs up before his list is complete pays for what was looked at.
func TestListOfWhoGoesAway(t *testing.T) {
	t.Parallel()
	q := &priceMeter{Quotas: quotas.New(quotas.Config{})}
	var leave context.CancelFunc
	s := &stub{page: view.Page{Looked: 5000}, listed: func() { leave() }, more: func() bool { return true }}
	inBubble(t, func(c *handlers.Config) {
		c.Locks, c.Quotas = s, q
		c.Verifier = &knownAs{Tenant: "acme", Scopes: []auth.Scope{auth.LocksRead}}
	}, func(h *house) {
		var ctx context.Context
		ctx, leave = context.WithCancel(h.Context())
		defer leave()
		r := httptest.NewRequest(http.MethodGet, "/locks", http.NoBody).WithContext(ctx)
		asKnown(r)
		func() {
			defer func() { _ = recover() }() // the connection is closed without an answer
			h.ServeHTTP(httptest.NewRecorder(), r)
		}()
		if got := q.price.Load(); got != 1+5 {
			h.Errorf("a list of which 5000 names were looked at costs %d, want 6", got)
		}
		if n := h.Turns("acme"); n != 0 {
			h.Errorf("%d turns are kept", n)
		}
	})
}

// TestOperatorsLookBesideTheirTenant: a tenant's own operator waits for no turn of those who work, nor does
// what they leave unread take up his room.
func TestOperatorsLookBesideTheirTenant(t *testing.T) {
	t.Parallel()
	c, router := overRouter(t, &stub{order: largeReport()}, asIs)
	done := router.KeepTurn(c.claims.Tenant)
	defer done()
	router.Fill(c.claims.Tenant)
	p := c.operator().start("GET", "/admin/lock-order?limit=1000")
	eventually(t, "it is answered", p.answered)
	if a := p.wait(); a.status != http.StatusOK || len(a.body) < 16<<10 {
		t.Errorf("%d with %d bytes", a.status, len(a.body))
	}
	eventually(t, "his turn is over, and nothing is kept", func() bool {
		return router.Turns(quotas.Looking(c.claims.Tenant)) == 0 && router.InFlight() == handlers.MaxAnswersOfTenant
	})
}

// TestRoomIsGivenBack: room for a large answer is given back to who took it, so that none is lost.
func TestRoomIsGivenBack(t *testing.T) {
	t.Parallel()
	c, router := overRouter(t, &stub{order: largeReport()}, asIs)
	if a := c.operator().get("/admin/lock-order?limit=1000"); a.status != http.StatusOK || len(a.body) < 16<<10 {
		t.Errorf("%d with %d bytes", a.status, len(a.body))
	}
	eventually(t, "nobody has any", func() bool { return router.Rooms() == 0 })
}

// accounts notes on whose account requests count.
type accounts struct {
	handlers.Quotas
	of []string
}

func (a *accounts) Take(tenant string, l quota.Limit) error {
	a.of = append(a.of, tenant)
	return a.Quotas.Take(tenant, l)
}

// TestPriceOfOperatedWebhooks: a list of webhooks costs a tenant's operator what the store is asked for it, and a
// list of deliveries what it reads, shown or not.
func TestPriceOfOperatedWebhooks(t *testing.T) {
	t.Parallel()
	q := &priceMeter{Quotas: shared.quotas}
	h := shared.handlers(shared.main.service)
	h.Quotas, h.Console = q, shared.main.console
	owed := outbox.Delivery{ID: "1-1", Type: "lock.acquired", State: webhook.StatePending, Made: time.Now()}
	h.Deliveries = &stubDeliveries{page: outbox.Page{Deliveries: slices.Repeat([]outbox.Delivery{owed}, 8), Looked: 400}}
	r := serve(nil, handlers.New(h))
	t.Cleanup(r.close)
	c := subscriber(t).at(r)
	made := c.subscribe(`{` + receiver + `}`)
	c.subscribe(`{` + receiver + `}`)
	var page api.AdminWebhookPage
	list := func(who *client, query string) int64 {
		q.price.Store(0)
		who.get("/admin/webhooks"+query).want(http.StatusOK, &page)
		return q.price.Load()
	}
	eventually(t, "both are listed, for what that costs", func() bool { return list(c.operator(), "") == 1+2*2+2*(400/4) && len(page.Webhooks) == 2 })
	if cost := list(c.admin(), "?tenant="+c.claims.Tenant); cost != 0 {
		t.Errorf("it costs an operator of all tenants %d", cost)
	}
	q.price.Store(0)
	c.operator().get("/admin/webhooks/" + c.claims.Tenant + "/" + made.ID).wantStatus(http.StatusOK)
	if cost := q.price.Load(); cost != 1+400/4 {
		t.Errorf("one for which 400 deliveries are read costs %d", cost)
	}
	q.price.Store(0)
	c.get("/webhooks/" + made.ID + "/deliveries").wantStatus(http.StatusOK)
	if cost := q.price.Load(); cost != 1+400/4 {
		t.Errorf("deliveries among 400 cost %d", cost)
	}
}

// TestPriceOfTheAudit: a page of the audit costs what was read for it.
func TestPriceOfTheAudit(t *testing.T) {
	t.Parallel()
	q := &priceMeter{Quotas: quotas.New(quotas.Config{})}
	inBubble(t, func(c *handlers.Config) {
		c.Audit, c.Quotas = trail{page: &audit.Page{Looked: 400}}, q
		c.Verifier = &knownAs{Tenant: "acme", Scopes: []auth.Scope{auth.TenantAdmin}}
	}, func(h *house) {
		if status, _ := h.ask("GET /admin/audit?limit=1", asKnown); status != http.StatusOK || q.price.Load() != 1+400/4 {
			h.Errorf("%d, for %d", status, q.price.Load())
		}
	})
}

// orders sends what an operator orders, and returns how it is answered, and after how long.
func (h *house) orders(method, path, text string) (status int, took time.Duration) {
	r := httptest.NewRequest(method, path, strings.NewReader(text))
	r.Header.Set("Content-Type", "application/json")
	asKnown(r)
	w, began := httptest.NewRecorder(), time.Now()
	h.ServeHTTP(w, r)
	return w.Code, time.Since(began)
}

// TestOrdersInVainArePaced: a tenant's own operator who orders on and on what cannot be is answered later, and
// an operator of all tenants is not. What he orders is done at once.
func TestOrdersInVainArePaced(t *testing.T) {
	t.Parallel()
	gone := lock.Errorf(lock.NotFound, "gone")
	holder := `{"tenant":"acme","holder":"w","reason":"it hangs for hours","entries":[{"id":"` + someID + `","fence":7}]}`
	entry := `{"fence":7,"reason":"it hangs for hours"}`
	for name, tc := range map[string]struct{ method, path, text string }{
		"Open":   {"DELETE", "/admin/closures/" + someID, `{}`},
		"Revoke": {"POST", "/admin/locks/acme/a/entries/" + someID + "/revoke", entry},
		"Set":    {"POST", "/admin/locksets/acme/" + someID + "/revoke", entry},
		"Holder": {"POST", "/admin/holders/revoke", holder},
		"Close":  {"POST", "/admin/closures", `{}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for scope, want := range map[auth.Scope]time.Duration{auth.TenantAdmin: heldBack, auth.Admin: 0} {
				limits := quota.Standard()
				limits[quota.Requests] = 10
				inBubble(t, func(c *handlers.Config) {
					c.Locks = &stub{err: gone, outcomes: []service.RevokeOutcome{{Err: gone}}}
					c.Quotas = quotas.New(quotas.Config{Defaults: limits})
					c.Verifier = &knownAs{Tenant: "acme", Scopes: []auth.Scope{scope}}
				}, func(h *house) {
					order := func(want time.Duration) {
						h.Helper()
						if status, took := h.orders(tc.method, tc.path, tc.text); !about(want, took) || status == http.StatusTooManyRequests {
							h.Fatalf("as %s it is answered %d after %v, want that after %v", scope, status, took, want)
						}
					}
					for range 10 + 100 {
						order(0)
					}
					order(want)
				})
			}
		})
	}
}

// TestOrdersThatAreDoneAreNotPaced: only what came to nothing is answered later.
func TestOrdersThatAreDoneAreNotPaced(t *testing.T) {
	t.Parallel()
	limits := quota.Standard()
	limits[quota.Requests] = 0
	inBubble(t, func(c *handlers.Config) {
		c.Closures, c.Quotas = closuresStub{&stub{}}, quotas.New(quotas.Config{Defaults: limits})
		c.Verifier = &knownAs{Tenant: "acme", Scopes: []auth.Scope{auth.TenantAdmin}}
	}, func(h *house) {
		for range 300 {
			if status, took := h.orders("DELETE", "/admin/closures/"+someID, `{}`); status != http.StatusNoContent || took > 0 {
				h.Fatalf("%d after %v", status, took)
			}
		}
	})
}

// TestAccountOfOrdersInVain: what is ordered in vain counts with what a tenant's operator looks at, and takes nothing
// from who works.
func TestAccountOfOrdersInVain(t *testing.T) {
	t.Parallel()
	q := &accounts{Quotas: quotas.New(quotas.Config{})}
	inBubble(t, func(c *handlers.Config) {
		c.Closures, c.Quotas = closuresStub{&stub{err: lock.Errorf(lock.NotFound, "gone")}}, q
		c.Verifier = &knownAs{Tenant: "acme", Scopes: []auth.Scope{auth.TenantAdmin}}
	}, func(h *house) {
		if status, _ := h.orders("DELETE", "/admin/closures/"+someID, `{}`); status != http.StatusNotFound || !slices.Equal(q.of, []string{quotas.Looking("acme")}) {
			h.Errorf("%d, on the account of %v", status, q.of)
		}
	})
}

// TestRevokedInPart: who revokes some of what he orders to be is answered at once, whichever of them it is.
func TestRevokedInPart(t *testing.T) {
	t.Parallel()
	limits := quota.Standard()
	limits[quota.Requests] = 0
	entry := `{"id":"` + someID + `","fence":7}`
	holder := `{"tenant":"acme","holder":"w","reason":"it hangs for hours","entries":[` + entry + `,{"id":"` + someID[:25] + "0" + `","fence":8}]}`
	gone, done := service.RevokeOutcome{Err: lock.Errorf(lock.NotFound, "gone")}, service.RevokeOutcome{Revoked: &service.Revoked{Record: &audit.Record{}}}
	for _, outcomes := range [][]service.RevokeOutcome{{done, gone}, {gone, done}} {
		inBubble(t, func(c *handlers.Config) {
			c.Locks, c.Quotas = &stub{outcomes: outcomes}, quotas.New(quotas.Config{Defaults: limits})
			c.Verifier = &knownAs{Tenant: "acme", Scopes: []auth.Scope{auth.TenantAdmin}}
		}, func(h *house) {
			for range 300 {
				if status, took := h.orders("POST", "/admin/holders/revoke", holder); status != http.StatusOK || took > 0 {
					h.Fatalf("%d after %v", status, took)
				}
			}
		})
	}
}

// seeing is a console that has so many locks, and asks of each whether it may be seen.
type seeing struct {
	consoleStub
	locks int
}

func (s *seeing) Locks(_ context.Context, q lists.Query) (*lists.Page, error) {
	for i := range s.locks {
		q.Sees(lock.Ref{Tenant: q.Tenant, Name: fmt.Sprint("n", i)})
	}
	return &lists.Page{}, nil
}

// TestPriceOfNarrowLooks: an operator who may see some of many locks pays for looking at all, as for a list, and
// once for what is shown to several.
func TestPriceOfNarrowLooks(t *testing.T) {
	t.Parallel()
	q := &priceMeter{Quotas: quotas.New(quotas.Config{})}
	some := slices.Repeat([]auth.Pattern{must(auth.ParsePattern("*n*0*-*1*x*"))}, 100) // 6 texts each, 8 of which take as long as a look
	who := &knownAs{Tenant: "acme", Scopes: []auth.Scope{auth.TenantAdmin}, Locks: some}
	inBubble(t, func(c *handlers.Config) {
		c.Console, c.Quotas, c.Verifier = &seeing{locks: 2000}, q, who
	}, func(h *house) {
		for _, want := range []int64{1 + 2000*76/1000, 1} { // the second is shown what was made for the first
			q.price.Store(0)
			if status, _ := h.ask("GET /admin/locks", asKnown); status != http.StatusOK || q.price.Load() != want {
				h.Errorf("%d, for %d, want %d", status, q.price.Load(), want)
			}
		}
	})
}

// TestRenderingsOfWhoMaySeeSome: what is made for one who may see some names is made one after the other, for
// it may take long. Others have theirs made meanwhile.
func TestRenderingsOfWhoMaySeeSome(t *testing.T) {
	t.Parallel()
	s := &slowConsole{gate: make(chan struct{})}
	open := sync.OnceFunc(func() { close(s.gate) })
	defer open()
	c, _ := overRouter(t, &stub{}, func(h *handlers.Config) { h.Console = s })
	var asked []*pending
	narrow := c.operator().within("a*")
	for i := range 10 {
		asked = append(asked, narrow.start("GET", fmt.Sprintf("/admin/locks?search=x%d", i)))
	}
	eventually(t, "one is made", func() bool { return s.making() == 1 })
	for i := range 3 {
		asked = append(asked, c.admin().start("GET", fmt.Sprintf("/admin/locks?search=y%d", i)))
	}
	eventually(t, "those of others are made too", func() bool { return s.making() == 4 })
	open()
	for _, p := range asked {
		p.wait().wantStatus(http.StatusOK)
	}
}

// TestPriceOfNarrowStreams: who follows events by very many patterns pays for having each event held against
// them, told or not, and nobody else pays for what he is told.
func TestPriceOfNarrowStreams(t *testing.T) {
	t.Parallel()
	q := &priceMeter{Quotas: shared.quotas}
	h := shared.handlers(shared.main.service)
	h.Quotas = q
	r := serve(nil, handlers.New(h))
	t.Cleanup(r.close)
	c := newTenant(t)
	c.at(r).within("a*", "b*").follow("/events")
	if got := q.price.Load(); got != 1 {
		t.Errorf("to follow costs %d", got)
	}
	for range 4 { // each of 2 events of 32 locks
		made := c.acquireSet(locksOf(names(32)...))
		c.delete("/locksets/"+made.ID, lockToken(made.Token)).wantStatus(http.StatusNoContent)
	}
	c.at(r).within(slices.Repeat([]string{"*n*0*-*1*x*"}, 70)...).follow("/events", header("Last-Event-ID", "1-1"))
	eventually(t, "it is paid for", func() bool { return q.price.Load() >= 2+4*32*52/1000 })
	if got := q.price.Load(); got > 2+8*32*53/1000 {
		t.Errorf("that costs %d", got)
	}
}
