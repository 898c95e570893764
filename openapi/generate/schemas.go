package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// improveSchema makes a Go type a schema for everybody.
func improveSchema(name string, s *openapi3.Schema) {
	s.Description = phrase(s.Description, name)
	for property, ref := range s.Properties {
		if ref.Ref != "" {
			continue
		}
		ref.Value.Description = phrase(ref.Value.Description, property)
		improveNumbers(ref.Value)
		switch {
		case ref.Value.Format == "date-time":
			ref.Value.Pattern = `\.\d{3}Z$`
		case property == "metadata":
			ref.Value.MaxProps = openapi3.Ptr(uint64(16))
		case name == "LockSetBody" && property == "locks":
			ref.Value.MinItems, ref.Value.MaxItems = 1, openapi3.Ptr(uint64(32))
		}
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
		s := ref.Value
		body.Required = len(s.Required) > 0
		s.AdditionalProperties = openapi3.AdditionalProperties{Has: openapi3.Ptr(false)}
		for property, p := range s.Properties {
			if !slices.Contains(s.Required, property) && p.Ref == "" {
				allowNull(p.Value)
			}
		}
	}
	return nil
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
