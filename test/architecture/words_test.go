package architecture_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// instead says which word the code has for what these would name: docs/internals/vocabulary.md.
func instead() map[string]string {
	return map[string]string{
		"ambiguous": "unknown outcome", "maybe": "unknown outcome", "unclear": "unknown outcome",
		"verdict": "what was found or decided", "judge": "detect, decide", "condemned": "rejected",
		"objection": "refusal", "inquiry": "question",
		"patience": "timeout or linger", "standing": "confirmed, closure, place", "stranger": "anonymous",
		"shelf": "store", "truth": "what the store has", "crew": "holders", "play": "simulate",
		"cashier": "price", "crowd": "what there is too much of",
		"ring": "cycle, contradiction; of a buffer, ring buffer",
	}
}

// allowed are the words above where they are the field's own.
func allowed() []string {
	return []string{
		"service/events ring", "service/view ring", "auth ring", // buffers that go round
		"service/events Ring", "service/view Ring",
	}
}

// TestWords: a declared name is made of words that the vocabulary has.
func TestWords(t *testing.T) {
	for _, dir := range []string{
		"api", "audit", "auth", "cmd", "handlers", "lock", "service", "store", "telemetry", "webhook",
	} {
		err := filepath.WalkDir(
			filepath.Join("..", "..", dir),
			func(path string, d fs.DirEntry, err error) error {
				if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") ||
					strings.HasSuffix(path, "_test.go") {
					return err
				}
				for name, at := range declared(t, path) {
					for _, word := range wordsOf(name) {
						folder, _ := filepath.Rel(filepath.Join("..", ".."), filepath.Dir(path))
						if better := instead()[strings.ToLower(word)]; better != "" &&
							!slices.Contains(allowed(), folder+" "+word) {
							t.Errorf("%s: %s says %q, for which the vocabulary has: %s", at, name, word, better)
						}
					}
				}
				return nil
			},
		)
		if err != nil {
			t.Fatal(err)
		}
	}
}

// declared are the names that a file declares, with where.
func declared(t *testing.T, path string) map[string]token.Position {
	t.Helper()
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]token.Position{}
	add := func(ids ...*ast.Ident) {
		for _, id := range ids {
			names[id.Name] = files.Position(id.Pos())
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			add(n.Name)
		case *ast.TypeSpec:
			add(n.Name)
		case *ast.ValueSpec:
			add(n.Names...)
		case *ast.Field:
			add(n.Names...)
		}
		return true
	})
	return names
}

// wordsOf splits a name where its words begin: maxTenantCycles is max, Tenant, Cycles.
func wordsOf(name string) (words []string) {
	begin := 0
	for i, r := range name {
		if i > begin && unicode.IsUpper(r) {
			words = append(words, name[begin:i])
			begin = i
		}
	}
	return append(words, name[begin:])
}
