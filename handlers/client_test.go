package handlers_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/fencepost/fencepost/auth"
)

// client sends requests with one bearer token to one replica, and holds every
// answer against what all answers have in common.
type client struct {
	t       testing.TB
	replica *replica
	claims  auth.Claims
	bearer  string // "" sends none
}

// as returns a client with other claims.
func (c *client) as(change func(*auth.Claims)) *client {
	c.t.Helper()
	d := *c
	change(&d.claims)
	token, err := auth.Sign(secret(), d.claims, time.Now(), time.Hour)
	if err != nil {
		c.t.Fatal(err)
	}
	return d.with(token)
}

// named returns a client whose token has another subject.
func (c *client) named(subject string) *client {
	c.t.Helper()
	return c.as(func(cl *auth.Claims) { cl.Subject = subject })
}

// with returns a client with another bearer token.
func (c *client) with(bearer string) *client {
	d := *c
	d.bearer = bearer
	shared.secrets.add(bearer)
	return &d
}

// at returns the same client at another replica.
func (c *client) at(r *replica) *client {
	d := *c
	d.replica = r
	return &d
}

// in returns the same client for a subtest.
func (c *client) in(t testing.TB) *client {
	d := *c
	d.t = t
	return &d
}

// request is an HTTP request and what a test knows of it.
type request struct {
	*http.Request
	text  string // the body
	loose bool   // the server takes it, although the description does not have it

	undescribed bool // the description does not have the answer either
}

// option changes a request before it is sent.
type option func(*request)

// body is sent with its length.
func body(text string) option {
	return func(r *request) {
		r.text = text
		r.Body, r.ContentLength = io.NopCloser(strings.NewReader(text)), int64(len(text))
		r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(text)), nil }
		if _, set := r.Header["Content-Type"]; !set {
			r.Header.Set("Content-Type", "application/json")
		}
	}
}

// chunked is sent in pieces, without its length.
func chunked(text string) option {
	return func(r *request) {
		body(text)(r)
		r.ContentLength, r.GetBody = -1, nil
	}
}

// header sets a header to the given values; none removes it.
func header(name string, values ...string) option {
	return func(r *request) {
		r.Header[http.CanonicalHeaderKey(name)] = values
		if len(values) == 0 {
			delete(r.Header, http.CanonicalHeaderKey(name))
		}
	}
}

// What fits the description, for requests to stubs.
const (
	someID    = "5mdrk1w5pvy0wg1dcjt2b2gthr"
	someToken = "fp1_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
)

func lockToken(token string) option {
	return func(r *request) {
		shared.secrets.add(token)
		r.Header.Set("Lock-Token", token)
	}
}

// loose marks what the server takes out of kindness.
func loose(r *request) { r.loose = true }

func key(k string) option { return header("Idempotency-Key", k) }

func (c *client) get(path string, o ...option) *answer {
	c.t.Helper()
	return c.do("GET", path, o...)
}

func (c *client) post(path string, o ...option) *answer {
	c.t.Helper()
	return c.do("POST", path, o...)
}

func (c *client) put(path string, o ...option) *answer {
	c.t.Helper()
	return c.do("PUT", path, o...)
}

func (c *client) delete(path string, o ...option) *answer {
	c.t.Helper()
	return c.do("DELETE", path, o...)
}

// do sends a request and checks the answer.
func (c *client) do(method, path string, o ...option) *answer {
	c.t.Helper()
	return c.start(method, path, o...).wait()
}

// pending is a request on its way.
type pending struct {
	t      testing.TB
	asked  string
	cancel context.CancelFunc
	done   chan struct{}
	answer *answer
	err    error
}

// start sends a request that may wait.
func (c *client) start(method, path string, o ...option) *pending {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 90*time.Second)
	p := &pending{t: c.t, asked: method + " " + path, cancel: cancel, done: make(chan struct{})}
	r := c.request(ctx, method, path, o...)
	go func() {
		defer close(p.done)
		p.answer, p.err = c.send(r)
	}()
	c.t.Cleanup(func() { cancel(); <-p.done })
	return p
}

