package architecture_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestNothingIsLeftOfMerges: no document has both sides of a conflict, which nothing that builds
// notices.
func TestNothingIsLeftOfMerges(t *testing.T) {
	read := 0
	err := filepath.WalkDir(
		filepath.Join("..", ".."),
		func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir() && slices.Contains(unread(), d.Name()):
				return filepath.SkipDir
			case filepath.Ext(path) != ".md":
				return nil
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			read++
			for line := range strings.Lines(string(text)) {
				if strings.HasPrefix(line, "<<<<<<< ") || strings.HasPrefix(line, ">>>>>>> ") {
					t.Errorf("%s has the line %q", path, line)
				}
			}
			return nil
		},
	)
	if err != nil || read < 20 {
		t.Errorf("%d documents are read, %v", read, err)
	}
}

// TestGuaranteesNameTheirTests: each test that the page of guarantees names exists.
func TestGuaranteesNameTheirTests(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "concepts", "guarantees.md"))
	if err != nil {
		t.Fatal(err)
	}
	tests := texts(t, filepath.Join("..", "faults", "*_test.go"))
	named := regexp.MustCompile("`(Test[A-Za-z0-9]+)`").FindAllStringSubmatch(string(page), -1)
	for _, name := range named {
		if !strings.Contains(tests, "\nfunc "+name[1]+"(") {
			t.Errorf("guarantees.md names %s, which test/faults does not have", name[1])
		}
	}
	if len(named) < 20 {
		t.Errorf("guarantees.md names %d tests", len(named))
	}
}

// TestSpecificationNamesItsChecks: each seeded bug and each scenario of the explorer exists that
// the page of the specification names.
func TestSpecificationNamesItsChecks(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "internals", "spec", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	there := texts(t, filepath.Join("..", "mutants", "bugs_*.go")) +
		texts(t, filepath.Join("..", "simulation", "explore_table_test.go"))
	rows := regexp.MustCompile(`(?m)^\| [0-9]+ \| ([^|]+ \| [^|]+) \|`)
	named := rows.FindAllStringSubmatch(string(page), -1)
	for _, row := range named {
		for _, name := range regexp.MustCompile("`([a-z0-9-]+)`").FindAllStringSubmatch(row[1], -1) {
			if !strings.Contains(there, `"`+name[1]+`"`) {
				t.Errorf("spec/README.md names %s, which is not there", name[1])
			}
		}
	}
	if len(named) != 10 {
		t.Errorf("spec/README.md has rows for %d promises", len(named))
	}
}

// texts returns what all files of a pattern hold.
func texts(t *testing.T, pattern string) string {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	return all.String()
}

// TestUserPagesAreShort: the pages for users have 32 600 words, 2 000 a page. A word has a letter
// or a digit. The reference of the API, and what fencetest found, are generated.
func TestUserPagesAreShort(t *testing.T) {
	var pages []string
	total := 0
	// Without docs/internals, and CONTRIBUTING.md.
	for _, pattern := range []string{"[^C]*.md", "CHANGELOG.md", "docs/*.md", "docs/[^i]*/*.md"} {
		found, err := filepath.Glob(filepath.Join("..", "..", filepath.FromSlash(pattern)))
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, found...)
	}
	word := regexp.MustCompile(`\S*[\pL\d]\S*`)
	generated := regexp.MustCompile(`(?s)<!-- fencetest begin -->.*<!-- fencetest end -->`)
	for _, page := range pages {
		if filepath.Base(page) == "api.md" {
			continue
		}
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		words := len(word.FindAll(generated.ReplaceAll(text, nil), -1))
		if words > 2000 {
			t.Errorf("%s has %d words", page, words)
		}
		total += words
	}
	if total > 32600 || len(pages) < 30 {
		t.Errorf("%d pages have %d words", len(pages), total)
	}
	t.Logf("%d pages have %d words", len(pages), total)
}
