package handlers_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/auth"
	"github.com/fencepost/fencepost/handlers"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/lock/quota"
	"github.com/fencepost/fencepost/service/quotas"
	"github.com/fencepost/fencepost/test/bubble"
)

// house is a server whose clock is that of a synctest bubble.
type house struct {
	*testing.T
	*handlers.Router
	lines bytes.Buffer // of its log
	count counted
}

// counted are requests that a metric counts.
type counted struct {
	handlers.RequestMetrics
	all atomic.Int64
}

func (c *counted) RequestStarted()                              {}
func (c *counted) QuotaRefused(context.Context, string, string) {}
func (c *counted) RequestDone(context.Context, string, string, int, bool, time.Duration) {
	c.all.Add(1)
}

// inBubble runs a test with such a server.
func inBubble(t *testing.T, change func(*handlers.Config), test func(*house)) {
	t.Helper()
	bubble.Test(t, func(t *testing.T) {
		h := &house{T: t}
		config := shared.handlers(&stub{err: &lock.Error{Code: lock.StoreUnavailable, Detail: "away"}})
		config.Logger, config.Metrics = slog.New(slog.NewJSONHandler(&h.lines, nil)), &h.count
		change(&config)
		h.Router = handlers.New(config)
		test(h)
	})
}

// visit changes a request before it is sent.
type visit func(*http.Request)

func from(addr string) visit { return func(r *http.Request) { r.RemoteAddr = addr } }

func forwarded(addr string) visit {
	return func(r *http.Request) { r.Header.Set("X-Forwarded-For", addr) }
}

func inContext(ctx context.Context) visit {
	return func(r *http.Request) { *r = *r.WithContext(ctx) }
}

// over2 has a request come over HTTP/2.
func over2(r *http.Request) { r.ProtoMajor, r.ProtoMinor = 2, 0 }

// ask returns the status of the answer, and for how long it was held back.
func (h *house) ask(asked string, more ...visit) (int, time.Duration) {
	method, path, _ := strings.Cut(asked, " ")
	r := httptest.NewRequest(method, path, http.NoBody)
	for _, change := range more {
		change(r)
	}
	w, began := httptest.NewRecorder(), time.Now()
	h.ServeHTTP(w, r)
	return w.Code, time.Since(began)
}

// about reports whether something took half as long as wanted, or up to half as long again.
func about(want, took time.Duration) bool { return took >= want/2 && took <= want+want/2 }

// refuse has a request refused, and wants it held back for about so long.
func (h *house) refuse(want time.Duration, asked string, more ...visit) {
	h.Helper()
	if status, took := h.ask(asked, more...); !about(want, took) || status < 400 || status > 499 {
		h.Fatalf("%s is answered %d after %v, want a refusal after %v", asked, status, took, want)
	}
}

// hold begins a request whose refusal is held back.
func (h *house) hold(asked string, more ...visit) {
	go func() {
		if status, took := h.ask(asked, more...); !about(heldBack, took) {
			h.Errorf("%s is answered %d after %v, want it held back", asked, status, took)
		}
	}()
	synctest.Wait()
}

// wearOut has as many requests refused as are at once.
func (h *house) wearOut(asked string, more ...visit) {
	h.Helper()
	for range handlers.AnonymousRefusals {
		h.refuse(0, asked, more...)
	}
}

const heldBack = handlers.RefusalPause

func withHeaders(r *http.Request) {
	for i := range 101 {
		r.Header.Set(fmt.Sprint("X-", i), "")
	}
}

func asKnown(r *http.Request) { r.Header.Set("Authorization", "Bearer x") }

// TestStrangersArePaced: who is refused on and on while nobody knows who it is, for whatever, is refused
// later. Others are not held up, nor what is right from the same address.
func TestStrangersArePaced(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		asked string
		how   visit
	}{
		"NotFound":    {"GET /nowhere", func(*http.Request) {}},
		"NoMethod":    {"PATCH /locks", func(*http.Request) {}},
		"NoToken":     {"GET /locks", func(*http.Request) {}},
		"BadToken":    {"POST /locks/a", asKnown},
		"ManyHeaders": {"GET /healthz", withHeaders},
		"Slash":       {"GET /locks/a%2fb|c", func(*http.Request) {}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, asIs, func(h *house) {
				h.wearOut(tc.asked, tc.how, from("198.51.100.1:1"))
				h.refuse(heldBack, tc.asked, tc.how, from("198.51.100.1:2"))
				for range handlers.AnonymousRefusals {
					if status, took := h.ask("GET /openapi.json", from("198.51.100.1:1")); status != http.StatusOK || took > 0 {
						h.Fatalf("what is right is answered %d after %v", status, took)
					}
				}
				h.refuse(0, tc.asked, tc.how, from("198.51.100.2:1"))
				<-time.After(time.Second)
				h.wearOut(tc.asked, tc.how, from("198.51.100.1:1"))
			})
		})
	}
}

