package main

import (
	"os"
	"path/filepath"
	"testing"
)

func TestPublishReplacesTheTableOfItsRowsOnly(t *testing.T) {
	const document = "# Speed\n<!-- bench -rows peers -->\nold\n<!-- end -->\ntext\n" +
		"<!-- bench -rows stress -->\nkept\n<!-- end -->\n"
	file := filepath.Join(t.TempDir(), "performance.md")
	if err := os.WriteFile(file, []byte(document), 0o600); err != nil {
		t.Fatal(err)
	}
	p := published{file, "<!-- bench -rows peers -->"}
	for range 2 {
		if err := p.write("| new |\n"); err != nil {
			t.Fatal(err)
		}
	}
	const want = "# Speed\n<!-- bench -rows peers -->\n\n| new |\n\n<!-- end -->\ntext\n" +
		"<!-- bench -rows stress -->\nkept\n<!-- end -->\n"
	if got, err := os.ReadFile(file); err != nil || string(got) != want {
		t.Errorf("%v: %s", err, got)
	}
	if err := (published{file, "<!-- bench -rows S4 -->"}).write(""); err == nil {
		t.Error("a table is written into a document without a place for it")
	}
}
