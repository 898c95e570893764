// Package contracttest holds requests and responses against the description of the
// HTTP interface. It is for tests: put [Checker.Transport] into the client that
// they use, and every exchange is checked.
//
// It is stricter than a client may be. A client must pass over fields that it does
// not know; here a field that is not described is a violation, because the
// description is missing. The same holds for a status, a media type, a problem
// code, and a header that clients act on.
//
// Violations name the place and the rule, never the value, which may be a secret.
package contracttest

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"
)

// Checker knows one document. It is safe for concurrent use.
type Checker struct {
	doc     *openapi3.T
	router  routers.Router
	problem *openapi3.Schema // of errors outside of all operations

	mu   sync.Mutex
	seen map[string]bool // lines as Unseen returns them
}

// New reads a document, and refuses one that is not valid.
func New(document []byte) (*Checker, error) {
	doc, err := openapi3.NewLoader().LoadFromData(document)
	if err != nil {
		return nil, fmt.Errorf("read the document: %w", err)
	}
	if err := doc.Validate(context.Background()); err != nil {
		return nil, fmt.Errorf("the document is not valid: %w", err)
	}
	for _, schema := range doc.Components.Schemas {
		closeSchema(schema)
	}
	problem, found := doc.Components.Schemas["Problem"]
	if !found {
		return nil, fmt.Errorf("the document has no schema Problem")
	}
	router, err := gorillamux.NewRouter(doc)
	if err != nil {
		return nil, fmt.Errorf("read the paths: %w", err)
	}
	return &Checker{doc: doc, router: router, problem: problem.Value, seen: map[string]bool{}}, nil
}

// closeSchema lets an object have no property that is not described.
func closeSchema(ref *openapi3.SchemaRef) {
	s := ref.Value
	if len(s.Properties) > 0 && s.AdditionalProperties.Schema == nil {
		s.AdditionalProperties = openapi3.AdditionalProperties{Has: openapi3.Ptr(false)}
	}
	for _, p := range s.Properties {
		if p.Ref == "" {
			closeSchema(p)
		}
	}
	if s.Items != nil && s.Items.Ref == "" {
		closeSchema(s.Items)
	}
}

// Violation is a difference between the document and what happened.
type Violation struct {
	Method string
	Path   string // as it was sent, without the query
	Status int    // of the response; 0 if the request is at fault
	Err    error
}

// Error says what differs and where.
func (v *Violation) Error() string {
	part := "request"
	if v.Status != 0 {
		part = fmt.Sprintf("response %d", v.Status)
	}
	return fmt.Sprintf("%s %s: %s: %v", v.Method, v.Path, part, v.Err)
}

// Unwrap returns what differs.
func (v *Violation) Unwrap() error { return v.Err }

type malformed struct{}

// Malformed marks the request with this context as invalid on purpose: only its
// response is checked. Its path and method may be unknown too.
func Malformed(ctx context.Context) context.Context {
	return context.WithValue(ctx, malformed{}, true)
}

// Unseen lists the responses of the document that no exchange had so far, in the
// form "GET /locks/{name} 200". What is left after all tests is described but not
// tested, or cannot happen.
func (c *Checker) Unseen() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var lines []string
	for path, item := range c.doc.Paths.Map() {
		for method, op := range item.Operations() {
			for status := range op.Responses.Map() {
				if line := method + " " + path + " " + status; !c.seen[line] {
					lines = append(lines, line)
				}
			}
		}
	}
	slices.Sort(lines)
	return lines
}

func (c *Checker) note(route *routers.Route, status int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen[fmt.Sprintf("%s %s %d", route.Method, route.Path, status)] = true
}

// options of kin-openapi for requests and responses.
func options() *openapi3filter.Options {
	o := &openapi3filter.Options{
		MultiError:                        true,
		RejectWhenRequestBodyNotSpecified: true,
		AuthenticationFunc:                hasBearer,
	}
	o.WithCustomSchemaErrorFunc(describe)
	return o
}

// describe says what is wrong without the value, which kin-openapi would add.
func describe(e *openapi3.SchemaError) string {
	where := "/" + strings.Join(e.JSONPointer(), "/")
	if e.Origin != nil {
		return where + ": " + e.Origin.Error()
	}
	return where + ": " + e.Reason
}

func hasBearer(_ context.Context, in *openapi3filter.AuthenticationInput) error {
	values := in.RequestValidationInput.Request.Header["Authorization"]
	if len(values) == 1 {
		if scheme, token, _ := strings.Cut(values[0], " "); strings.EqualFold(
			scheme, "Bearer",
		) && token != "" {
			return nil
		}
	}
	return fmt.Errorf("one Authorization header with a bearer token is needed")
}

// exchange is one request and what the document says about it.
type exchange struct {
	*Checker
	request *http.Request
	route   *routers.Route // nil if the document knows no such path or method
	input   *openapi3filter.RequestValidationInput
}
