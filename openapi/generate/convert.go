package main

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi2"
	"github.com/getkin/kin-openapi/openapi2conv"
	"github.com/getkin/kin-openapi/openapi3"
)

// convert turns Swagger 2.0 into OpenAPI 3.0 and adds what the former cannot say.
func convert(old *openapi2.T) (*openapi3.T, error) {
	doc, err := openapi2conv.ToV3(old)
	if err != nil {
		return nil, fmt.Errorf("convert to OpenAPI 3: %w", err)
	}
	doc.Info.Contact = nil                     // swag leaves an empty one
	doc.Servers = openapi3.Servers{{URL: "/"}} // the host that the document came from
	doc.Components.SecuritySchemes = securitySchemes()
	doc.Components.Headers = headers()
	for name, schema := range doc.Components.Schemas {
		improveSchema(name, schema.Value)
	}
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			if err := improveOperation(doc, method, path, op); err != nil {
				return nil, fmt.Errorf("%s: %w", op.OperationID, err)
			}
		}
	}
	return doc, nil
}

const securityScheme = "bearer" // as the annotations call it

func securitySchemes() openapi3.SecuritySchemes {
	scheme := openapi3.NewJWTSecurityScheme()
	scheme.Description = "A JWT with the claims `sub`, `tenant`, `scope` and `exp`. The optional claim `locks` limits it to name patterns."
	return openapi3.SecuritySchemes{securityScheme: {Value: scheme}}
}

func improveOperation(doc *openapi3.T, method, path string, op *openapi3.Operation) error {
	tagged := polled(method, op)
	if tagged {
		addTags(op)
	}
	describeScopes(op)
	for _, p := range op.Parameters {
		improveParameter(p.Value)
		improveOf(op.OperationID, p.Value)
	}
	if op.RequestBody != nil {
		if err := improveBody(doc, op.RequestBody.Value); err != nil {
			return err
		}
	}
	addCommon(method, path, op)
	addCallbacks(op)
	if err := improveResponses(doc, op); err != nil || !tagged {
		return err
	}
	for _, status := range []int{http.StatusOK, http.StatusNotModified} {
		addTagHeader(doc, op.Responses.Status(status).Value)
	}
	return nil
}

// describeScopes says in words which scopes the annotations ask for: OpenAPI 3.0
// allows scopes to OAuth alone.
func describeScopes(op *openapi3.Operation) {
	if op.Security == nil {
		return
	}
	var scopes []string
	for _, requirement := range *op.Security {
		scopes = append(scopes, requirement[securityScheme]...)
	}
	op.Security = openapi3.NewSecurityRequirements().With(
		openapi3.NewSecurityRequirement().Authenticate(securityScheme),
	)
	if len(scopes) > 0 {
		slices.Sort(scopes)
		op.Description = strings.TrimSpace(
			op.Description + "\n\nNeeds the scope " + alternatives(scopes) + ".",
		)
	}
}

// alternatives lists words as code, with an or before the last.
func alternatives(words []string) string {
	last := len(words) - 1
	if last == 0 {
		return "`" + words[0] + "`"
	}
	return "`" + strings.Join(words[:last], "`, `") + "` or `" + words[last] + "`"
}

// What texts may be, for which swag has no attribute. Package lock and the service
// check it.
const (
	lockName  = `^[A-Za-z0-9][A-Za-z0-9._:@=+-]{0,199}$`
	lockToken = `^fp1_[A-Za-z0-9_-]{64}$`
	entryID   = `^[0-9a-hjkmnp-tv-z]{26}$`
	// or a gap between two events
	deliveryID  = `^([A-Za-z0-9-]{1,48}|[0-9]{1,16}-[0-9]{1,10}_[0-9]{1,16}-[0-9]{1,10})$`
	receiverURL = `^https?://[!-~]+$`
	namePattern = `^[A-Za-z0-9._:@=+-]*(\*[A-Za-z0-9._:@=+-]*)?$`
	tenantName  = `^[a-z0-9][a-z0-9-]{0,62}$`
	oneLine     = `^[^\u0000-\u001F\u007F-\u009F\u061C\u200E\u200F\u2028-\u202E\u2066-\u2069]*$`
	textValue   = `^[^\u0000-\u0008\u000B\u000C\u000E-\u001F\u007F-\u009F]*$`
)

