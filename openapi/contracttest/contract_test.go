package contracttest_test

import (
	"context"
	_ "embed"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/openapi/contracttest"
)

//go:embed testdata/small.json
var small []byte

// reply is what the server of a test answers.
type reply struct {
	status int
	header map[string]string
	body   string
}

const (
	thing = `{"name":"a","fence":7}`
	held  = `{"code":"held","status":423}`
	json  = "application/json"
	wrong = "application/problem+json"
)

func good() reply {
	return reply{200, map[string]string{"Content-Type": json, "X-Request-Id": "1"}, thing}
}

func problem(status int, body string) reply {
	return reply{
		status, map[string]string{"Content-Type": wrong, "X-Request-Id": "1", "Retry-After": "1"}, body,
	}
}

// with returns the reply with other headers; an empty one is left out.
func (r reply) with(pairs ...string) reply {
	header := map[string]string{}
	for name, value := range r.header {
		header[name] = value
	}
	for i := 0; i < len(pairs); i += 2 {
		header[pairs[i]] = pairs[i+1]
	}
	r.header = header
	return r
}

func (r reply) saying(body string) reply { r.body = body; return r }

// next answers every request with the reply, and tells what arrived.
type next struct {
	reply   reply
	arrived []string
}

func (n *next) RoundTrip(req *http.Request) (*http.Response, error) {
	var body []byte
	if req.Body != nil {
		body, _ = io.ReadAll(req.Body)
	}
	n.arrived = append(n.arrived, req.Method+" "+req.URL.RequestURI()+" "+string(body))
	w := httptest.NewRecorder()
	for name, value := range n.reply.header {
		if value != "" {
			w.Header().Set(name, value)
		}
	}
	w.WriteHeader(n.reply.status)
	_, _ = io.WriteString(w, n.reply.body)
	return w.Result(), nil
}

func request(
	t *testing.T, ctx context.Context, method, path, body string, drop ...string,
) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(
		ctx, method, "http://server:1"+path, strings.NewReader(body),
	)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer bearer-secret")
	req.Header.Set("Lock-Token", "token-secret")
	req.Header.Set("Content-Type", json)
	for _, name := range drop {
		req.Header.Del(name)
	}
	return req
}

// exchange sends one request through a checker and returns its violations, and
// what the client and the server saw.
func exchange(
	t *testing.T, req *http.Request, r reply,
) (violations []string, answer string, arrived []string) {
	t.Helper()
	checker, err := contracttest.New(small)
	if err != nil {
		t.Fatal(err)
	}
	n := &next{reply: r}
	transport := checker.Transport(
		n, func(v *contracttest.Violation) { violations = append(violations, v.Error()) },
	)
	resp, err := transport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return violations, string(body), n.arrived
}

func TestExchangesThatAreRight(t *testing.T) {
	for name, c := range map[string]struct {
		method, path, body string
		reply              reply
	}{
		"json":         {"PUT", "/things/a?wait=3", `{"ttl":5}`, good()},
		"charset":      {"PUT", "/things/a", `{}`, good().with("Content-Type", json+"; charset=utf-8")},
		"no body":      {"PUT", "/things/a", ``, good()},
		"null":         {"PUT", "/things/a", `{"ttl":null}`, good()},
		"escaped path": {"PUT", "/things/a%3Ab", ``, good()},
		"free-form map": {
			"PUT", "/things/a", ``,
			good().saying(
				`{"name":"a","fence":7,"labels":{"x":"y"},"mixed":{"a":"b","c":1},"figures":{"count":1}}`,
			),
		},
		"empty response": {"PUT", "/things/a", ``, reply{status: 204}},
		"problem":        {"PUT", "/things/a", ``, problem(423, held)},
		"not json at all": {
			"GET", "/page", ``,
			reply{200, map[string]string{"Content-Type": "text/html; charset=utf-8"}, "<p>"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			violations, answer, arrived := exchange(
				t, request(t, t.Context(), c.method, c.path, c.body), c.reply,
			)
			if len(violations) > 0 {
				t.Errorf("violations: %q", violations)
			}
			if answer != c.reply.body {
				t.Errorf("the client saw %q, want %q", answer, c.reply.body)
			}
			if want := []string{c.method + " " + c.path + " " + c.body}; !cmp.Equal(arrived, want) {
				t.Errorf("the server saw %q, want %q", arrived, want)
			}
		})
	}
}

