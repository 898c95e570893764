package openapi_test

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/handlers"
	"github.com/fencepost/fencepost/openapi"
)

func load(t *testing.T) *openapi3.T {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromData(openapi.Document())
	if err != nil {
		t.Fatal(err)
	}
	if err := doc.Validate(t.Context(), openapi3.EnableExamplesValidation()); err != nil {
		t.Fatal(err)
	}
	return doc
}

// each calls f for every operation.
func each(t *testing.T, f func(name string, op *openapi3.Operation)) {
	t.Helper()
	for path, item := range load(t).Paths.Map() {
		for method, op := range item.Operations() {
			f(method+" "+path, op)
		}
	}
}

// eachResponse calls f for every response of every operation.
func eachResponse(t *testing.T, f func(name string, status int, r *openapi3.Response)) {
	t.Helper()
	each(t, func(name string, op *openapi3.Operation) {
		for key, ref := range op.Responses.Map() {
			status, err := strconv.Atoi(key)
			if err != nil {
				t.Fatalf("%s has a response %q", name, key)
			}
			f(name+" "+key, status, ref.Value)
		}
	})
}

func TestEveryRouteIsDescribed(t *testing.T) {
	var routes, described []string
	parameter := regexp.MustCompile(`[:*](\w+)`)
	server := handlers.New(handlers.Config{
		Exposition: http.NotFoundHandler(), Logger: slog.New(slog.DiscardHandler),
	})
	for _, r := range server.Routes() {
		routes = append(routes, r.Method+" "+parameter.ReplaceAllString(r.Path, "{$1}"))
	}
	each(t, func(name string, _ *openapi3.Operation) { described = append(described, name) })
	slices.Sort(routes)
	slices.Sort(described)
	if diff := cmp.Diff(routes, described); diff != "" {
		t.Errorf("routes of the server (-) and of the document (+):\n%s", diff)
	}
}

func TestDocumentIsACopy(t *testing.T) {
	openapi.Document()[0] = '!'
	if openapi.Document()[0] != '{' {
		t.Error("a caller has changed the document of all others")
	}
}

// What all responses of a status have in common is not in the annotations.
func TestHeadersOfResponses(t *testing.T) {
	needs := map[int]string{
		201: "Location", 202: "Location", 401: "WWW-Authenticate", 423: "Retry-After", 429: "Retry-After",
		503: "Retry-After",
	}
	eachResponse(t, func(name string, status int, r *openapi3.Response) {
		for _, header := range []string{"X-Request-Id", needs[status]} {
			if h := r.Headers[header]; header != "" && (h == nil || !h.Value.Required) {
				t.Errorf("%s has no header %s that is always there", name, header)
			}
		}
	})
}

func TestErrorsAreProblems(t *testing.T) {
	eachResponse(t, func(name string, status int, r *openapi3.Response) {
		_, problem := r.Content["application/problem+json"]
		_, codes := r.Extensions["x-problem-codes"]
		if failed := status >= http.StatusBadRequest; problem != failed || codes != problem ||
			problem && len(r.Content) != 1 {
			t.Errorf("%s: media types %v, codes %v", name, r.Content, r.Extensions)
		}
	})
}

func TestBodiesAreStrict(t *testing.T) {
	bodies := 0
	each(t, func(name string, op *openapi3.Operation) {
		if op.RequestBody == nil {
			return
		}
		bodies++
		s := op.RequestBody.Value.Content["application/json"].Schema.Value
		if s.AdditionalProperties.Has == nil || *s.AdditionalProperties.Has {
			t.Errorf("%s: unknown fields are not refused", name)
		}
		if op.RequestBody.Value.Required != (len(s.Required) > 0) {
			t.Errorf("%s: the body is required without a required field, or the other way round", name)
		}
	})
	if bodies == 0 {
		t.Error("no operation has a body")
	}
}

