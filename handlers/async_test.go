package handlers_test

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"
)

// TestAsync: an async acquire is answered at once with its position. It can be resumed like any
// other.
func TestAsync(t *testing.T) {
	t.Parallel()
	for name, ask := range map[string]struct {
		path, text string
		more       []option
		applied    string
	}{
		"Body": {"/locks/orders:42", `{"async":true,"wait_seconds":600,"ttl_seconds":15}`, nil, ""},
		"Prefer": {
			"/locks/orders:42", `{"wait_seconds":600,"ttl_seconds":15}`,
			[]option{header("Prefer", "handling=strict, Respond-Async; q=1")},
			"respond-async",
		},
		"LockSet": {
			"/locksets",
			`{"locks":[{"name":"orders:42"},{"name":"stock:7"}],"async":true,"wait_seconds":600,` +
				`"ttl_seconds":15}`,
			nil, "",
		},
		"SetPrefer": {
			"/locksets",
			`{"locks":[{"name":"orders:42"},{"name":"stock:7"}],"wait_seconds":600,"ttl_seconds":15}`,
			[]option{header("Prefer", "respond-async")},
			"respond-async",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newTenant(t)
			first := c.acquire("orders:42")
			a := c.named("b").post(ask.path, append([]option{body(ask.text)}, ask.more...)...)
			if a.status != http.StatusAccepted || a.header.Get("Preference-Applied") != ask.applied ||
				a.received.Sub(a.sent) > 10*time.Second {
				t.Fatalf(
					"%v after %v, with Preference-Applied %q", a, a.received.Sub(a.sent),
					a.header.Get("Preference-Applied"),
				)
			}
			token, _ := a.fields()["token"].(string)
			if a.fields()["position"] != json.Number("1") || token == "" {
				t.Fatalf("%v", a)
			}
			where := a.header.Get("Location")
			p := c.at(shared.brief).start("GET", where+"?wait_seconds=50", lockToken(token))
			c.release(first)
			if got := p.wait(); got.fields()["state"] != "held" {
				t.Errorf("%v", got)
			}
			if got := c.get(where, lockToken(token)); got.fields()["state"] != "held" {
				t.Errorf("%v", got)
			}
		})
	}
}

// TestBadAsyncRequestsAreRefused names what is wrong with a request, and ignores a preference that
// cannot be met.
func TestBadAsyncRequestsAreRefused(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	c.post("/locks/orders:42", body(`{"async":true}`)).wantProblem(
		invalid("wait_seconds", "must be more than 0 with async: it is how long the entry waits"),
	)
	c.post("/locks/orders:42", body(`{"async":true,"wait_seconds":60,"ttl_seconds":14.9}`)).
		wantProblem(invalid("ttl_seconds", "must be at least 15 with async"))
	c.post("/locks/orders:42", body(`{"async":"yes"}`)).
		wantProblem(invalid("async", "must be true or false"))
	if e := c.post("/locks/orders:42", header("Prefer", "respond-async")).held(
		http.StatusCreated,
	); e.Token == "" {
		t.Errorf("%+v", e)
	}
}

// TestPreferredWait: a request is held open for as long as its client prefers at most. The entry
// waits on, and a repeated request tells its token at once. What is no number is passed over.
func TestPreferredWait(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	first := c.acquire("orders:42")
	other := c.named("b")
	ask := func(prefer string) *answer {
		return other.post("/locks/orders:42", body(`{"wait_seconds":600,"ttl_seconds":10}`),
			key("k"), header("Prefer", prefer))
	}
	known := ask("foo=1, WAIT=0").waiting(http.StatusAccepted)
	for _, prefer := range []string{"wait=1", "wait=0;x, wait=600"} {
		a := ask(prefer)
		e := a.waiting(http.StatusAccepted)
		if e.ID != known.ID || e.Token != known.Token || a.received.Sub(a.sent) > 30*time.Second {
			t.Errorf("Prefer: %s tells %+v after %v", prefer, e, a.received.Sub(a.sent))
		}
	}
	p := other.start("POST", "/locks/orders:42", body(`{"wait_seconds":600,"ttl_seconds":10}`),
		key("k"), header("Prefer", "wait=soon"))
	c.release(first)
	if e := p.wait().held(http.StatusCreated); e.Token != known.Token {
		t.Errorf("held is %+v", e)
	}
	if e := ask("wait=0").held(http.StatusCreated); e.Token != known.Token {
		t.Errorf("held is %+v", e)
	}
}

// TestPrefer reads the header as RFC 7240 has it: names in any case, values and parameters
// that may be quoted, and of a preference that is named twice the first.
func TestPrefer(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	for value, wants := range map[string]bool{
		`respond-async`:          true,
		`wait=10, Respond-Async`: true,
		`handling=lenient; note="a, b" , respond-async ;x`: true,
		`foo="a, respond-async, b"`:                        false,
		`foo="a\", respond-async, b"`:                      false,
		`foo="a\\", respond-async`:                         true,
		`foo; bar="x, respond-async"`:                      false,
		`foo="a;b", respond-async;q="1;2"`:                 true,
		`respond-async=""`:                                 true,
		`respond-async = "" ; x`:                           true,
		`respond-async=5, respond-async`:                   false,
		`respond-async, respond-async=5`:                   true,
		`foo="never closed, respond-async`:                 false,
		`respond-asynchronously, foo=respond-async`:        false,
		`,,respond-async,`:                                 true,
	} {
		a := c.post(
			"/locks/orders:42", body(`{"wait_seconds":60,"ttl_seconds":15}`), header("Prefer", value),
		)
		if applied := a.header.Get("Preference-Applied") == "respond-async"; applied != wants {
			t.Errorf("Prefer: %s is taken for respond-async: %t", value, applied)
		}
		c.release(a.held(http.StatusCreated))
	}
}
