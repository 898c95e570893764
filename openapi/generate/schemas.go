package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// membersOf returns the schemas that a union is one of, by the value's state. In Go they are the
// fields of a struct.
func membersOf(union string) []string {
	switch union {
	case "Entry":
		return []string{"HeldEntry", "WaitingEntry"}
	case "Set":
		return []string{"HeldSet", "WaitingSet"}
	}
	return nil
}

// unite makes a schema one of others.
func unite(s *openapi3.Schema, members []string) {
	s.Type, s.Properties, s.Required = nil, nil, nil
	s.Discriminator = &openapi3.Discriminator{
		PropertyName: "state", Mapping: map[string]openapi3.MappingRef{},
	}
	for i, state := range []string{"held", "waiting"} {
		ref := "#/components/schemas/" + members[i]
		s.OneOf = append(s.OneOf, openapi3.NewSchemaRef(ref, nil))
		s.Discriminator.Mapping[state] = openapi3.MappingRef{Ref: ref}
	}
}

// improveSchema makes a Go type a schema for clients.
func improveSchema(name string, s *openapi3.Schema) {
	s.Description = phrase(s.Description, name)
	if members := membersOf(name); members != nil {
		unite(s, members)
	}
	for property, ref := range s.Properties {
		if ref.Ref != "" {
			continue
		}
		ref.Value.Description = phrase(ref.Value.Description, property)
		improveNumbers(ref.Value)
		switch {
		case ref.Value.Format == "date-time": // what we write has milliseconds
			ref.Value.Pattern = `\.\d{3}Z$`
		case property == "metadata":
			ref.Value.MaxProps = openapi3.Ptr(uint64(16))
			ref.Value.AdditionalProperties.Schema.Value.MaxLength = openapi3.Ptr(uint64(2048))
			ref.Value.AdditionalProperties.Schema.Value.Pattern = textValue
		case property == "name":
			ref.Value.Pattern = lockName
		case property == "callback_url":
			ref.Value.Pattern = receiverURL
		case property == "token":
			ref.Value.Pattern = lockToken
		case property == "id" && name == "Delivery", property == "delivery":
			ref.Value.Pattern = deliveryID
		case property == "id" && name == "AuditWebhook": // callbacks, too, and what could not be read
			ref.Value.Pattern = lockName
		case property == "id" && name == "Event":
			ref.Value.Pattern = deliveryID
		case property == "id":
			ref.Value.Pattern = entryID
		case (property == "holder" || property == "description") && ref.Value.MaxLength != nil:
			ref.Value.Pattern = oneLine
		case name == "LockSetBody" && property == "locks":
			ref.Value.MinItems, ref.Value.MaxItems = 1, openapi3.Ptr(uint64(32))
		case strings.HasPrefix(name, "Webhook"):
			improveWebhook(property, ref.Value)
		}
	}
}

// improveWebhook says what the fields of subscriptions may be.
func improveWebhook(property string, s *openapi3.Schema) {
	switch property {
	case "url":
		s.Pattern = receiverURL
	case "locks":
		s.Pattern = namePattern
	case "events":
		s.MinItems = 1
	}
}

// phrase makes a doc comment a description: in one line, and about the name that
// a client knows.
func phrase(comment, name string) string {
	text := strings.Join(strings.Fields(comment), " ")
	first, rest, _ := strings.Cut(text, " ")
	if strings.Contains(name, "_") && strings.EqualFold(first, strings.ReplaceAll(name, "_", "")) {
		return "`" + name + "` " + rest
	}
	return text
}

// improveNumbers says how many bits a number has, where the annotations do not:
// fences and revisions are 64 bits wide and say so, the rest are counts.
func improveNumbers(s *openapi3.Schema) {
	switch {
	case s.Format != "":
	case s.Type.Is(openapi3.TypeInteger):
		s.Format = "int32"
	case s.Type.Is(openapi3.TypeNumber):
		s.Format = "double"
	}
}