// improveOf adds the patterns that one operation alone has: what else may stand in the place of
// a subscription's id, which deliveries there are, and what an identity provider gives.
func improveOf(operation string, p *openapi3.Parameter) {
	switch {
	case operation == "finishSignIn": // RFC 6749, appendix A
		p.Schema.Value.Pattern = `^[ -~]*$`
	case p.Name == "delivery":
		p.Schema.Value.Pattern, p.Example = deliveryID, "1042-1"
	case p.Name == "id" && slices.Contains(
		[]string{"listDeliveries", "redeliver", "listAnyDeliveries", "redeliverAny"}, operation,
	):
		p.Schema.Value.Pattern = `^([0-9a-hjkmnp-tv-z]{26}|callbacks)$`
	}
}

// improveParameter adds the patterns.
func improveParameter(p *openapi3.Parameter) {
	s := p.Schema.Value
	improveNumbers(s)
	switch p.In + " " + p.Name {
	case "path name":
		s.Pattern, p.Example = lockName, "orders:42"
	case "path id":
		s.Pattern, p.Example = entryID, "5mdrk1w5pvy0wg1dcjt2b2gthr"
	case "header Lock-Token":
		s.Pattern = lockToken
	case "path code":
		s.Pattern, p.Example = `^[a-z_]{1,64}$`, "lock_held"
	case "query prefix":
		s.Pattern = `^([A-Za-z0-9][A-Za-z0-9._:@=+-]{0,199})?$`
	case "query cursor":
		s.Pattern, s.MaxLength = `^[A-Za-z0-9_-]+$`, openapi3.Ptr(uint64(460))
	case "query name", "query lock":
		s.Pattern, p.Example = lockName, "orders:42"
	case "query search":
		s.Pattern, s.MaxLength, p.Example = `^[A-Za-z0-9._:@=+*-]*$`, openapi3.Ptr(uint64(200)), "orders"
	case "query holder":
		s.Pattern, s.MaxLength, p.Example = oneLine, openapi3.Ptr(uint64(200)), "worker-7"
	case "query operator":
		s.Pattern, s.MinLength, s.MaxLength = oneLine, 1, openapi3.Ptr(uint64(200))
		p.Example = "ops@example.org"
	case "query reason":
		s.Pattern, s.MinLength, s.MaxLength, p.Example = oneLine, 10, openapi3.Ptr(
			uint64(500),
		), "its node was lost in the fire"
	case "path tenant":
		s.Pattern, p.Example = tenantName, "acme"
	case "query tenant":
		s.Pattern = tenantName
	case "header Last-Event-ID":
		s.Pattern, p.Example = `^[0-9]{1,16}-[0-9]{1,10}$`, "1042-1"
	case "query since":
		s.Pattern, p.Example = `^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]{5,18}([Zz]|[+-][0-9]{2}:[0-9]{2})$`, "2026-01-02T15:04:05Z"
	case "query types":
		s.Pattern, p.Example = `^[a-z_.]+(,[a-z_.]+)*$`, "lock.acquired,lock.expired"
	case "query locks":
		s.Pattern, p.Example = `^[A-Za-z0-9._:@=+*-]+(,[A-Za-z0-9._:@=+*-]+)*$`, "orders:*"
	case "header Idempotency-Key":
		s.Pattern = `^[ -~]+$`
	case "header Prefer":
		s.Pattern, p.Example = `^[ -~]*$`, "respond-async"
	}
}
