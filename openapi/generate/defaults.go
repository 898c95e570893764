package main

import (
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi2"
)

const jsonType = "application/json"

// addDefaults adds what annotations leave out: the function's name as the id of the operation, the
// scopes and the tag of its path, and JSON as what the operation takes and returns.
func addDefaults(folder string, doc *openapi2.T) error {
	names, err := routes(folder)
	if err != nil {
		return err
	}
	for path, item := range doc.Paths {
		for method, op := range item.Operations() {
			if name := names[path+" ["+strings.ToLower(method)+"]"]; op.OperationID == "" {
				op.OperationID = name
			}
			if scopes := scopesOf(path); op.Security == nil && scopes != nil {
				op.Security = &openapi2.SecurityRequirements{}
				for _, scope := range scopes {
					*op.Security = append(*op.Security, map[string][]string{securityScheme: {scope}})
				}
			}
			if len(op.Tags) == 0 {
				op.Tags = []string{tagOf(path, op)}
			}
			if len(op.Produces) == 0 {
				op.Produces = []string{jsonType}
			}
			if len(op.Consumes) == 0 && slices.ContainsFunc(op.Parameters, isBody) {
				op.Consumes = []string{jsonType}
			}
		}
	}
	return nil
}

func isBody(p *openapi2.Parameter) bool { return p.In == "body" }

// scopesOf returns the alternative scopes of an operation below a path, unless it names its own.
func scopesOf(path string) []string {
	switch {
	case strings.HasPrefix(path, "/admin/"):
		return []string{"admin", "tenant-admin"}
	case strings.HasPrefix(path, "/webhooks"):
		return []string{"webhooks:write"}
	}
	return nil
}

// tagOf returns the tag of an operation: its first segment, "look" if it needs no scope but
// locks:read, or "operations".
func tagOf(path string, op *openapi2.Operation) string {
	first, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	scopes := []string{}
	if op.Security != nil {
		for _, requirement := range *op.Security {
			scopes = append(scopes, requirement[securityScheme]...)
		}
	}
	switch {
	case slices.Equal(scopes, []string{"locks:read"}):
		return "look"
	case slices.Contains([]string{"locks", "locksets", "webhooks", "admin"}, first):
		return first
	}
	return "operations"
}
