package contracttest

import (
	"bytes"
	"io"
	"mime"
	"net/http"
	"net/url"

	"github.com/getkin/kin-openapi/openapi3filter"
)

// Transport returns a transport that sends by next and checks each request and
// response. It calls report for each violation, from the goroutine of the request,
// and changes nothing on the way. A response is read to its end before it is
// handed on, unless it is a stream of events: those are not checked.
func (c *Checker) Transport(next http.RoundTripper, report func(*Violation)) http.RoundTripper {
	return &transport{checker: c, next: next, report: report}
}

type transport struct {
	checker *Checker
	next    http.RoundTripper
	report  func(*Violation)
}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	x := t.checker.exchange(req)
	if req.Context().Value(malformed{}) == nil {
		sent, body, err := readRequest(req)
		if err != nil {
			return nil, err
		}
		if err := x.checkRequest(body); err != nil {
			t.violated(req, 0, err)
		}
		req = sent
	}
	resp, err := t.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	body, whole := readResponse(resp)
	if !whole {
		return resp, nil
	}
	if err := x.checkResponse(resp, body); err != nil {
		t.violated(req, resp.StatusCode, err)
	}
	return resp, nil
}

func (t *transport) violated(req *http.Request, status int, err error) {
	t.report(&Violation{Method: req.Method, Path: req.URL.EscapedPath(), Status: status, Err: err})
}

func (c *Checker) exchange(req *http.Request) *exchange {
	x := &exchange{Checker: c, request: req}
	route, params, err := c.router.FindRoute(req)
	if err == nil {
		x.route = route
	}
	// Patterns are about names, not about how they are escaped in a path.
	for name, value := range params {
		if plain, err := url.PathUnescape(value); err == nil {
			params[name] = plain
		}
	}
	x.input = &openapi3filter.RequestValidationInput{
		Request: req, PathParams: params, Route: x.route, Options: options(),
	}
	return x
}

// readRequest returns the body and a request that can be sent in place of the
// given one, whose body is read and closed.
func readRequest(req *http.Request) (*http.Request, []byte, error) {
	if req.Body == nil || req.Body == http.NoBody {
		return req, nil, nil
	}
	defer req.Body.Close()
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, nil, err
	}
	sent := req.Clone(req.Context())
	sent.Body = io.NopCloser(bytes.NewReader(body))
	return sent, body, nil
}

// readResponse returns the body and leaves a copy in its place. Of a stream it
// returns nothing. A body that breaks off breaks off in the copy too, and whole is
// false.
func readResponse(resp *http.Response) (body []byte, whole bool) {
	switch mediaType(resp) {
	case "text/event-stream", "application/x-ndjson":
		return nil, true
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		resp.Body = io.NopCloser(io.MultiReader(bytes.NewReader(body), broken{err}))
		return nil, false
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return body, true
}

type broken struct{ err error }

func (b broken) Read([]byte) (int, error) { return 0, b.err }

func mediaType(resp *http.Response) string {
	media, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if err != nil {
		return ""
	}
	return media
}