// TestVisitorsArePaced: who asks on and on for what everybody gets is answered later too. That counts for
// his address and does not hold up his refusals, nor they that.
func TestVisitorsArePaced(t *testing.T) {
	t.Parallel()
	for _, asked := range []string{
		"GET /healthz", "GET /openapi.json", "GET /docs", "GET /docs/", "GET /dashboard", "GET /dashboard/", "GET /dashboard/sign-in", "DELETE /dashboard/session",
	} {
		t.Run(asked, func(t *testing.T) {
			t.Parallel()
			inBubble(t, asIs, func(h *house) {
				visit := func(want time.Duration, addr string) {
					h.Helper()
					if status, took := h.ask(asked, from(addr)); !about(want, took) || status >= 400 {
						h.Fatalf("it is answered %d after %v, want that after %v", status, took, want)
					}
				}
				h.wearOut("GET /nowhere", from("198.51.100.1:1"))
				for range handlers.AnonymousRefusals {
					visit(0, "198.51.100.1:1")
				}
				visit(heldBack, "198.51.100.1:2")
				visit(0, "198.51.100.2:1")
				<-time.After(time.Second)
				visit(0, "198.51.100.1:1")
			})
		})
	}
}

// TestAddressesOfStrangers: clients behind a proxy that is trusted are told apart, and nobody is by an
// address that he makes up.
func TestAddressesOfStrangers(t *testing.T) {
	t.Parallel()
	inBubble(t, func(c *handlers.Config) { c.TrustedProxyHops = 1 }, func(h *house) {
		const asked = "GET /nowhere"
		h.wearOut(asked, from("10.0.0.1:1"), forwarded("198.51.100.1"))
		h.refuse(heldBack, asked, from("10.0.0.2:1"), forwarded("198.51.100.1"))
		h.refuse(0, asked, from("10.0.0.1:1"), forwarded("198.51.100.2"))
		h.wearOut(asked, from("198.51.100.3:1"))
		h.refuse(heldBack, asked, from("198.51.100.3:1"))
		h.wearOut(asked, from("[2001:db8:1:1::1]:1"))
		h.refuse(heldBack, asked, from("[2001:db8:1:1:ffff::2]:1"))
		h.refuse(0, asked, from("[2001:db8:1:2::1]:1"))
	})
}

// TestManyStrangers: no more addresses are remembered than there is room for. Nobody is forgotten who
// was just refused while others have been quiet.
func TestManyStrangers(t *testing.T) {
	t.Parallel()
	inBubble(t, func(c *handlers.Config) { c.Logger = slog.New(slog.DiscardHandler) }, func(h *house) {
		const asked, keen = "GET /nowhere", "192.0.2.1:1"
		come := func(block, n int) {
			for i := range n {
				h.refuse(0, asked, from(fmt.Sprintf("10.%d.%d.%d:1", block, i>>8, i&255)))
			}
			if n := h.Anonymous(); n > handlers.MaxAnonymousNetworks {
				h.Errorf("%d addresses are remembered", n)
			}
		}
		come(1, handlers.MaxAnonymousNetworks-1)
		<-time.After(time.Second)
		h.wearOut(asked, from(keen))
		come(2, handlers.MaxAnonymousNetworks/2)
		h.refuse(heldBack, asked, from(keen))
		come(3, handlers.MaxAnonymousNetworks+100)
	})
}

// full is a server without memory for new work.
type full struct{}

func (full) Full() bool { return true }

