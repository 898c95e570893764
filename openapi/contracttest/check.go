package contracttest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
)

const problemType = "application/problem+json"

func (x *exchange) checkRequest(body []byte) error {
	if x.route == nil {
		return errors.New("the document has no such operation")
	}
	// kin-openapi takes the body away from the request that it checks.
	input := *x.input
	input.Request = x.request.Clone(context.Background())
	input.Request.Body = io.NopCloser(bytes.NewReader(body))
	input.Request.ContentLength = int64(len(body))
	input.Request.GetBody = nil
	return errors.Join(
		openapi3filter.ValidateRequest(context.Background(), &input), x.unknownParameters(),
	)
}

func (x *exchange) unknownParameters() error {
	for _, name := range slices.Sorted(maps.Keys(x.request.URL.Query())) {
		if x.route.Operation.Parameters.GetByInAndName(openapi3.ParameterInQuery, name) == nil {
			return fmt.Errorf("the document has no query parameter %q", name)
		}
	}
	return nil
}

func (x *exchange) checkResponse(resp *http.Response, body []byte) error {
	if x.route == nil {
		return x.checkStranger(resp, body)
	}
	x.note(x.route, resp.StatusCode)
	described := x.route.Operation.Responses.Status(resp.StatusCode)
	if described == nil {
		return errors.New("the document has no such status here")
	}
	media := checkMedia(resp, body, described.Value)
	return errors.Join(
		media,
		x.checkBody(resp, body, media == nil),
		checkHeaders(resp, described.Value),
		checkProblem(resp, body, described.Value),
	)
}

func checkMedia(resp *http.Response, body []byte, described *openapi3.Response) error {
	switch {
	case len(described.Content) == 0 && len(body) > 0:
		return errors.New("the document has no body here")
	case len(described.Content) > 0 && described.Content.Get(resp.Header.Get("Content-Type")) == nil:
		return fmt.Errorf("the document has no media type %q here", resp.Header.Get("Content-Type"))
	}
	return nil
}

// checkBody checks the headers, and the body if it is JSON of the right type.
func (x *exchange) checkBody(resp *http.Response, body []byte, rightType bool) error {
	o := options()
	kind := mediaType(resp)
	isJSON := strings.HasSuffix(kind, "/json") || strings.HasSuffix(kind, "+json")
	o.ExcludeResponseBody = !rightType || !isJSON
	in := &openapi3filter.ResponseValidationInput{
		RequestValidationInput: x.input,
		Status:                 resp.StatusCode,
		Header:                 resp.Header,
		Body:                   io.NopCloser(bytes.NewReader(body)),
		Options:                o,
	}
	return openapi3filter.ValidateResponse(context.Background(), in)
}

// checkHeaders looks for headers that clients act on and the document does not
// have. Whether those are there that it has, kin-openapi checks.
func checkHeaders(resp *http.Response, described *openapi3.Response) error {
	for _, name := range []string{
		"Location", "Retry-After", "WWW-Authenticate", "Link", "Preference-Applied", "Set-Cookie",
	} {
		if _, known := described.Headers[name]; !known && len(resp.Header.Values(name)) > 0 {
			return fmt.Errorf("the document has no header %s here", name)
		}
	}
	return nil
}

// checkProblem holds the code against those that the document names.
func checkProblem(resp *http.Response, body []byte, described *openapi3.Response) error {
	list, named := described.Extensions["x-problem-codes"].([]any)
	if !named {
		return nil
	}
	code, err := problemCode(resp, body)
	if err == nil && !slices.Contains(list, any(code)) {
		err = fmt.Errorf("the document has no code %q here", code)
	}
	return err
}

func problemCode(resp *http.Response, body []byte) (string, error) {
	var p struct {
		Code   string `json:"code"`
		Status int    `json:"status"`
	}
	if err := json.Unmarshal(body, &p); err != nil {
		return "", errors.New("the body is not JSON")
	}
	if p.Status != resp.StatusCode {
		return "", fmt.Errorf("the body says status %d", p.Status)
	}
	return p.Code, nil
}

// checkStranger checks the answer to a path or a method that the document does
// not know.
func (x *exchange) checkStranger(resp *http.Response, body []byte) error {
	if resp.StatusCode < http.StatusBadRequest {
		return errors.New("the document has no such operation, and it succeeded")
	}
	if x.request.Method == http.MethodHead {
		return nil // there is no body to look into
	}
	if mediaType(resp) != problemType {
		return fmt.Errorf("an error must be %s, not %q", problemType, resp.Header.Get("Content-Type"))
	}
	if resp.Header.Get("X-Request-Id") == "" {
		return errors.New("there is no X-Request-Id")
	}
	if _, err := problemCode(resp, body); err != nil {
		return err
	}
	var value any
	if err := json.Unmarshal(body, &value); err != nil {
		return errors.New("the body is not JSON")
	}
	return x.problem.VisitJSON(
		value, openapi3.MultiErrors(), openapi3.SetSchemaErrorMessageCustomizer(describe),
	)
}
