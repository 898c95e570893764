package main

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

const (
	deepest   = 4   // level of an answer that is shown in an example
	lineWidth = 100 // characters
)

// streams reports whether an operation answers with messages.
func streams(op *openapi3.Operation) bool {
	ok := op.Responses.Status(200)
	return ok != nil && ok.Value.Content["text/event-stream"] != nil
}

// answer returns the example of what an operation answers first, or "" if that has no body.
func (r *reference) answer(op *openapi3.Operation) string {
	for _, status := range []int{200, 201, 202} {
		if ok := op.Responses.Status(status); ok != nil && ok.Value.Content[jsonType] != nil {
			return compact(sample(ok.Value.Content[jsonType].Schema.Value, "", 0))
		}
	}
	return ""
}

// sample returns a value of a schema: with the fields that are always there, and their examples.
func sample(s *openapi3.Schema, name string, level int) any {
	switch {
	case name == "tenant": // as in the requests
		return "demo"
	case s.Example != nil:
		return s.Example
	case len(s.OneOf) > 0:
		return sample(s.OneOf[0].Value, name, level)
	case len(s.AllOf) > 0:
		return sample(s.AllOf[0].Value, name, level)
	case len(s.Enum) > 0:
		return s.Enum[0]
	case s.Type.Is(openapi3.TypeArray):
		if level >= deepest {
			return []any{}
		}
		return []any{sample(s.Items.Value, name, level+1)}
	case s.Type.Is(openapi3.TypeObject):
		return sampleObject(s, level)
	}
	return sampleWord(s, name)
}

func sampleObject(s *openapi3.Schema, level int) any {
	object := map[string]any{}
	for _, name := range s.Required {
		object[name] = sample(s.Properties[name].Value, name, level+1)
	}
	return object
}

func sampleWord(s *openapi3.Schema, name string) any {
	switch {
	case s.Type.Is(openapi3.TypeBoolean):
		return false
	case s.Type.Is(openapi3.TypeString) && s.Format == "date-time":
		return "2026-01-02T15:04:05.000Z"
	case s.Type.Is(openapi3.TypeString) && name == "token":
		return "fp1_OVAfn8…"
	case s.Type.Is(openapi3.TypeString):
		return "…"
	case s.Min != nil:
		return *s.Min
	}
	return 0
}

// compact returns a value as JSON, its lines broken after commas.
func compact(value any) string {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil {
		return ""
	}
	return wrap(strings.Split(strings.TrimSpace(text.String()), `,"`))
}

// wrap joins members of a JSON text to lines.
func wrap(members []string) string {
	var lines []string
	line := members[0]
	for _, member := range members[1:] {
		if line += ","; len(line)+len(member) > lineWidth {
			lines, line = append(lines, line), " "
		}
		line += `"` + member
	}
	return strings.Join(append(lines, line), "\n")
}
