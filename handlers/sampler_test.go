package handlers_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/fencepost/fencepost/auth"
	"github.com/fencepost/fencepost/handlers"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/test/bubble"
)

// verdicts verifies bearer tokens: "old" has expired, "bad" is malformed, others name a tenant.
type verdicts struct{}

func (verdicts) Verify(_ context.Context, raw string) (*auth.Principal, error) {
	switch raw {
	case "old":
		return nil, &auth.Error{Reason: auth.Expired, Detail: "x"}
	case "bad":
		return nil, &auth.Error{Reason: auth.Malformed, Detail: "x"}
	}
	return &auth.Principal{Tenant: raw, Subject: "x", Scopes: []auth.Scope{auth.LocksWrite}}, nil
}

func (verdicts) Known(raw string) *auth.Principal {
	if raw != "known" {
		return nil
	}
	return &auth.Principal{Tenant: raw, Subject: "x", Scopes: []auth.Scope{auth.LocksRead}}
}

// TestLogLinesOf4xxAreSampled: each cause has some lines at once and then one a second, which says
// how many were left out. Causes and tenants do not hide each other; errors have a line each.
func TestLogLinesOf4xxAreSampled(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		h := shared.handlers(&stub{err: &lock.Error{Code: lock.StoreUnavailable, Detail: "away"}})
		h.Logger, h.Verifier = slog.New(slog.NewJSONHandler(&log, nil)), verdicts{}
		router := handlers.New(h)
		lines := func(n int, method, path, bearer string) (lines, silenced int) {
			log.Reset()
			for range n {
				r := httptest.NewRequest(method, path, http.NoBody)
				r.Header.Set("Authorization", "Bearer "+bearer)
				router.ServeHTTP(httptest.NewRecorder(), r)
			}
			for line := range strings.Lines(log.String()) {
				var one struct{ Silenced int }
				if err := json.Unmarshal([]byte(line), &one); err != nil {
					t.Fatal(err)
				}
				lines++
				silenced += one.Silenced
			}
			return lines, silenced
		}
		const many = handlers.LinesAtOnce + 50
		for _, c := range []struct {
			method, path, bearer string
			want                 int
		}{
			{"GET", "/locks", "bad", handlers.LinesAtOnce},
			{"GET", "/locks", "old", handlers.LinesAtOnce},
			{"GET", "/locks", "acme", handlers.LinesAtOnce}, // 403: it may not read
			{"GET", "/locks", "beta", handlers.LinesAtOnce},
			{"GET", "/nowhere", "", handlers.LinesAtOnce},
			{"GET", "/healthz", "", handlers.LinesAtOnce},
			{"POST", "/locks/a", "acme", many}, // 503
		} {
			if n, _ := lines(many, c.method, c.path, c.bearer); n != c.want {
				t.Errorf("%s %s of %q: %d lines of %d, want %d", c.method, c.path, c.bearer, n, many, c.want)
			}
		}
		<-time.After(time.Second)
		if n, silenced := lines(10, "GET", "/locks", "acme"); n != 1 || silenced != 50 {
			t.Errorf("a second later there are %d lines, with %d left out", n, silenced)
		}
	})
}