func TestResponsesThatAreWrong(t *testing.T) {
	for name, c := range map[string]struct {
		reply reply
		want  string // a part of the violation
	}{
		"status": {
			reply{418, good().header, thing}, "response 418: the document has no such status here",
		},
		"field missing": {good().saying(`{"name":"a"}`), `/fence: property "fence" is missing`},
		"field of wrong type": {
			good().saying(`{"name":"a","fence":"token-secret"}`), `/fence: value must be an integer`,
		},
		"field out of bounds": {
			good().saying(`{"name":"a","fence":0}`), `/fence: number must be at least 1`,
		},
		"null":    {good().saying(`{"name":null,"fence":7}`), `/name: Value is not nullable`},
		"instant": {good().saying(`{"name":"a","fence":7,"at":"token-secret"}`), `/at: `},
		"undeclared field": {
			good().saying(`{"name":"a","fence":7,"more":"token-secret"}`), `property "more" is unsupported`,
		},
		"undeclared in allOf": {
			good().saying(`{"name":"a","fence":7,"figures":{"more":1}}`), `property "more" is unsupported`,
		},
		"map of wrong type": {
			good().saying(`{"name":"a","fence":7,"labels":{"x":1}}`), `/labels/x: value must be a string`,
		},
		"not json": {good().saying(`token-secret`), "failed to decode response body"},
		"media type": {
			good().with("Content-Type", "text/html"), `the document has no media type "text/html" here`,
		},
		"json for a problem": {
			problem(423, held).with("Content-Type", json),
			`the document has no media type "application/json" here`,
		},
		"problem for json": {
			good().with("Content-Type", wrong),
			`the document has no media type "application/problem+json" here`,
		},
		"no media type":      {good().with("Content-Type", ""), `the document has no media type "`},
		"body where none is": {reply{204, nil, thing}, "the document has no body here"},
		"header missing": {
			good().with("X-Request-Id", ""), `response header "X-Request-Id" missing`,
		},
		"header of wrong type": {problem(423, held).with("Retry-After", "soon"), `header "Retry-After"`},
		"undeclared header": {
			good().with("Location", "/x"), "the document has no header Location here",
		},
		"problem code": {
			problem(423, `{"code":"lost","status":423}`), `the document has no code "lost" here`,
		},
		"status of a problem": {problem(423, `{"code":"held","status":409}`), "the body says status 409"},
	} {
		t.Run(name, func(t *testing.T) {
			violations, answer, _ := exchange(t, request(t, t.Context(), "PUT", "/things/a", ""), c.reply)
			expect(t, violations, c.want)
			if answer != c.reply.body {
				t.Errorf("the client saw %q, want %q", answer, c.reply.body)
			}
		})
	}
}