// improveBody says how strictly the server reads a body: a field that it does not
// know is refused, null is the same as leaving an optional field out, and no body
// is the same as an empty object.
func improveBody(doc *openapi3.T, body *openapi3.RequestBody) error {
	delete(body.Extensions, "x-originalParamName")
	for _, media := range body.Content {
		name := strings.TrimPrefix(media.Schema.Ref, "#/components/schemas/")
		ref, found := doc.Components.Schemas[name]
		if !found {
			return fmt.Errorf("the body has no schema of its own")
		}
		body.Required = len(ref.Value.Required) > 0
		closeForRequests(doc, ref.Value)
		media.Examples = examples(name)
	}
	return nil
}

// closeForRequests does it for an object of a body and for those in it.
func closeForRequests(doc *openapi3.T, s *openapi3.Schema) {
	s.AdditionalProperties = openapi3.AdditionalProperties{Has: openapi3.Ptr(false)}
	for property, p := range s.Properties {
		if p.Value != nil && p.Value.Items != nil && p.Value.Items.Ref != "" {
			closeForRequests(
				doc,
				doc.Components.Schemas[strings.TrimPrefix(p.Value.Items.Ref, "#/components/schemas/")].Value,
			)
		}
		if !slices.Contains(s.Required, property) && p.Ref == "" {
			allowNull(p.Value)
		}
	}
	if s.Properties["mode"] != nil && s.Properties["limit"] != nil {
		s.Not = limitWithoutSemaphore()
	}
}

// limitWithoutSemaphore is what no claim may be: one with a limit in another mode, or
// a semaphore without one.
func limitWithoutSemaphore() *openapi3.SchemaRef {
	without := openapi3.NewObjectSchema().WithRequired([]string{"limit"}).
		WithProperty("limit", openapi3.NewIntegerSchema()).
		WithProperty(
			"mode", openapi3.NewStringSchema().WithEnum("exclusive", "shared", nil).WithNullable(),
		)
	semaphore := openapi3.NewObjectSchema().WithRequired([]string{"mode"}).
		WithProperty("limit", openapi3.NewIntegerSchema().WithEnum(nil).WithNullable()).
		WithProperty("mode", openapi3.NewStringSchema().WithEnum("semaphore"))
	return openapi3.NewAnyOfSchema(without, semaphore).NewRef()
}

// examples are of bodies that the examples of their fields cannot make: they would be a limit
// without a semaphore, or a token next to a code.
func examples(name string) openapi3.Examples {
	all := map[string]map[string]any{
		"AcquireBody": {
			"exclusive": map[string]any{
				"ttl_seconds": 30, "wait_seconds": 20, "holder": "worker-7",
				"metadata": map[string]any{"job": "nightly"},
			},
			"semaphore": map[string]any{"mode": "semaphore", "limit": 3, "ttl_seconds": 30},
		},
		"SessionBody": {
			"token": map[string]any{"bearer_token": "eyJhbGciOiJIUzI1NiJ9.e30.c2lnbmVk"},
			"code":  map[string]any{"code": "JBSWY3DPEHPK3PXPJBSWY3DPEH"},
		},
		"LockSetBody": {
			"two locks": map[string]any{
				"locks": []any{
					map[string]any{"name": "orders:42"}, map[string]any{"name": "stock:7", "mode": "shared"},
				},
				"ttl_seconds": 30, "wait_seconds": 20, "holder": "worker-7",
			},
		},
	}
	out := openapi3.Examples{}
	for title, value := range all[name] {
		out[title] = &openapi3.ExampleRef{Value: openapi3.NewExample(value)}
	}
	return out
}

func allowNull(s *openapi3.Schema) {
	if s.Nullable {
		return
	}
	s.Nullable = true
	if len(s.Enum) > 0 {
		s.Enum = append(s.Enum, nil)
	}
}