// TestNoRefusalWaitsInACrowd: where there is no room for one request more that waits, none is held back.
func TestNoRefusalWaitsInACrowd(t *testing.T) {
	t.Parallel()
	t.Run("Memory", func(t *testing.T) {
		t.Parallel()
		inBubble(t, func(c *handlers.Config) { c.Memory = full{} }, func(h *house) {
			h.wearOut("GET /nowhere")
			h.refuse(0, "GET /nowhere")
		})
	})
	t.Run("Streams", func(t *testing.T) { // of HTTP/2: of four that are under way the third finds it crowded
		t.Parallel()
		inBubble(t, asIs, func(h *house) {
			conn := inContext(handlers.ConnContext(h.Context(), handlers.NewConnections(4).Conn()))
			h.wearOut("GET /nowhere", conn, over2)
			for range 2 {
				h.hold("GET /nowhere", conn, over2)
			}
			h.refuse(0, "GET /nowhere", conn, over2)
			<-time.After(time.Second)
		})
	})
	t.Run("NoStreamLeft", func(t *testing.T) {
		t.Parallel()
		inBubble(t, asIs, func(h *house) {
			conn := inContext(handlers.ConnContext(h.Context(), handlers.NewConnections(1).Conn()))
			h.wearOut("GET /nowhere")
			body, end := io.Pipe()
			go h.ask("POST /dashboard/session", conn, over2, func(r *http.Request) {
				r.Header.Set("Content-Type", "application/json")
				r.Body, r.ContentLength = body, 10
			})
			synctest.Wait()
			if status, took := h.ask("GET /nowhere", conn, over2); status != http.StatusTooManyRequests || took > 0 {
				h.Errorf("it is answered %d after %v", status, took)
			}
			_ = end.Close() // of a pipe it cannot fail
			<-time.After(time.Second)
		})
	})
	t.Run("Tenant", func(t *testing.T) {
		t.Parallel()
		inBubble(t, refusesKnown, func(h *house) {
			conn := inContext(handlers.ConnContext(h.Context(), handlers.NewConnections(1).Conn()))
			h.hold("POST /locks/a", asKnown, conn)
			h.refuse(0, "POST /locks/a", asKnown, conn)
			<-time.After(time.Second)
		})
	})
}

// refusesKnown has each bearer token be good, and its tenant refused for its rates again and again.
func refusesKnown(c *handlers.Config) {
	c.Verifier = anybody{}
	c.Quotas = &refusing{shared.quotas, &quotas.Refusal{Why: quota.Standard().TooFast(quota.Requests, 1, time.Second), Quiet: true, Hundreds: 1}}
}

// anybody takes every bearer token.
type anybody struct{}

func (anybody) Verify(context.Context, string) (*auth.Principal, error) {
	return &auth.Principal{Tenant: "acme", Subject: "x", Scopes: []auth.Scope{auth.LocksWrite}}, nil
}

// TestRefusalWaitsForNobodyWhoIsGone: a request whose client has gone away is not held.
func TestRefusalWaitsForNobodyWhoIsGone(t *testing.T) {
	t.Parallel()
	inBubble(t, refusesKnown, func(h *house) {
		h.refuse(heldBack, "POST /locks/a", asKnown)
		gone, cancel := context.WithCancel(h.Context())
		cancel()
		h.refuse(0, "POST /locks/a", asKnown, inContext(gone))
	})
}

// logged counts the lines of the log by their status, and what they say was left out.
func (h *house) logged() (lines, silenced map[int]int) {
	h.Helper()
	lines, silenced = map[int]int{}, map[int]int{}
	for d := json.NewDecoder(&h.lines); d.More(); {
		var line struct{ Status, Silenced int }
		if err := d.Decode(&line); err != nil {
			h.Fatal(err)
		}
		lines[line.Status]++
		silenced[line.Status] += line.Silenced
	}
	return lines, silenced
}

// TestStrangersDoNotFillTheLog: of what is refused to who is not known the log has some at once and then
// one a second, of each cause, and what is left out is told and counted. Errors have a line each.
func TestStrangersDoNotFillTheLog(t *testing.T) {
	t.Parallel()
	inBubble(t, func(c *handlers.Config) { c.Memory = full{} }, func(h *house) {
		const n = 3 * handlers.LinesAtOnce
		for range n {
			h.refuse(0, "GET /nowhere")
		}
		for range n {
			_, _ = h.ask("GET /readyz")
		}
		h.refuse(0, "PATCH /locks")
		h.refuse(0, "GET /locks", asKnown)
		lines, _ := h.logged()
		if diff := cmp.Diff(map[int]int{404: handlers.LinesAtOnce + 1, 405: 1, 401: 1, 503: n}, lines); diff != "" {
			h.Errorf("lines by status (-want +got):\n%s", diff)
		}
		if all := h.count.all.Load(); all != 2*n+2 {
			h.Errorf("%d requests are counted, want %d", all, 2*n+2)
		}
		for range 4 * n { // within three seconds
			<-time.After(3 * time.Second / (4 * n))
			h.refuse(0, "GET /elsewhere")
		}
		lines, silenced := h.logged()
		if lines[404] != 3 || silenced[404] < n-handlers.LinesAtOnce+3*n || silenced[404] > n-handlers.LinesAtOnce+4*n {
			h.Errorf("then there are %d lines, with %d left out", lines[404], silenced[404])
		}
	})
}

