package main

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

const (
	problemRef  = "#/components/schemas/Problem"
	problemType = "application/problem+json"

	// problemCodes names the codes that a response can carry, for programs; the
	// contract tests hold the server to it.
	problemCodes = "x-problem-codes"
)

// headers are those that belong to a status, whatever the operation.
func headers() openapi3.Headers {
	header := func(description string, s *openapi3.Schema, example any) *openapi3.HeaderRef {
		h := &openapi3.Header{}
		h.Description, h.Required, h.Schema, h.Example = description, true, s.NewRef(), example
		return &openapi3.HeaderRef{Value: h}
	}
	return openapi3.Headers{
		"RequestId": header("Finds the request in the server's log.",
			openapi3.NewStringSchema().WithMinLength(1).WithMaxLength(128), "4f1a7c0b9d2e83a6"),
		"RetryAfter": header("Seconds after which to retry.",
			openapi3.NewInt32Schema().WithMin(1), 1),
		"Authenticate": header("How to authenticate.",
			openapi3.NewStringSchema(), `Bearer realm="fencepost"`),
		"Location": header("Path of the new object, or of the entry to wait for.",
			openapi3.NewStringSchema().WithFormat("uri-reference"),
			"/locks/orders:42/entries/5mdrk1w5pvy0wg1dcjt2b2gthr"),
		tagHeader: optional(header("Changes with the answer, for `If-None-Match`.",
			openapi3.NewStringSchema(), `W/"2f0c5a4e9b1d"`)),
	}
}

func optional(h *openapi3.HeaderRef) *openapi3.HeaderRef {
	h.Value.Required = false // lines have none
	return h
}

// headersOf names the headers of a status.
func headersOf(status int) map[string]string {
	names := map[string]string{"X-Request-Id": "RequestId"}
	switch status {
	case http.StatusCreated, http.StatusAccepted:
		names["Location"] = "Location"
	case http.StatusUnauthorized:
		names["WWW-Authenticate"] = "Authenticate"
	case http.StatusLocked, http.StatusTooManyRequests, http.StatusServiceUnavailable:
		names["Retry-After"] = "RetryAfter"
	}
	return names
}

// common are the answers that every operation with a bearer token can give, whose
// annotations need not repeat them. An annotation of its own for a status goes first.
func common() map[int]string {
	return map[int]string{
		http.StatusBadRequest: "invalid_request", http.StatusUnauthorized: "unauthenticated",
		http.StatusForbidden:           "forbidden",
		http.StatusTooManyRequests:     overloaded + ", rate_limited",
		http.StatusInternalServerError: "internal",
	}
}

// commonWithBody are those which an operation can give beside to which a body can be sent, whether
// it says anything or not.
func commonWithBody() map[int]string {
	return map[int]string{
		http.StatusRequestEntityTooLarge: "body_too_large",
		http.StatusUnsupportedMediaType:  "unsupported_media_type",
	}
}

// overloaded is answered by any operation, to any client, over a connection that has too many
// requests under way. Those that need no bearer token do not say so: they are asked by probes, one
// at a time.
const overloaded = "overloaded"

func addCommon(method, path string, op *openapi3.Operation) {
	if op.Security == nil {
		return
	}
	if strings.Contains(path, "/locks/{") {
		addMissing(op, map[int]string{http.StatusBadRequest: "invalid_request, invalid_name"})
	}
	addMissing(op, common())
	if method != http.MethodGet {
		addMissing(op, commonWithBody())
	}
	if limited := op.Responses.Status(http.StatusTooManyRequests).Value; !strings.Contains(
		*limited.Description, overloaded,
	) {
		limited.WithDescription(overloaded + ", " + *limited.Description)
	}
}

func addMissing(op *openapi3.Operation, answers map[int]string) {
	for status, codes := range answers {
		if op.Responses.Status(status) == nil {
			op.AddResponse(
				status,
				openapi3.NewResponse().WithDescription(codes).WithJSONSchemaRef(
					openapi3.NewSchemaRef(problemRef, nil),
				),
			)
		}
	}
}

