// Generate writes openapi.json from the annotations of package handlers, and
// from the types of package api that they name, docs/reference/errors.md from its table of
// codes, and docs/reference/api.md from openapi.json. It is run by go generate in the folder of
// package openapi.
//
// swag turns annotations into Swagger 2.0, kin-openapi turns that into OpenAPI
// 3.0, and what the older format cannot say is added here, by rules that hold for
// every operation. A description that is not valid, or that leaves something
// without a word of explanation, is not written.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"

	"github.com/getkin/kin-openapi/openapi3"
)

const (
	handlers = "../handlers" // whose annotations are read
	types    = "../api"      // that they name
	general  = "doc.go"      // with the annotations about the whole
	target   = "openapi.json"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

func run() error {
	text, err := generate(general, handlers, types)
	if err != nil {
		return err
	}
	if err := os.WriteFile(target, text, 0o644); err != nil { //nolint:gosec // it is no secret
		return err
	}
	for name, write := range pages(text) {
		page, err := write()
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err := os.WriteFile(name, page, 0o644); err != nil { //nolint:gosec // it is no secret
			return err
		}
	}
	return nil
}

// pages returns what writes the pages of the reference, by their names. The document is text.
func pages(text []byte) map[string]func() ([]byte, error) {
	return map[string]func() ([]byte, error){
		errorsPage: writeErrors,
		referencePage: func() ([]byte, error) {
			doc, err := openapi3.NewLoader().LoadFromData(text)
			if err != nil {
				return nil, err
			}
			return writeReference(doc)
		},
	}
}

// generate returns the document that the annotations of folders make.
func generate(general string, folders ...string) ([]byte, error) {
	old, err := parse(folders, general)
	if err != nil {
		return nil, err
	}
	doc, err := convert(old)
	if err != nil {
		return nil, err
	}
	text, err := format(doc)
	if err != nil {
		return nil, err
	}
	return text, check(text)
}

// format returns the document for people to read: indented, in the order of the
// names, and with < and > as they are.
func format(doc *openapi3.T) ([]byte, error) {
	text, err := json.Marshal(doc)
	if err != nil {
		return nil, err
	}
	var plain any
	if err := json.Unmarshal(text, &plain); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err = e.Encode(plain)
	return out.Bytes(), err
}