// TestVisitorsDoNotFillTheLog: neither does what everybody is answered.
func TestVisitorsDoNotFillTheLog(t *testing.T) {
	t.Parallel()
	inBubble(t, func(c *handlers.Config) { c.Memory = full{} }, func(h *house) {
		const n = 3 * handlers.LinesAtOnce
		for range n {
			_, _ = h.ask("GET /healthz")
			_, _ = h.ask("DELETE /dashboard/session")
		}
		_, _ = h.ask("GET /dashboard/")
		lines, _ := h.logged()
		if diff := cmp.Diff(map[int]int{200: handlers.LinesAtOnce + 1 + 1, 204: handlers.LinesAtOnce}, lines); diff != "" {
			h.Errorf("lines by status (-want +got):\n%s", diff)
		}
		<-time.After(time.Second)
		_, _ = h.ask("GET /healthz")
		if lines, silenced := h.logged(); lines[200] != 1 || silenced[200] != n-handlers.LinesAtOnce-1 {
			h.Errorf("then there are %d lines, with %d left out", lines[200], silenced[200])
		}
	})
}

// TestNoAddressHidesAnother: an address that is refused on and on does not keep another one out of the
// log, and very many addresses do not fill it.
func TestNoAddressHidesAnother(t *testing.T) {
	t.Parallel()
	inBubble(t, func(c *handlers.Config) { c.Memory = full{} }, func(h *house) {
		for range 2 * handlers.LinesAtOnce {
			h.refuse(0, "GET /nowhere", from("198.51.100.1:1"))
		}
		h.logged()
		told := func(want int, addr string) {
			h.Helper()
			h.refuse(0, "GET /nowhere", from(addr))
			if lines, _ := h.logged(); lines[404] != want {
				h.Errorf("of %s there are %d lines, want %d", addr, lines[404], want)
			}
		}
		told(0, "198.51.100.1:1")
		told(1, "198.51.100.2:1")
		told(0, "198.51.100.2:1")
		for i := range 3 * handlers.LinesAtOnce {
			h.refuse(0, "GET /nowhere", from(fmt.Sprintf("10.0.%d.%d:1", i>>8, i&255)))
		}
		if lines, _ := h.logged(); lines[404] != handlers.LinesAtOnce-2 {
			h.Errorf("of many addresses there are %d lines", lines[404])
		}
		<-time.After(time.Minute)
		for range 2 * handlers.LinesAtOnce {
			h.refuse(0, "GET /nowhere", from("198.51.100.1:1"))
		}
		h.logged()
		told(1, "198.51.100.2:1")
	})
}

// TestCausesHaveTheirOwnLines: who sends made-up bearer tokens on and on does not hide that another's
// has expired.
func TestCausesHaveTheirOwnLines(t *testing.T) {
	t.Parallel()
	inBubble(t, func(c *handlers.Config) { c.Memory, c.Verifier = full{}, expiring{} }, func(h *house) {
		for range 2 * handlers.LinesAtOnce {
			h.refuse(0, "GET /locks", asKnown)
		}
		before := h.lines.Len()
		h.refuse(0, "GET /locks", asKnown)
		h.refuse(0, "GET /locks", func(r *http.Request) { r.Header.Set("Authorization", "Bearer old") })
		if said := h.lines.String()[before:]; strings.Count(said, "\n") != 1 || !strings.Contains(said, `"auth":"expired"`) {
			h.Errorf("of an expired token the log says %q", said)
		}
	})
}

// expiring says of one bearer token that it has expired.
type expiring struct{}

func (expiring) Verify(_ context.Context, raw string) (*auth.Principal, error) {
	if raw == "old" {
		return nil, &auth.Error{Reason: auth.Expired, Detail: "x"}
	}
	return nil, &auth.Error{Reason: auth.Malformed, Detail: "x"}
}