func improveResponses(doc *openapi3.T, op *openapi3.Operation) error {
	for key, ref := range op.Responses.Map() {
		status, err := strconv.Atoi(key)
		if err != nil {
			return fmt.Errorf("response %q is not a status", key)
		}
		special := len(ref.Value.Headers) > 0
		if status < http.StatusBadRequest {
			splitLines(doc, ref.Value)
		}
		if status >= http.StatusBadRequest {
			if err := improveError(ref.Value); err != nil {
				return fmt.Errorf("response %s: %w", key, err)
			}
		}
		addHeaders(doc, ref.Value, status)
		if codes, ok := ref.Value.Extensions[problemCodes].([]string); ok && !special {
			share(doc, op, key, ref.Value, codes)
		}
	}
	return nil
}

// splitLines describes one line of an answer in lines: a member of the list that it is as one
// document.
func splitLines(doc *openapi3.T, r *openapi3.Response) {
	lines := r.Content["application/x-ndjson"]
	if lines == nil {
		return
	}
	page := doc.Components.Schemas[strings.TrimPrefix(lines.Schema.Ref, "#/components/schemas/")]
	if page == nil {
		return
	}
	for _, list := range page.Value.Properties {
		if list.Value.Items != nil {
			r.Content["application/x-ndjson"] = openapi3.NewMediaType().WithSchemaRef(list.Value.Items)
			return
		}
	}
}

func addHeaders(doc *openapi3.T, r *openapi3.Response, status int) {
	if r.Headers == nil {
		r.Headers = openapi3.Headers{}
	}
	for name, component := range headersOf(status) {
		r.Headers[name] = &openapi3.HeaderRef{
			Ref: "#/components/headers/" + component, Value: doc.Components.Headers[component].Value,
		}
	}
}

// improveError gives an error its media type, which Swagger 2.0 can only say for
// all responses of an operation at once. The description of a problem is the list
// of its codes.
func improveError(r *openapi3.Response) error {
	var schema *openapi3.SchemaRef
	for _, media := range r.Content {
		schema = media.Schema
	}
	switch {
	case schema == nil:
		return errors.New("an error needs a body")
	case schema.Ref != problemRef:
		r.Content = openapi3.NewContentWithSchemaRef(schema, []string{"text/plain"})
		return nil
	}
	codes := strings.Split(*r.Description, ", ")
	for _, code := range codes {
		if strings.Trim(code, "abcdefghijklmnopqrstuvwxyz_") != "" {
			return fmt.Errorf("%q is not a list of codes", *r.Description)
		}
	}
	r.Content = openapi3.NewContentWithSchemaRef(schema, []string{problemType})
	r.Description = openapi3.Ptr("The `code` is " + alternatives(codes) + ".")
	r.Extensions = map[string]any{problemCodes: codes}
	return nil
}

// share puts a response among the components, where all operations find it.
func share(
	doc *openapi3.T, op *openapi3.Operation, status string, r *openapi3.Response, codes []string,
) {
	if doc.Components.Responses == nil {
		doc.Components.Responses = openapi3.ResponseBodies{}
	}
	name := camel(codes)
	doc.Components.Responses[name] = &openapi3.ResponseRef{Value: r}
	op.Responses.Set(status, &openapi3.ResponseRef{Ref: "#/components/responses/" + name, Value: r})
}

// camel makes a name of codes: LockHeldOrWaitTimeout.
func camel(codes []string) string {
	var b strings.Builder
	for i, code := range codes {
		if i > 0 {
			b.WriteString("Or")
		}
		for word := range strings.SplitSeq(code, "_") {
			b.WriteString(strings.ToUpper(word[:1]) + word[1:])
		}
	}
	return b.String()
}
