package handlers_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencepost/fencepost/auth"
	"github.com/fencepost/fencepost/handlers"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/lock/quota"
	"github.com/fencepost/fencepost/service/quotas"
)

// holdingBack refuses all requests of tenants for long, and neither renewals nor releases.
type holdingBack struct {
	handlers.Quotas
	refused atomic.Int64
}

func (h *holdingBack) Take(_ string, l quota.Limit) error {
	if l != quota.Requests {
		return nil
	}
	h.refused.Add(1)
	return &quotas.Refusal{Why: quota.Standard().TooFast(l, 1, time.Second), Quiet: true, Hundreds: 40}
}

// TestRefusalsKeepNoRoomOfOthers: while very many requests of one connection wait for their refusals, what is
// renewed over it comes through, with its body. Over HTTP/1.1 a client that goes away meanwhile is noticed, though it
// has sent a body.
func TestRefusalsKeepNoRoomOfOthers(t *testing.T) {
	t.Parallel()
	const many = 60
	holding := func() (*handlers.Router, *holdingBack) {
		q := &holdingBack{Quotas: shared.quotas}
		h := shared.handlers(&stub{err: lock.LostBecause(lock.Expired)})
		h.Quotas = q
		return handlers.New(h), q
	}
	long := body(`{"metadata":{"k":"` + strings.Repeat("v", 4000) + `"}}`)
	t.Run("HTTP2", func(t *testing.T) {
		t.Parallel()
		router, q := holding()
		c := newTenant(t).at(secured(t, 1000, router))
		c.get("/healthz").wantStatus(http.StatusOK) // one connection for all
		held := make([]*pending, many)
		for i := range held {
			held[i] = c.start("POST", "/locks/a", long)
		}
		eventually(t, "all are refused", func() bool { return q.refused.Load() >= many })
		c.put("/locks/a/renew", lockToken(someToken), body(`{}`), loose).wantStatus(http.StatusGone)
		for _, p := range held {
			if p.answered() {
				t.Fatal("it waits until others have their refusals")
			}
			p.cancel()
		}
	})
	t.Run("HTTP1", func(t *testing.T) {
		t.Parallel()
		router, q := holding()
		gone := make(chan struct{})
		r := serve(nil, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			defer close(gone)
			router.ServeHTTP(w, r)
		}))
		t.Cleanup(r.close)
		began := time.Now()
		conn := dial(t, r)
		conn.write("POST /locks/a HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + newTenant(t).bearer + "\r\nContent-Length: 10\r\n\r\n0123456789")
		eventually(t, "it is refused", func() bool { return q.refused.Load() == 1 })
		conn.reset()
		<-gone
		if took := time.Since(began); took > 40*handlers.RefusalPause/2 {
			t.Errorf("it is noticed after %v", took)
		}
	})
}

// TestStreamsKeepNoRoomOfOthers: bodies that streams do not need keep nothing over their connection from coming
// through.
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
				resp, err := c.replica.transport.RoundTrip(c.request(t.Context(), "GET", path, body(padded(16<<10))).Request)
				if err != nil || resp.StatusCode != http.StatusOK {
					t.Fatal(resp, err)
				}
				defer resp.Body.Close()
			}
			p := c.start("POST", fmt.Sprint("/locks/n", len(path)), body(`{}`))
			eventually(t, "what is acquired comes through", p.answered)
			p.wait().wantStatus(http.StatusCreated)
		})
	}
}

// TestExportsKeepNoRoomOfOthers: so it is with the audit, of which an export is told part by part.
func TestExportsKeepNoRoomOfOthers(t *testing.T) {
	t.Parallel()
	trail := slowTrail{make(chan struct{}), make(chan struct{})}
	h := shared.handlers(shared.main.service)
	h.Audit = trail
	c := newTenant(t).at(secured(t, 1000, handlers.New(h)))
	c.get("/healthz").wantStatus(http.StatusOK) // one connection for all
	var exports sync.WaitGroup
	for i := range 4 { // as many as there may be, each a tenant's
		operator := c.as(func(cl *auth.Claims) { cl.Tenant, cl.Scopes = fmt.Sprint(cl.Tenant, i), []auth.Scope{auth.TenantAdmin} })
		asked := operator.request(t.Context(), "GET", "/admin/audit", header("Accept", "application/x-ndjson"), body(padded(16<<10)))
		exports.Go(func() {
			if resp, err := c.replica.transport.RoundTrip(asked.Request); err == nil {
				_ = resp.Body.Close()
			}
		})
		<-trail.asked
	}
	p := c.start("POST", "/locks/a", body(`{}`))
	eventually(t, "what is acquired comes through", p.answered)
	p.wait().wantStatus(http.StatusCreated)
	close(trail.let)
	exports.Wait()
}
