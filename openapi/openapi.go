package openapi

import (
	"bytes"
	_ "embed"
)

//go:generate go run ./generate

//go:embed openapi.json
var document []byte

// Document returns a copy of the description of the HTTP interface, as JSON.
func Document() []byte { return bytes.Clone(document) }