func TestRequestsThatAreWrong(t *testing.T) {
	for name, c := range map[string]struct {
		method, path, body string
		drop               string // header
		want               string
	}{
		"field of wrong type": {
			"PUT", "/things/a", `{"ttl":"token-secret"}`, "",
			`PUT /things/a: request: request body has an error: doesn't match schema #/components/schemas/Body: /ttl: value must be a number`,
		},
		"unknown field": {"PUT", "/things/a", `{"tll":1}`, "", `property "tll" is unsupported`},
		"not json":      {"PUT", "/things/a", `token-secret`, "", "failed to decode request body"},
		"media type":    {"PUT", "/things/a", `{}`, "Content-Type", "Content-Type has unexpected value"},
		"path":          {"PUT", "/things/A", "", "", `parameter "name" in path`},
		"query":         {"PUT", "/things/a?wait=soon", "", "", `parameter "wait" in query`},
		"unknown query": {
			"PUT", "/things/a?weit=1", "", "", `the document has no query parameter "weit"`,
		},
		"no lock token":      {"PUT", "/things/a", "", "Lock-Token", `parameter "Lock-Token" in header`},
		"no bearer token":    {"PUT", "/things/a", "", "Authorization", "a bearer token is needed"},
		"body where none is": {"GET", "/page", "{}", "", "request body not allowed"},
		"unknown path":       {"PUT", "/thing/a", "", "", "the document has no such operation"},
		"unknown method":     {"PATCH", "/things/a", "", "", "the document has no such operation"},
	} {
		t.Run(name, func(t *testing.T) {
			answer := problem(423, held)
			if c.path == "/page" {
				answer = reply{200, map[string]string{"Content-Type": "text/html"}, ""}
			}
			req := request(t, t.Context(), c.method, c.path, c.body, c.drop)
			violations, _, arrived := exchange(t, req, answer)
			expect(t, violations, c.want)
			if want := []string{c.method + " " + c.path + " " + c.body}; !cmp.Equal(arrived, want) {
				t.Errorf("the server saw %q, want %q", arrived, want)
			}
			req = request(t, contracttest.Malformed(t.Context()), c.method, c.path, c.body, c.drop)
			if violations, _, _ := exchange(t, req, answer); len(violations) > 0 {
				t.Errorf("marked as malformed: %q", violations)
			}
		})
	}
}

// The answer to a request that is wrong on purpose is checked all the same.
func TestMalformedIsAboutTheRequestAlone(t *testing.T) {
	for name, c := range map[string]struct {
		path  string
		reply reply
		want  string
	}{
		"operation": {"/things/A", good().saying(`{}`), `property "name" is missing`},
		"success of a nothing": {
			"/thing", good(), "the document has no such operation, and it succeeded",
		},
		"error of a nothing": {
			"/thing",
			reply{404, map[string]string{"Content-Type": "text/plain"}, "no"},
			"an error must be application/problem+json",
		},
		"without request id": {
			"/thing", problem(404, `{"code":"x","status":404}`).with("X-Request-Id", ""),
			"there is no X-Request-Id",
		},
		"status of a nothing": {
			"/thing", problem(404, `{"code":"x","status":405}`), "the body says status 405",
		},
		"field of a nothing": {
			"/thing", problem(404, `{"code":"x","status":404,"more":1}`), `property "more" is unsupported`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			violations, _, _ := exchange(
				t, request(t, contracttest.Malformed(t.Context()), "PUT", c.path, ""), c.reply,
			)
			expect(t, violations, c.want)
		})
	}
}

// A transport must not change the request that it is given, and this one must not
// change how a body is sent either.
func TestRequestsAreLeftAlone(t *testing.T) {
	checker, err := contracttest.New(small)
	if err != nil {
		t.Fatal(err)
	}
	req := request(t, t.Context(), "PUT", "/things/a", `{}`)
	req.ContentLength = -1 // in chunks
	before := *req
	var sent int64
	resp, err := checker.Transport(transport(func(req *http.Request) (*http.Response, error) {
		sent = req.ContentLength
		return (&next{reply: good()}).RoundTrip(req)
	}), func(v *contracttest.Violation) { t.Error(v) }).RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if sent != -1 || req.ContentLength != before.ContentLength || req.Body != before.Body {
		t.Errorf("sent with length %d; afterwards the request has the length %d", sent, req.ContentLength)
	}
}

// HEAD is an error here, and an error without a body.
func TestHeadHasNoBody(t *testing.T) {
	req := request(t, contracttest.Malformed(t.Context()), "HEAD", "/page", "")
	if violations, _, _ := exchange(t, req, problem(405, "")); len(violations) > 0 {
		t.Errorf("violations: %q", violations)
	}
}

