package main

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"path/filepath"
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
	parsed, err := parseFolder(files, folder)
	if err != nil {
		return nil, err
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

// parseFolder parses the Go files in a folder, but for tests.
func parseFolder(files *token.FileSet, folder string) (parsed []*ast.File, err error) {
	names, err := filepath.Glob(folder + "/*.go")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(files, name, nil, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		parsed = append(parsed, file)
	}
	return parsed, nil
}

// routes returns the names of the functions in a folder by the routes in their doc comments.
func routes(folder string) (map[string]string, error) {
	parsed, err := parseFolder(token.NewFileSet(), folder)
	if err != nil {
		return nil, err
	}
	names := map[string]string{}
	for _, file := range parsed {
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Doc == nil {
				continue
			}
			for _, line := range f.Doc.List {
				if route, ok := strings.CutPrefix(line.Text, "// @Router"); ok {
					names[strings.TrimSpace(route)] = f.Name.Name
				}
			}
		}
	}
	return names, nil
}
