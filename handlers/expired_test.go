package handlers_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencepost/fencepost/auth"
	"github.com/fencepost/fencepost/handlers"
	"github.com/fencepost/fencepost/service"
	"github.com/fencepost/fencepost/store/memory"
	"github.com/fencepost/fencepost/test/bubble"
)

// life is how long a short token counts.
const life = 20 * time.Second

// timed is a replica in virtual time, with a store in memory. long is a bearer token for a day,
// short one for [life].
type timed struct {
	t           *testing.T
	router      http.Handler
	long, short string
}

func newTimed(t *testing.T) *timed {
	t.Helper()
	server := memory.NewServer(memory.Config{})
	t.Cleanup(server.Close)
	backing := server.Connect(nil)
	t.Cleanup(backing.Close)
	s := service.New(service.Config{
		Store: backing, TokenKey: secret(), MinTTL: time.Second, Metrics: shared.telemetry.Metrics(),
	})
	t.Cleanup(s.Close)
	for s.Ready(t.Context()) != nil {
		<-time.After(time.Millisecond)
	}
	v := must(auth.New(t.Context(), auth.Config{
		Secret: secret(), Issuer: issuer, Audience: audience, Leeway: time.Second,
	}))
	t.Cleanup(v.Close)
	h := shared.handlers(s)
	h.Verifier = v
	claims := newTenant(t).claims
	return &timed{
		t: t, router: handlers.New(h), long: must(auth.Sign(secret(), claims, time.Now(), 24*time.Hour)),
		short: must(auth.Sign(secret(), claims, time.Now(), life)),
	}
}

// ask sends a request. The headers are names and values.
func (r *timed) ask(
	bearer, method, path, text string, headers ...string,
) *httptest.ResponseRecorder {
	req := httptest.NewRequestWithContext(r.t.Context(), method, path, strings.NewReader(text))
	req.Header.Set("Authorization", "Bearer "+bearer)
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	out := httptest.NewRecorder()
	r.router.ServeHTTP(out, req)
	return out
}

// TestWaitsEndWithTheirToken: a request that waits is not granted to a token that has expired
// meanwhile. Its entry leaves the queue, unless a token or key resumes it.
func TestWaitsEndWithTheirToken(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		r := newTimed(t)
		var holder, async struct{ ID, Token string }
		decode := func(a *httptest.ResponseRecorder, into any) {
			t.Helper()
			if err := json.Unmarshal(a.Body.Bytes(), into); err != nil {
				t.Fatal(err, a.Body)
			}
		}
		decode(r.ask(r.long, "POST", "/locks/a", `{"ttl_seconds":60}`), &holder)
		decode(r.ask(r.long, "POST", "/locks/a", `{"async":true,"wait_seconds":90,"ttl_seconds":60}`), &async)
		const wait = `"wait_seconds":40,"ttl_seconds":60`
		asked := map[string]func() *httptest.ResponseRecorder{
			"acquire": func() *httptest.ResponseRecorder {
				return r.ask(r.short, "POST", "/locks/a", `{`+wait+`}`)
			},
			"with a key": func() *httptest.ResponseRecorder {
				return r.ask(r.short, "POST", "/locks/a", `{`+wait+`}`, "Idempotency-Key", "k")
			},
			"set": func() *httptest.ResponseRecorder {
				return r.ask(r.short, "POST", "/locksets", `{"locks":[{"name":"a"},{"name":"b"}],`+wait+`}`)
			},
			"entry": func() *httptest.ResponseRecorder {
				return r.ask(r.short, "GET", "/locks/a/entries/"+async.ID+"?wait_seconds=40", "",
					"Lock-Token", async.Token)
			},
		}
		began := time.Now()
		answers := make(chan string, len(asked))
		for name, ask := range asked {
			go func() {
				a := ask()
				if a.Code != http.StatusUnauthorized || a.Header().Get("WWW-Authenticate") == "" ||
					!strings.Contains(a.Body.String(), "has expired; get a new one") {
					t.Errorf("%s: %d %s", name, a.Code, a.Body)
				}
				answers <- name
			}()
		}
		for range asked {
			name := <-answers
			if d := time.Since(began); d < life || d > life+2*time.Second {
				t.Errorf("%s: it ends after %s", name, d)
			}
		}
		synctest.Wait()
		var queue struct{ Waiters []json.RawMessage }
		decode(r.ask(r.long, "GET", "/locks/a", ""), &queue)
		if len(queue.Waiters) != 2 {
			t.Errorf("%d entries wait, want the async one and that with a key", len(queue.Waiters))
		}
		r.ask(r.long, "DELETE", "/locks/a", "", "Lock-Token", holder.Token)
		r.ask(r.long, "DELETE", "/locks/a", "", "Lock-Token", async.Token)
		a := r.ask(r.long, "POST", "/locks/a", `{`+wait+`}`, "Idempotency-Key", "k")
		if a.Code != http.StatusCreated || a.Header().Get("Idempotency-Replayed") != "true" {
			t.Errorf("with another token the wait goes on with %d %v", a.Code, a.Header())
		}
	})
}
