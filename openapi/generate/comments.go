package main

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"strings"

	"github.com/getkin/kin-openapi/openapi2"
)

// describeTypes takes the doc comments of types as the descriptions of their
// schemas. swag reads those of fields only.
func describeTypes(folder string, schemas map[string]*openapi2.SchemaRef) error {
	comments, err := typeComments(folder)
	if err != nil {
		return err
	}
	for name, schema := range schemas {
		if schema.Value != nil && schema.Value.Description == "" {
			schema.Value.Description = comments[name]
		}
	}
	return nil
}

// typeComments returns the doc comments of a package's types by their names.
func typeComments(folder string) (map[string]string, error) {
	files := token.NewFileSet()
	entries, err := fs.Glob(os.DirFS(folder), "*.go")
	if err != nil {
		return nil, err
	}
	var parsed []*ast.File
	for _, name := range entries {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(files, folder+"/"+name, nil, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		parsed = append(parsed, file)
	}
	pkg, err := doc.NewFromFiles(files, parsed, folder)
	if err != nil {
		return nil, err
	}
	comments := make(map[string]string, len(pkg.Types))
	for _, t := range pkg.Types {
		comments[t.Name] = t.Doc
	}
	return comments, nil
}
