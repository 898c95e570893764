package main

import (
	"net/http"
	"slices"

	"github.com/getkin/kin-openapi/openapi3"
)

const tagHeader = "ETag"

// polled reports whether an operation is one that the dashboard polls, by its scopes: its answers
// have an ETag.
func polled(method string, op *openapi3.Operation) bool {
	if method != http.MethodGet || op.Security == nil {
		return false
	}
	if ok := op.Responses.Status(
		http.StatusOK,
	); ok == nil || ok.Value.Content["application/json"] == nil {
		return false
	}
	for _, requirement := range *op.Security {
		for _, scope := range requirement[securityScheme] {
			if slices.Contains([]string{"admin", "tenant-admin", "webhooks:write"}, scope) {
				return true
			}
		}
	}
	return false
}

// addTags describes If-None-Match and what it is answered.
func addTags(op *openapi3.Operation) {
	known := openapi3.NewHeaderParameter("If-None-Match").WithSchema(openapi3.NewStringSchema()).
		WithDescription("The `ETag` of an answer that the client has.")
	known.Schema.Value.Pattern, known.Example = `^[ -~]*$`, `W/"2f0c5a4e9b1d"`
	op.AddParameter(known)
	op.AddResponse(http.StatusNotModified, openapi3.NewResponse().
		WithDescription(
			"Only `revision`, `server_now` and `replica` differ from the answer that the client has.",
		))
}

// addTagHeader describes the ETag of a response.
func addTagHeader(doc *openapi3.T, r *openapi3.Response) {
	r.Headers[tagHeader] = &openapi3.HeaderRef{
		Ref: "#/components/headers/" + tagHeader, Value: doc.Components.Headers[tagHeader].Value,
	}
}
