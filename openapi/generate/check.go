package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

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
	return errors.Join(append(silentOperations(doc), silentSchemas(doc)...)...)
}

func silentOperations(doc *openapi3.T) (errs []error) {
	for _, path := range doc.Paths.InMatchingOrder() {
		for method, op := range doc.Paths.Value(path).Operations() {
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
