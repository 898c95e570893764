package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestFaults: a vector that failed, or that a report does not have, is a fault with its name.
func TestFaults(t *testing.T) {
	report := filepath.Join(t.TempDir(), "report")
	lines := "held\tok\ntwice\tfailed\ntwice\tok\nlost\tfailed\n"
	if err := os.WriteFile(report, []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	outcomes, err := readReport(report)
	if err != nil {
		t.Fatal(err)
	}
	vectors := []file{{"renew", []string{"held", "lost", "gone", "twice"}}}
	table := table{vectors: vectors, columns: []column{{"java", outcomes, 0}}}
	got := errors.Join(table.faults()...).Error()
	want := "java: lost failed\njava: gone did not run\njava: twice failed"
	if got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	var out strings.Builder
	if err := table.print(&out); err != nil || !strings.Contains(out.String(), "renew    1/4") {
		t.Errorf("the table is\n%s", out.String())
	}
}