// expect wants one violation that says want and tells no secret.
func expect(t *testing.T, violations []string, want string) {
	t.Helper()
	if len(violations) != 1 || !strings.Contains(violations[0], want) {
		t.Errorf("violations: %q, want one that says %q", violations, want)
	}
	if text := strings.Join(violations, "\n"); strings.Contains(text, "secret") ||
		strings.Count(text, "\n") > 1 {
		t.Errorf("%q shows a value, or says it at length", text)
	}
}

func TestUnseen(t *testing.T) {
	checker, err := contracttest.New(small)
	if err != nil {
		t.Fatal(err)
	}
	all := []string{
		"GET /page 200", "PUT /things/{name} 200", "PUT /things/{name} 204", "PUT /things/{name} 423",
	}
	if got := checker.Unseen(); !cmp.Equal(got, all) {
		t.Errorf("Unseen() = %q before anything, want %q", got, all)
	}
	transport := checker.Transport(
		&next{reply: problem(423, held)}, func(v *contracttest.Violation) { t.Error(v) },
	)
	resp, err := transport.RoundTrip(request(t, t.Context(), "PUT", "/things/a", ""))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if got := checker.Unseen(); !cmp.Equal(got, all[:3]) {
		t.Errorf("Unseen() = %q, want %q", got, all[:3])
	}
}

type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// A connection that breaks is a matter of the client, as it is without a checker.
func TestBrokenAnswersStayBroken(t *testing.T) {
	checker, err := contracttest.New(small)
	if err != nil {
		t.Fatal(err)
	}
	report := func(v *contracttest.Violation) { t.Error(v) }
	refused := errors.New("refused")
	_, err = checker.Transport(
		transport(func(*http.Request) (*http.Response, error) { return nil, refused }), report,
	).RoundTrip(request(t, t.Context(), "PUT", "/things/a", "")) //nolint:bodyclose // there is none
	if !errors.Is(err, refused) {
		t.Errorf("RoundTrip: %v, want %v", err, refused)
	}
	cut := errors.New("cut")
	resp, err := checker.Transport(transport(func(*http.Request) (*http.Response, error) {
		body := io.MultiReader(strings.NewReader("half"), iotest.ErrReader(cut))
		return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(body)}, nil
	}), report).RoundTrip(request(t, t.Context(), "PUT", "/things/a", ""))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if text, err := io.ReadAll(resp.Body); string(text) != "half" || !errors.Is(err, cut) {
		t.Errorf("the client saw %q, %v", text, err)
	}
}

func TestNewRefuses(t *testing.T) {
	for name, document := range map[string]string{
		"not json":        `{`,
		"not valid":       `{"openapi":"3.0.3"}`,
		"without Problem": `{"openapi":"3.0.3","info":{"title":"a","version":"1"},"paths":{},"components":{}}`,
	} {
		if _, err := contracttest.New([]byte(document)); err == nil {
			t.Errorf("%s: New took it", name)
		}
	}
}

// A stream has no end to wait for. The rest of the response is checked.
func TestStreamsAreNotRead(t *testing.T) {
	checker, err := contracttest.New(small)
	if err != nil {
		t.Fatal(err)
	}
	stream := io.NopCloser(iotest.ErrReader(errors.New("read by the checker")))
	for _, media := range []string{"text/event-stream", "application/x-ndjson"} {
		var violations []string
		resp, err := checker.Transport(transport(func(*http.Request) (*http.Response, error) {
			return &http.Response{
				StatusCode: 200, Header: http.Header{"Content-Type": {media}}, Body: stream,
			}, nil
		}), func(v *contracttest.Violation) { violations = append(violations, v.Error()) }).
			RoundTrip(request(t, t.Context(), "GET", "/page", ""))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if resp.Body != stream {
			t.Error("the stream was replaced")
		}
		expect(t, violations, `the document has no media type "`+media+`" here`)
	}
}
