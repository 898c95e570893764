package handlers_test

import (
	"io"
	"net/http"
	"testing"
)

// TestQueryIsStrict: what a route does not know, it does not pass over.
func TestQueryIsStrict(t *testing.T) {
	t.Parallel()
	unknown := func(name string) problem { return invalid(name, notAParameter) }
	c := newTenant(t)
	c.post("/locks/orders:42?wait_seconds=2").wantProblem(unknown("wait_seconds"))
	c.post("/locks/orders:42?x").wantProblem(unknown("x"))
	e := c.acquire("orders:42")
	c.get("/locks?Limit=1").wantProblem(meant(unknown("Limit"), "limit"))
	c.get("/locks?limit=1&limit=2").wantProblem(invalid("limit", "must not be there twice"))
	c.get("/locks?limit=1;x").wantProblem(
		problem{code: "invalid_request", detail: "the query must be of the form name=value&name=value"},
	)
	c.get("/locks/orders:42/entries/"+e.ID+"?wait=1", lockToken(e.Token)).
		wantProblem(meant(unknown("wait"), "wait_seconds"))
	c.release(e)
}

// TestHead: whatever can be got has a head, which is its answer without the body.
func TestHead(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/healthz", "/readyz", "/openapi.json"} {
		resp, err := http.Head(shared.main.url + path)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(resp.Body)
		if resp.StatusCode != http.StatusOK || len(text) != 0 || err != nil ||
			resp.Header.Get("Content-Type") == "" {
			t.Errorf("HEAD %s = %d %v %q, %v", path, resp.StatusCode, resp.Header, text, err)
		}
		_ = resp.Body.Close()
	}
}