func (c *client) request(ctx context.Context, method, path string, o ...option) *request {
	c.t.Helper()
	sent, err := http.NewRequestWithContext(ctx, method, c.replica.url+path, http.NoBody)
	if err != nil {
		c.t.Fatal(err)
	}
	r := &request{Request: sent}
	if c.bearer != "" {
		r.Header.Set("Authorization", "Bearer "+c.bearer)
	}
	for _, change := range o {
		change(r)
	}
	return r
}

func (c *client) send(r *request) (*answer, error) {
	sent := time.Now()
	resp, err := c.replica.transport.RoundTrip(r.Request) // a client would follow redirects
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	return &answer{
		t: c.t, asked: r.Method + " " + r.URL.RequestURI(), method: r.Method, sent: sent,
		received: time.Now(), proto: resp.Proto, status: resp.StatusCode, header: resp.Header, body: text,
		violations: violations(r, resp, text),
	}, nil
}

// wait returns the answer, checked.
func (p *pending) wait() *answer {
	p.t.Helper()
	a := p.raw()
	a.check()
	return a
}

// raw returns the answer as it is.
func (p *pending) raw() *answer {
	p.t.Helper()
	if <-p.done; p.err != nil {
		p.t.Fatalf("%s: %v", p.asked, p.err)
	}
	return p.answer
}

// answered reports whether the answer is there.
func (p *pending) answered() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// cut closes the connection under a request that waits.
func (p *pending) cut() {
	p.t.Helper()
	if p.answered() {
		p.t.Fatalf("%s was answered before it was cut", p.asked)
	}
	p.cancel()
	<-p.done
}

// answer is what came back.
type answer struct {
	t              testing.TB
	asked, method  string
	sent, received time.Time
	proto          string
	status         int
	header         http.Header
	body           []byte
	violations     []error // of the description
}

func (a *answer) String() string { return fmt.Sprintf("%s = %d %s", a.asked, a.status, a.body) }

// check holds the answer against what is true of all answers.
func (a *answer) check() {
	a.t.Helper()
	for _, err := range a.violations {
		a.t.Errorf("%v: not as described: %v", a, err)
	}
	if id := a.header["X-Request-Id"]; len(id) != 1 || id[0] == "" {
		a.t.Errorf("%v: X-Request-Id = %q, want one", a, id)
	}
	switch {
	case a.status >= 500 && a.status != http.StatusServiceUnavailable:
		a.t.Errorf("%v: a server error", a)
	case a.status >= 400:
		a.checkProblem()
	case a.status == http.StatusNoContent && len(a.body) != 0:
		a.t.Errorf("%v: no content was due", a)
	case a.status >= 200 && a.status < 300:
		a.keepToken()
	}
	for name, values := range a.header {
		if found := shared.secrets.find([]byte(strings.Join(values, "\n"))); found != "" {
			a.t.Errorf("%v: header %s shows the secret %q", a, name, found)
		}
	}
}

// keepToken remembers the lock token of an answer, to find it where it must not be.
func (a *answer) keepToken() {
	var e struct {
		Token string `json:"token"`
	}
	if json.Unmarshal(a.body, &e) == nil && e.Token != "" {
		shared.secrets.add(e.Token)
	}
}

// decode reads the whole body strictly into v.
func (a *answer) decode(v any) {
	a.t.Helper()
	d := json.NewDecoder(bytes.NewReader(a.body))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		a.t.Fatalf("%v: %v", a, err)
	}
	if d.More() {
		a.t.Fatalf("%v: more than one value", a)
	}
}

// want checks the status and the content type of a success and decodes it.
func (a *answer) want(status int, v any) {
	a.t.Helper()
	if a.status != status {
		a.t.Fatalf("%v, want %d", a, status)
	}
	if got := a.header.Get("Content-Type"); got != "application/json" {
		a.t.Errorf("%v: Content-Type = %q, want application/json", a, got)
	}
	a.decode(v)
}

func (a *answer) wantNoContent() {
	a.t.Helper()
	if a.status != http.StatusNoContent {
		a.t.Fatalf("%v, want 204", a)
	}
}

// known is what a client has to know of an entry.
type known struct{ ID, Token string }

// known is what the answer tells, if it has the status.
func (a *answer) known(status int) known {
	a.t.Helper()
	a.wantStatus(status)
	fields := a.fields()
	return known{fmt.Sprint(fields["id"]), fmt.Sprint(fields["token"])}
}
