package handlers_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/handlers"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/openapi"
	"github.com/fencepost/fencepost/service"
)

// anonymous sends no bearer token.
func anonymous(t testing.TB) *client {
	c := newTenant(t)
	c.bearer = ""
	return c
}

func TestHealthAndReadiness(t *testing.T) {
	t.Parallel()
	draining := newReplica(t, func(*service.Config) {})
	draining.service.Drain()
	c := anonymous(t)
	for _, r := range []*replica{shared.main, draining} {
		var got map[string]string
		c.at(r).get("/healthz").want(http.StatusOK, &got)
		if diff := cmp.Diff(
			map[string]string{"status": "ok", "version": "v1.2.3", "commit": "69f4879"}, got,
		); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	}
	var got map[string]string
	c.get("/readyz").want(http.StatusOK, &got)
	if diff := cmp.Diff(map[string]string{"status": "ready"}, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	c.at(draining).get("/readyz").wantDraining()
}

// wantDraining checks a 503 of a replica that is shutting down. A POST that leaves an
// entry behind has had its effect.
func (a *answer) wantDraining(besides ...string) {
	a.t.Helper()
	a.wantProblem(
		problem{
			code:   "draining",
			detail: "this replica is shutting down; retry at another, or here when it is back",
		},
		append(besides, "may_have_taken_effect")...)
	stands := a.method == http.MethodPost && slices.Contains(besides, "entry")
	if may := a.fields()["may_have_taken_effect"]; may != stands {
		a.t.Errorf("%v: may_have_taken_effect = %v, want %v", a, may, stands)
	}
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	newTenant(t).acquire("orders:42")
	a := anonymous(t).get("/metrics")
	if got := a.header.Get("Content-Type"); a.status != http.StatusOK ||
		!strings.HasPrefix(got, "text/plain; version=0.0.4") {
		t.Errorf("GET /metrics = %d %s", a.status, got)
	}
	for _, line := range []string{
		`fencepost_http_request_duration_seconds_count\{.*method="POST".*route="/locks/:name".*status="2xx".*\} [1-9]`,
		`fencepost_lock_wait_duration_seconds_count\{.*outcome="granted".*\} [1-9]`,
		`fencepost_http_requests_in_flight\S* [1-9]`,
	} {
		if !regexp.MustCompile(`(?m)^` + line).Match(a.body) {
			t.Errorf("/metrics has no line %s", line)
		}
	}
}

func TestOpenAPI(t *testing.T) {
	t.Parallel()
	a := anonymous(t).get("/openapi.json")
	if got := a.header.Get("Content-Type"); a.status != http.StatusOK || got != "application/json" {
		t.Errorf("GET /openapi.json = %d %s", a.status, got)
	}
	if !bytes.Equal(a.body, openapi.Document()) || !json.Valid(a.body) {
		t.Error("GET /openapi.json is not the document")
	}
}

func TestDocs(t *testing.T) {
	t.Parallel()
	a := anonymous(t).get("/docs")
	if got := a.header.Get("Location"); a.status != http.StatusFound || got != "/docs/" {
		t.Errorf("GET /docs = %d, Location %q", a.status, got)
	}
	if a := anonymous(t).get("/docs/"); a.status != http.StatusOK ||
		!strings.HasPrefix(a.header.Get("Content-Type"), "text/html") {
		t.Errorf("GET /docs/ = %d %s", a.status, a.header.Get("Content-Type"))
	}
	if a := anonymous(t).get("/docs/swagger-ui.css"); a.status != http.StatusOK ||
		!strings.HasPrefix(a.header.Get("Content-Type"), "text/css") {
		t.Errorf("GET /docs/swagger-ui.css = %d %s", a.status, a.header.Get("Content-Type"))
	}
	for _, path := range []string{
		"/docs/nothing", "/docs/../openapi.json", "/docs/%2e%2e/doc.go", "/docs/a/b", "/docs/index.html",
	} {
		anonymous(t).get(path).wantProblem(nothingHere())
	}
}

// TestRequestID: a harmless one is taken up, any other is replaced.
func TestRequestID(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	made := regexp.MustCompile(`^[0-9a-f]{16}$`)
	for given, taken := range map[string]bool{
		"a": true, "Req-1_2.3": true, strings.Repeat("x", 128): true,
		"": false, strings.Repeat("x", 129): false, "a b": false, "a/b": false, "ä": false,
		"<script>": false, `"`: false, "a:b": false,
	} {
		for _, path := range []string{"/locks", "/healthz", "/nowhere", "/locks/-"} {
			got := c.get(path, header("X-Request-Id", given)).header.Get("X-Request-Id")
			if taken && got != given || !taken && !made.MatchString(got) {
				t.Errorf("GET %s with X-Request-Id %q answers %q", path, given, got)
			}
		}
	}
	if a, b := c.get("/locks"), c.get("/locks"); a.header.Get("X-Request-Id") ==
		b.header.Get("X-Request-Id") {
		t.Error("two requests have one id")
	}
}

// TestEachRequestHasOneLogLine: one line for each request, that leads from its id to all else.
func TestEachRequestHasOneLogLine(t *testing.T) {
	t.Parallel()
	r := serve(
		nil, handlers.New(shared.handlers(shared.main.service)),
	) // at another replica what is refused may have no line any more
	t.Cleanup(r.close)
	c := newTenant(t).at(r)
	const traceID = "4bf92f3577b34da6a3ce929d0e0e4736"
	trace := header("traceparent", "00-"+traceID+"-00f067aa0ba902b7-01")
	first := c.post("/locks/orders:42", trace, body(`{"wait_seconds":1}`))
	again := c.post("/locks/orders:42")
	unknown := c.get("/nowhere?token=secret", header("traceparent", "nonsense"))
	refused := c.with("").get("/locks")
	cases := map[*answer]map[string]any{
		first: {
			"route": "/locks/:name", "method": "POST", "status": 201.0, "tenant": c.claims.Tenant,
			"lock": "orders:42", "trace_id": traceID, "level": "INFO",
		},
		again: {
			"route": "/locks/:name", "method": "POST", "status": 423.0, "tenant": c.claims.Tenant,
			"lock": "orders:42", "code": "lock_held", "level": "INFO",
		},
		unknown: {"route": "", "method": "GET", "status": 404.0, "code": "not_found", "level": "INFO"},
		refused: {
			"route": "/locks", "method": "GET", "status": 401.0, "code": "unauthenticated", "level": "INFO",
		},
	}
	for a, want := range cases {
		got := shared.journal.request(t, a.header.Get("X-Request-Id"))
		want["msg"], want["request_id"], want["client"] = "request", a.header.Get(
			"X-Request-Id",
		), "127.0.0.1"
		if want["tenant"] != nil {
			want["subject"] = "worker-1"
		}
		for _, name := range []string{"time", "duration_us"} {
			if got[name] == nil {
				t.Errorf("%v is logged without %s: %v", a, name, got)
			}
			delete(got, name)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%v is logged as (-want +got)\n%s", a, diff)
		}
	}
}

// TestRefusalKeepsTheConnection: a refusal does not cost a client its connection.
func TestRefusalKeepsTheConnection(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	conn := dial(t, shared.main)
	for _, text := range []string{
		"POST /locks/orders:42 HTTP/1.1\r\nContent-Length: 3\r\n", "GET /locks?limit=x HTTP/1.1\r\n",
		"PUT /locks/orders:42/renew HTTP/1.1\r\nTransfer-Encoding: chunked\r\n",
		"PATCH /locks/a HTTP/1.1\r\n", "GET /locks HTTP/1.1\r\n",
	} {
		content := map[bool]string{true: "{}}"}[strings.Contains(text, "Content-Length")]
		if strings.Contains(text, "chunked") {
			content = "2\r\n{}\r\n0\r\n\r\n"
		}
		conn.write(text + "Host: x\r\nAuthorization: Bearer " + c.bearer + "\r\n\r\n" + content)
		method, _, _ := strings.Cut(text, " ")
		if a, goesOn := conn.read(method); !goesOn {
			t.Fatalf("%s: %v ends the connection", text, a)
		}
	}
}

// TestTraceOfARequest: the service gets the trace of the client's request.
func TestTraceOfARequest(t *testing.T) {
	t.Parallel()
	const parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	for _, path := range []string{"/locks/orders:42", "/locksets"} {
		told := make(chan service.AcquireRequest, 1)
		c := over(t, &stub{
			err:      &lock.Error{Code: lock.Draining, Detail: "no more", RetryAfter: time.Second},
			acquired: func(req service.AcquireRequest) { told <- req },
		})
		o := []option{header("traceparent", parent)}
		if path == "/locksets" {
			o = append(o, body(`{"locks":[{"name":"a"}]}`))
		}
		c.post(path, o...).wantStatus(http.StatusServiceUnavailable)
		if req := <-told; req.Trace != parent {
			t.Errorf("%s: the service is told of %q", path, req.Trace)
		}
	}
}
