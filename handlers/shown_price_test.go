package handlers_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fencepost/fencepost/audit"
	"github.com/fencepost/fencepost/auth"
	"github.com/fencepost/fencepost/handlers"
	"github.com/fencepost/fencepost/service/quotas"
)

// TestPriceOfWhatIsShown: what is long costs a tenant's operator more, also where it is shared with others, and
// where it is exported.
func TestPriceOfWhatIsShown(t *testing.T) {
	t.Parallel()
	records := make([]*audit.Record, 100)
	for i := range records {
		records[i] = &audit.Record{ID: someID, Tenant: "acme", Reason: strings.Repeat("r", 500)}
	}
	for path, accept := range map[string]string{"/admin/locks": "application/json", "/admin/audit": "application/x-ndjson"} {
		q := &priceMeter{Quotas: quotas.New(quotas.Config{})}
		inBubble(t, func(c *handlers.Config) {
			c.Console, c.Audit, c.Quotas = &consoleStub{page: manyRows()}, trail{page: &audit.Page{Records: records}}, q
			c.Verifier = &knownAs{Tenant: "acme", Scopes: []auth.Scope{auth.TenantAdmin}}
		}, func(h *house) {
			r := httptest.NewRequest(http.MethodGet, path, http.NoBody)
			asKnown(r)
			r.Header.Set("Accept", accept)
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if n := w.Body.Len(); w.Code != http.StatusOK || n < 32<<10 || q.price.Load() != int64(1+n/4096) {
				h.Errorf("%s: %d with %d bytes, for %d", path, w.Code, n, q.price.Load())
			}
		})
	}
}

// TestAccountOfWhoMayNotLook: who is refused because of what he is counts among those who work, and so takes
// nothing from who looks.
func TestAccountOfWhoMayNotLook(t *testing.T) {
	t.Parallel()
	q := &accounts{Quotas: quotas.New(quotas.Config{})}
	inBubble(t, func(c *handlers.Config) {
		c.Console, c.Quotas = &consoleStub{}, q
		c.Verifier = &knownAs{Tenant: "acme", Scopes: []auth.Scope{auth.LocksRead}}
	}, func(h *house) {
		for _, path := range []string{"/admin/overview", "/admin/locks"} {
			h.refuse(0, "GET "+path, asKnown)
		}
		if !slices.Equal(q.of, []string{"acme", "acme"}) {
			h.Errorf("it counts for %v", q.of)
		}
	})
}

// waits notes whether requests are said to have waited.
type waits struct {
	handlers.RequestMetrics
	all []bool
}

func (*waits) RequestStarted()                              {}
func (*waits) QuotaRefused(context.Context, string, string) {}
func (w *waits) RequestDone(_ context.Context, _, _ string, _ int, wait bool, _ time.Duration) {
	w.all = append(w.all, wait)
}

// TestHeldBackIsNotSlow: how long a refusal was held back says nothing of how fast the server is.
func TestHeldBackIsNotSlow(t *testing.T) {
	t.Parallel()
	m := &waits{}
	inBubble(t, func(c *handlers.Config) {
		refusesKnown(c)
		c.Metrics = m
	}, func(h *house) {
		h.refuse(heldBack, "POST /locks/a", asKnown)
		h.refuse(0, "GET /nowhere")
		if !slices.Equal(m.all, []bool{true, false}) {
			h.Errorf("it is told that they waited: %v", m.all)
		}
	})
}

// TestNewcomersAreTold: an address of which the log had no line is new until it has one, and again a minute later,
// also if it asks all the time.
func TestNewcomersAreTold(t *testing.T) {
	t.Parallel()
	inBubble(t, asIs, func(h *house) {
		const asked, loud, one = "GET /nowhere", "192.0.2.1:1", "192.0.2.9:1"
		ask := func(n int, addr string) {
			for range n {
				h.ask(asked, from(addr))
			}
		}
		lines := func() int { return strings.Count(h.lines.String(), `"client":"192.0.2.9"`) }
		for i := range 3 * handlers.LinesAtOnce { // of which none is left for who comes then
			ask(1, fmt.Sprintf("10.0.%d.%d:1", i>>8, i&255))
		}
		ask(1, one)
		if n := lines(); n != 0 {
			t.Fatalf("it has %d lines where there is room for none", n)
		}
		<-time.After(2 * time.Second)
		ask(5, loud)
		ask(1, one)
		if n := lines(); n != 1 {
			t.Errorf("a newcomer has %d lines", n)
		}
		for range 7 {
			<-time.After(10 * time.Second)
			ask(20, loud)
			ask(1, one)
		}
		if n := lines(); n != 2 {
			t.Errorf("a minute later it has %d lines", n)
		}
	})
}

// TestRoomOfAll: however many tenants have room for large answers, all of them have no more than there is.
func TestRoomOfAll(t *testing.T) {
	t.Parallel()
	c, router := overRouter(t, &stub{page: largePage()}, asIs)
	for _, other := range []string{"one", "two", "three", "four"} {
		router.Fill(other)
	}
	c.get("/locks").wantStatus(http.StatusTooManyRequests)
}

// TestErrorsAreNoRefusals: what fails here wears out nothing of whom it fails.
func TestErrorsAreNoRefusals(t *testing.T) {
	t.Parallel()
	inBubble(t, asIs, func(h *house) {
		for range handlers.AnonymousRefusals {
			if status, took := h.ask("GET /readyz"); status != http.StatusServiceUnavailable || took > 0 {
				h.Fatalf("%d after %v", status, took)
			}
		}
		h.refuse(0, "GET /nowhere")
	})
}