func TestWhoNeedsABearerToken(t *testing.T) {
	each(t, func(name string, op *openapi3.Operation) {
		if open := slices.Equal(op.Tags, []string{"operations"}); open != (op.Security == nil) {
			t.Errorf("%s: tags %v, security %v", name, op.Tags, op.Security)
		}
	})
	if s := load(t).Components.SecuritySchemes["bearer"].Value; s.Type != "http" ||
		s.Scheme != "bearer" {
		t.Errorf("the security scheme is %s %s", s.Type, s.Scheme)
	}
}

// The server takes each example: Swagger UI and generators send it.
func TestExamplesOfBodies(t *testing.T) {
	found := 0
	each(t, func(name string, op *openapi3.Operation) {
		if op.RequestBody == nil {
			return
		}
		media := op.RequestBody.Value.Content["application/json"]
		for title, e := range media.Examples {
			found++
			if err := media.Schema.Value.VisitJSON(e.Value.Value); err != nil {
				t.Errorf("%s: example %q: %v", name, title, err)
			}
		}
	})
	if found == 0 {
		t.Error("there is no example")
	}
}

// What is not a claim in the document is refused by the server too; handlers' tests
// have these bodies.
func TestLimitIsForSemaphores(t *testing.T) {
	s := load(t).Components.Schemas["AcquireBody"].Value
	for text, valid := range map[string]bool{
		`{}`: true, `{"limit":null}`: true, `{"mode":"shared","limit":null}`: true,
		`{"mode":"semaphore","limit":3}`: true, `{"mode":null}`: true,
		`{"limit":3}`: false, `{"mode":"exclusive","limit":3}`: false, `{"mode":null,"limit":3}`: false,
		`{"mode":"semaphore"}`:              false,
		`{"mode":"semaphore","limit":null}`: false,
	} {
		var value any
		if err := json.Unmarshal([]byte(text), &value); err != nil {
			t.Fatal(err)
		}
		if err := s.VisitJSON(value); (err == nil) != valid {
			t.Errorf("%s: %v, want it valid: %t", text, err, valid)
		}
	}
}

// The state of an entry says which fields it has.
func TestStateTypesTheFence(t *testing.T) {
	schemas := load(t).Components.Schemas
	for union, members := range map[string][]string{
		"Entry": {"HeldEntry", "WaitingEntry"}, "Set": {"HeldSet", "WaitingSet"},
	} {
		s := schemas[union].Value
		if s.Discriminator == nil || s.Discriminator.PropertyName != "state" ||
			len(s.OneOf) != len(members) {
			t.Fatalf("%s is not one of %v by its state", union, members)
		}
		for i, name := range members {
			if s.OneOf[i].Ref != "#/components/schemas/"+name {
				t.Errorf("%s[%d] is %s", union, i, s.OneOf[i].Ref)
			}
		}
	}
	for name, field := range map[string]string{
		"HeldEntry": "fence", "HeldSetLock": "fence", "WaitingEntry": "position",
		"WaitingSet": "position", "HeldSet": "waited_seconds",
	} {
		if !slices.Contains(schemas[name].Value.Required, field) {
			t.Errorf("%s.%s may be missing", name, field)
		}
	}
	if schemas["WaitingEntry"].Value.Properties["fence"] != nil ||
		schemas["HeldEntry"].Value.Properties["position"] != nil {
		t.Error("an entry has a field of the other state")
	}
}

// Every optional field of a body can be null, and no other.
func TestNullIsLeavingOut(t *testing.T) {
	schemas := load(t).Components.Schemas
	for _, name := range []string{"AcquireBody", "LockSetBody", "SetClaim"} {
		s := schemas[name].Value
		for property, p := range s.Properties {
			if optional := !slices.Contains(s.Required, property); p.Value.Nullable != optional {
				t.Errorf("%s.%s: nullable is %t, optional %t", name, property, p.Value.Nullable, optional)
			}
		}
	}
}

func TestParametersAreBounded(t *testing.T) {
	each(t, func(name string, op *openapi3.Operation) {
		for _, p := range op.Parameters {
			s := p.Value.Schema.Value
			if s.Type.Is(openapi3.TypeString) && s.Pattern == "" && len(s.Enum) == 0 &&
				p.Value.Name != "file" {
				t.Errorf("%s: anything may be in %s", name, p.Value.Name)
			}
		}
	})
}
