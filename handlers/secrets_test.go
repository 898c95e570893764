package handlers_test

import (
	"fmt"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/fencepost/fencepost/service"
)

// TestTracesShowNoSecret: what a collector is sent has names and outcomes, and no
// token of either kind. That the log shows none is checked after all tests.
func TestTracesShowNoSecret(t *testing.T) {
	t.Parallel()
	spans := tracetest.NewSpanRecorder()
	provider := trace.NewTracerProvider(trace.WithSpanProcessor(spans))
	t.Cleanup(func() {
		if err := provider.Shutdown(t.Context()); err != nil && t.Context().Err() == nil {
			t.Error(err)
		}
	})
	r := shared.replica(func(*service.Config) {}, provider.Tracer("test"))
	t.Cleanup(r.close)
	c := newTenant(t).at(r)
	exercise(c)

	names := map[string]bool{}
	for _, s := range spans.Ended() {
		names[s.Name()] = true
		text := fmt.Sprint(s.Name(), s.Status(), texts(s.Attributes()))
		for _, e := range s.Events() {
			text += fmt.Sprint(e.Name, texts(e.Attributes))
		}
		if found := shared.secrets.find([]byte(text)); found != "" {
			t.Errorf("span %s shows the secret %q: %s", s.Name(), found, text)
		}
	}
	for _, name := range []string{
		"POST /locks/:name", "PUT /locks/:name/renew", "DELETE /locks/:name",
		"GET /locks/:name/entries/:id",
		"service.Acquire", "service.Renew", "service.Release", "service.Entry",
	} {
		if !names[name] {
			t.Errorf("no span %q: what was checked?", name)
		}
	}
}

func texts(attributes []attribute.KeyValue) string {
	var b strings.Builder
	for _, a := range attributes {
		fmt.Fprintf(&b, " %s=%s", a.Key, a.Value.String())
	}
	return b.String()
}

// exercise goes once through every use of a token, good and bad.
func exercise(c *client) {
	c.t.Helper()
	e := c.acquire("orders:42", key("k"))
	c.post("/locks/orders:42").refused("lock_held")
	c.put("/locks/orders:42/renew", lockToken(e.Token)).held(200)
	c.get(entryPath(e)+"?token="+e.Token, lockToken(e.Token), loose).
		wantProblem(invalid("token", notAParameter))
	c.get(entryPath(e), lockToken(e.Token)).held(200)
	c.put("/locks/orders:43/renew", lockToken(e.Token)).wantProblem(tokenMismatch())
	c.delete("/locks/orders:42", lockToken(flip(e.Token, 40))).wantProblem(tokenMismatch())
	c.get("/locks?cursor=" + e.Token).wantProblem(invalid("cursor", "must be the next_cursor of a "+
		"page of this list; leave it out to begin again"))
	c.get("/nowhere/" + e.Token).wantProblem(nothingHere())
	c.with(swapped(c.bearer, newTenant(c.t).bearer)).get("/locks").
		wantProblem(badBearer("the signature does not fit"))
	c.release(e)
	c.delete("/locks/orders:42", lockToken(e.Token)).wantProblem(lost("released"))
	c.post("/locks/orders:42", key("k")).wantProblem(lost("released"))
}

// TestRefusalsShowNoSecret: what a client sends does not come back in a refusal.
// All answers of all tests are held against that; these send a token where no
// token belongs.
func TestRefusalsShowNoSecret(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	exercise(c)
	e := c.acquire("orders:42")
	shared.secrets.add(e.Token)
	for _, text := range []string{
		`{"holder":{"x":"` + e.Token + `"}}`, `{"mode":"` + e.Token + `"}`, `{"` + e.Token + `"`, e.Token,
		`{}` + e.Token,
	} {
		if a := c.post("/locks/orders:43", body(text)); a.status != 400 {
			t.Errorf("%v, want 400", a)
		}
	}
}
