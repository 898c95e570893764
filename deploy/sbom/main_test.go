package main

import (
	"bytes"
	"encoding/json"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
)

func TestNames(t *testing.T) {
	t.Parallel()
	for m, want := range map[debug.Module]string{
		{Path: "example.com/a", Version: "v1.2.3"}:              "pkg:golang/example.com/a@v1.2.3",
		{Path: "example.com/a", Version: "v2.0.0+incompatible"}: "pkg:golang/example.com/a@v2.0.0%2Bincompatible",
		{Path: "example.com/a", Version: "(devel)"}:             "pkg:golang/example.com/a",
	} {
		if got := module("library", m).PURL; got != want {
			t.Errorf("%v: %s, want %s", m, got, want)
		}
	}
}

// TestOfThisTest: a test's own program is one that the go command has made.
func TestOfThisTest(t *testing.T) {
	t.Parallel()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var first, second bytes.Buffer
	if err := run([]string{program}, &first); err != nil {
		t.Fatal(err)
	}
	if err := run([]string{program}, &second); err != nil || !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Errorf("the second time it is another: %v", err)
	}
	var d document
	if err := json.Unmarshal(first.Bytes(), &d); err != nil {
		t.Fatal(err)
	}
	library := "pkg:golang/stdlib@" + runtime.Version()
	has := func(c component) bool { return strings.HasPrefix(c.PURL, library) }
	if d.Format != "CycloneDX" || d.Spec != "1.6" || !strings.HasPrefix(d.Metadata.Component.PURL, "pkg:golang/github.com/fencepost/fencepost") || !slices.ContainsFunc(d.Components, has) {
		t.Errorf("%s", first.Bytes())
	}
}

func TestOfNoProgram(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{nil, {"main.go"}, {"nothing"}, {"a", "b"}, {"a", "b", "c"}} {
		if err := run(args, &bytes.Buffer{}); err == nil {
			t.Errorf("%q: no error", args)
		}
	}
}
