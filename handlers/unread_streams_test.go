package handlers_test

import (
	"fmt"
	"net/http"
	"sync"
	"testing"

	"github.com/fencepost/fencepost/auth"
	"github.com/fencepost/fencepost/handlers"
	"github.com/fencepost/fencepost/test/poll"
)

// TestStreamsKeepNoRoomOfOthers: bodies that streams do not need keep nothing over their connection
// from coming through.
func TestStreamsKeepNoRoomOfOthers(t *testing.T) {
	t.Parallel()
	h := shared.handlers(shared.main.service)
	h.Console = shared.main.console
	c := newTenant(t).at(secured(t, 1000, handlers.New(h)))
	c.get("/healthz").wantStatus(http.StatusOK) // one connection for all
	for _, path := range []string{"/events", "/admin/events"} {
		t.Run(path, func(t *testing.T) {
			c := c.in(t).as(func(cl *auth.Claims) { cl.Scopes = append(cl.Scopes, auth.TenantAdmin) })
			for range 5 {
				resp, err := c.replica.transport.RoundTrip(
					c.request(t.Context(), "GET", path, body(padded(16<<10))).Request,
				)
				if err != nil || resp.StatusCode != http.StatusOK {
					t.Fatal(resp, err)
				}
				defer resp.Body.Close()
			}
			p := c.start("POST", fmt.Sprint("/locks/n", len(path)), body(`{}`))
			poll.Until(t, "what is acquired comes through", p.answered)
			p.wait().wantStatus(http.StatusCreated)
		})
	}
}

// TestExportsKeepNoRoomOfOthers: nor do the bodies of exports of the audit.
func TestExportsKeepNoRoomOfOthers(t *testing.T) {
	t.Parallel()
	trail := slowTrail{make(chan struct{}), make(chan struct{})}
	h := shared.handlers(shared.main.service)
	h.Audit = trail
	c := newTenant(t).at(secured(t, 1000, handlers.New(h)))
	c.get("/healthz").wantStatus(http.StatusOK) // one connection for all
	var exports sync.WaitGroup
	for i := range 4 { // as many as there may be, each a tenant's
		operator := c.as(func(cl *auth.Claims) {
			cl.Tenant, cl.Scopes = fmt.Sprint(cl.Tenant, i), []auth.Scope{auth.TenantAdmin}
		})
		asked := operator.request(
			t.Context(), "GET", "/admin/audit", header("Accept", "application/x-ndjson"),
			body(padded(16<<10)),
		)
		exports.Go(func() {
			if resp, err := c.replica.transport.RoundTrip(asked.Request); err == nil {
				_ = resp.Body.Close()
			}
		})
		<-trail.asked
	}
	p := c.start("POST", "/locks/a", body(`{}`))
	poll.Until(t, "what is acquired comes through", p.answered)
	p.wait().wantStatus(http.StatusCreated)
	close(trail.let)
	exports.Wait()
}
