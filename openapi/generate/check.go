package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// check reads the document as a client would: it must be valid, its examples
// and defaults too, and nothing in it may go without an explanation.
func check(text []byte) error {
	doc, err := openapi3.NewLoader().LoadFromData(text)
	if err != nil {
		return fmt.Errorf("read the document: %w", err)
	}
	ctx := context.Background()
	if err := doc.Validate(
		ctx, openapi3.EnableExamplesValidation(), openapi3.EnableSchemaFormatValidation(),
	); err != nil {
		return fmt.Errorf("the document is not valid: %w", err)
	}
	return errors.Join(slices.Concat(silentOperations(doc), silentSchemas(doc), longTexts(doc))...)
}

const (
	maxSentences = 2
	maxWords     = 25 // of a sentence
)

// isLong reports whether a description has more than two short sentences. The scopes do not count.
func isLong(text string) bool {
	first, _, _ := strings.Cut(text, "\n\n")
	sentences := strings.Split(first, ". ")
	return len(sentences) > maxSentences || slices.ContainsFunc(sentences, func(s string) bool {
		return len(strings.Fields(s)) > maxWords
	})
}

func longTexts(doc *openapi3.T) (errs []error) {
	check := func(where, text string) {
		if isLong(text) {
			errs = append(errs, fmt.Errorf("%s is described in more than %d sentences of %d words: %s",
				where, maxSentences, maxWords, text))
		}
	}
	for _, item := range doc.Paths.Map() {
		for _, op := range item.Operations() {
			check(op.OperationID, op.Description)
			for _, p := range op.Parameters {
				check(op.OperationID+" "+p.Value.Name, p.Value.Description)
			}
			for status, answer := range op.Responses.Map() {
				check(op.OperationID+" "+status, *answer.Value.Description)
			}
		}
	}
	for name, schema := range doc.Components.Schemas {
		check(name, schema.Value.Description)
		for property, p := range schema.Value.Properties {
			check(name+"."+property, p.Value.Description)
		}
	}
	return errs
}

func silentOperations(doc *openapi3.T) (errs []error) {
	for _, path := range doc.Paths.InMatchingOrder() {
		for method, op := range doc.Paths.Value(path).Operations() {
			if op.Description == "" && !isRest(op) {
				errs = append(errs, fmt.Errorf("%s %s needs @Description", method, path))
			}
			if op.OperationID == "" || op.Summary == "" || len(op.Tags) != 1 || doc.Tags.Get(
				op.Tags[0],
			) == nil {
				errs = append(errs, fmt.Errorf("%s %s needs @Summary and one of the known @Tags", method, path))
			}
		}
	}
	return errs
}

func silentSchemas(doc *openapi3.T) (errs []error) {
	for _, name := range slices.Sorted(maps.Keys(doc.Components.Schemas)) {
		schema := doc.Components.Schemas[name].Value
		if schema.Description == "" {
			errs = append(errs, fmt.Errorf("%s needs a doc comment", name))
		}
		for _, property := range slices.Sorted(maps.Keys(schema.Properties)) {
			if p := schema.Properties[property]; p.Ref != "" || p.Value.Description == "" {
				errs = append(errs, fmt.Errorf("%s.%s needs a doc comment", name, property))
			}
		}
	}
	return errs
}
