package handlers_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/fencepost/fencepost/auth"
	"github.com/fencepost/fencepost/handlers"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/lock/quota"
	"github.com/fencepost/fencepost/service/lists"
	"github.com/fencepost/fencepost/service/quotas"
	"github.com/fencepost/fencepost/service/view"
)

// dear is a pattern that takes as long as it can: 37 times as long as looking for one character.
func dear() string { return "*" + strings.Repeat("a", 64) + "b*" }

// TestPriceOfLockOrder: an operator who may see some names pays for all orders that are held against his
// patterns, and waits for his tenant's turn before.
func TestPriceOfLockOrder(t *testing.T) {
	t.Parallel()
	q := &priceMeter{Quotas: quotas.New(quotas.Config{})}
	var looks atomic.Int64
	s := &stub{order: largeReport(), listed: func() { looks.Add(1) }}
	c, router := overRouter(t, s, func(h *handlers.Config) { h.Quotas = q })
	narrow := c.operator().within(slices.Repeat([]string{dear()}, 10)...)
	narrow.get("/admin/lock-order").wantStatus(http.StatusOK)
	if got, want := q.price.Load(), int64(1+1000*(1+(4+370)/8)/1000); got != want { // the first of the two names of each
		t.Errorf("it costs %d, want %d", got, want)
	}
	done := router.TakeTurn(quotas.Looking(c.claims.Tenant))
	p := narrow.start("GET", "/admin/lock-order")
	eventually(t, "it waits", func() bool { return router.Turns(quotas.Looking(c.claims.Tenant)) == 2 })
	if looks.Load() != 1 {
		t.Error("orders are looked at before the turn")
	}
	done()
	p.wait().wantStatus(http.StatusOK)
}

// searched is a console that has looked at so many locks for each page.
type searched struct {
	consoleStub
	locks int
}

func (s *searched) Locks(context.Context, lists.Query) (*lists.Page, error) {
	return &lists.Page{Looked: s.locks}, nil
}

// TestPriceOfSearches: a tenant's operator who may see all its names pays for those that are looked at too, and more
// for what takes longer to find. One of all tenants does not.
func TestPriceOfSearches(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]int64{
		"/admin/locks": 1 + 2, "/admin/locks?sort=-held_for&limit=1": 1 + 2, "/admin/locks?search=" + dear(): 1 + 2*(1+(4+37)/8),
		"/admin/locks?search=" + strings.Trim(dear(), "*"): 1 + 2*(1+(4+37)/8),
	} {
		for scope, want := range map[auth.Scope]int64{auth.TenantAdmin: want, auth.Admin: 0} {
			q := &priceMeter{Quotas: quotas.New(quotas.Config{})}
			inBubble(t, func(c *handlers.Config) {
				c.Console, c.Quotas = &searched{locks: 2000}, q
				c.Verifier = &knownAs{Tenant: "acme", Scopes: []auth.Scope{scope}}
			}, func(h *house) {
				if status, _ := h.ask("GET "+path, asKnown); status != http.StatusOK || q.price.Load() != want {
					h.Errorf("as %s, %s: %d, for %d, want %d", scope, path, status, q.price.Load(), want)
				}
			})
		}
	}
}

// TestRenderingsOfTenant: of one tenant's operators one page is made at a time, whatever they may see. Others have
// theirs made meanwhile.
func TestRenderingsOfTenant(t *testing.T) {
	t.Parallel()
	s := &slowConsole{gate: make(chan struct{})}
	open := sync.OnceFunc(func() { close(s.gate) })
	defer open()
	c, _ := overRouter(t, &stub{}, func(h *handlers.Config) { h.Console = s })
	var asked []*pending
	for i := range 10 {
		asked = append(asked, c.operator().start("GET", fmt.Sprintf("/admin/locks?search=x%d", i)))
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

// creditor says of everybody that he owes, until he is paid.
type creditor struct {
	priceMeter
	paid  atomic.Bool
	asked atomic.Int64
}

func (c *creditor) Owes(string, quota.Limit) bool {
	c.asked.Add(1)
	return !c.paid.Load()
}

// TestPriceOfDeadlocks: an operator who may see some names pays for all of refused deadlocks that are held against
// his patterns.
func TestPriceOfDeadlocks(t *testing.T) {
	t.Parallel()
	q := &priceMeter{Quotas: quotas.New(quotas.Config{})}
	refused := view.Deadlock{Tenant: "acme", Refused: &lock.Entry{Claims: []lock.Claim{{Name: "a"}, {Name: "b"}}}, Cycle: []lock.Wait{{Lock: "a"}, {Lock: "b"}}}
	c, _ := overRouter(t, &stub{deadlocks: slices.Repeat([]view.Deadlock{refused}, 100)}, func(h *handlers.Config) { h.Quotas = q })
	c.operator().within(slices.Repeat([]string{dear()}, 10)...).get("/admin/deadlocks").wantStatus(http.StatusOK)
	if got, want := q.price.Load(), int64(1+400*(1+(4+370)/8)/1000); got != want {
		t.Errorf("it costs %d, want %d", got, want)
	}
}
