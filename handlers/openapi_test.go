package handlers_test

import (
	"bytes"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/fencepost/fencepost/openapi"
	"github.com/fencepost/fencepost/openapi/contracttest"
)

var checker = sync.OnceValue(
	func() *contracttest.Checker { return must(contracttest.New(openapi.Document())) },
)

// violations holds an exchange against the description. A request that the server
// found invalid need not be as described; one that it took has to be.
func violations(r *request, resp *http.Response, text []byte) []error {
	if r.undescribed || r.Method == http.MethodHead { // HEAD has no body to look into
		return nil
	}
	var found []error
	replay := func(*http.Request) (*http.Response, error) {
		again := *resp
		again.Body = io.NopCloser(bytes.NewReader(text))
		return &again, nil
	}
	ctx := r.Context()
	if r.loose || slices.Contains([]int{400, 401, 403, 404, 405, 413, 415}, resp.StatusCode) {
		ctx = contracttest.Malformed(ctx)
	}
	sent := r.Clone(ctx)
	if r.text != "" {
		sent.Body = io.NopCloser(strings.NewReader(r.text))
	}
	t := checker().Transport(
		transportFunc(replay), func(v *contracttest.Violation) { found = append(found, v) },
	)
	again, err := t.RoundTrip(sent)
	if err != nil {
		return append(found, err)
	}
	return append(found, closing(again)...)
}

type transportFunc func(*http.Request) (*http.Response, error)

func (f transportFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func closing(resp *http.Response) []error {
	if err := resp.Body.Close(); err != nil {
		return []error{err}
	}
	return nil
}
