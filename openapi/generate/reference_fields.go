package main

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

func mapKeys[V any](m map[string]V) iter.Seq[string] { return maps.Keys(m) }

// explained are parameters that the head of the page explains, and the parts of a path.
func explained(p *openapi3.Parameter) bool {
	return p.In == "path" || slices.Contains(
		[]string{"cursor", "If-None-Match", "Lock-Token"}, p.Name,
	) || p.In == "query" && !p.Required && slices.Contains([]string{"tenant", "reason"}, p.Name)
}

// fields writes the parameters and the fields of the body.
func (r *reference) fields(op *openapi3.Operation) {
	var rows []string
	for _, p := range op.Parameters {
		if p := p.Value; !explained(p) {
			name := fmt.Sprintf("`%s` %s", p.Name, p.In)
			rows = append(rows, row(name, p.Schema.Value, p.Required, p.Description))
		}
	}
	if op.RequestBody != nil {
		rows = append(rows, bodyRows(op.RequestBody.Value.Content[jsonType].Schema.Value)...)
	}
	r.table(op.Summary, rows)
}

// table writes the rows that no operation before has, and where the others are.
func (r *reference) table(heading string, rows []string) {
	var fresh, known []string
	where := ""
	for _, row := range rows {
		if before := r.rows[row]; before == "" || where != "" && before != where {
			fresh, r.rows[row] = append(fresh, row), cmp.Or(before, heading)
		} else {
			known, where = append(known, strings.Split(row, " | ")[0][2:]), before
		}
	}
	if len(fresh) > 0 {
		fmt.Fprintf(r, "| | | |\n| --- | --- | --- |\n%s\n", strings.Join(fresh, ""))
	}
	if len(known) > 0 {
		fmt.Fprintf(r, "As in [%s](#%s): %s.\n\n", where, anchor(where), strings.Join(known, ", "))
	}
}

// bodyRows has the required fields first.
func bodyRows(s *openapi3.Schema) (rows []string) {
	for _, required := range []bool{true, false} {
		for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
			if slices.Contains(s.Required, name) == required {
				p := s.Properties[name].Value
				rows = append(rows, row("`"+name+"`", p, required, p.Description))
			}
		}
	}
	return rows
}

func row(name string, s *openapi3.Schema, required bool, description string) string {
	return fmt.Sprintf("| %s | %s | %s |\n", name, kind(s, required), description)
}

// kind says in a few words what a value can be.
func kind(s *openapi3.Schema, required bool) string {
	var words []string
	switch {
	case len(s.Enum) > 0:
		words = append(words, values(s.Enum))
	case len(s.AllOf) > 0:
		words = append(words, "object")
	case s.Items != nil:
		words = append(words, "list")
	case s.Type != nil:
		words = append(words, s.Type.Slice()...)
	}
	if s.Min != nil && s.Max != nil {
		words = append(words, number(*s.Min)+" to "+number(*s.Max))
	}
	if s.Default != nil {
		words = append(words, fmt.Sprintf("default `%v`", s.Default))
	}
	if required {
		words = append(words, "required")
	}
	return strings.Join(words, ", ")
}

func values(enum []any) string {
	var words []string
	for _, value := range enum {
		if value != nil {
			words = append(words, fmt.Sprintf("`%v`", value))
		}
	}
	return strings.Join(words, " ")
}

func number(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }

// answers writes the statuses that the head of the page does not explain.
func (r *reference) answers(op *openapi3.Operation) {
	var parts []string
	for _, status := range slices.Sorted(maps.Keys(op.Responses.Map())) {
		answer := op.Responses.Value(status).Value
		codes, failed := answer.Extensions[problemCodes].([]any)
		switch {
		case status == "304", *answer.Description == "OK":
		case !failed:
			parts = append(parts, fmt.Sprintf("**%s** %s", status, *answer.Description))
		default:
			if own := ownCodes(codes); own != "" {
				parts = append(parts, "**"+status+"** "+own)
			}
		}
	}
	fmt.Fprintf(r, "%s\n", strings.Join(parts, " · "))
}

// ownCodes links the codes that not every operation has.
func ownCodes(codes []any) string {
	everywhere := []string{
		"invalid_request", "invalid_name", "unauthenticated", "forbidden", "body_too_large",
		"unsupported_media_type", "rate_limited", "overloaded", "internal", "store_unavailable",
		"draining", "fence_floor_required",
	}
	var own []string
	for _, code := range codes {
		if code := fmt.Sprint(code); !slices.Contains(everywhere, code) {
			own = append(own, fmt.Sprintf("[`%[1]s`](errors.md#%[1]s)", code))
		}
	}
	return strings.Join(own, ", ")
}
