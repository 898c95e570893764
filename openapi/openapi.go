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

// DocumentUnder is [Document] of a server that a proxy publishes under a base path; "" is the root.
func DocumentUnder(base string) []byte {
	return bytes.Replace(document, []byte(`"url": "/"`), []byte(`"url": "`+base+`/"`), 1)
}
