package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/google/go-cmp/cmp"
)

const sampleDir = "testdata/sample"

func TestGenerateSample(t *testing.T) {
	text, err := generate(sampleDir+"/sample.go", sampleDir)
	if err != nil {
		t.Fatal(err)
	}
	golden := filepath.Join("testdata", "sample.json")
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(text)); diff != "" {
		t.Errorf("generated (+), and %s (-); if it is right now, write it there:\n%s", golden, diff)
	}
}

// TestPages: the pages of the reference say what the server and its document say.
func TestPages(t *testing.T) {
	document, err := os.ReadFile(filepath.Join("..", target))
	if err != nil {
		t.Fatal(err)
	}
	for name, write := range pages(document) {
		want, err := write()
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join("..", name))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("%s is out of date; run make generate:\n%s", name, diff)
		}
	}
}

// TestDocumentIsExplained: each operation and field of the document has a short description, and
// each example fits its schema.
func TestDocumentIsExplained(t *testing.T) {
	document, err := os.ReadFile(filepath.Join("..", target))
	if err != nil {
		t.Fatal(err)
	}
	if err := check(document); err != nil {
		t.Error(err)
	}
	unfit := strings.Replace(string(document), `"example": "orders:42"`, `"example": "a/b"`, 1)
	if err := check([]byte(unfit)); err == nil {
		t.Error("an example that does not fit its schema is not refused")
	}
}

// TestEachOperationHasAnExample: a new operation cannot be left out of the page.
func TestEachOperationHasAnExample(t *testing.T) {
	doc := &openapi3.T{Paths: openapi3.NewPaths(openapi3.WithPath("/new", &openapi3.PathItem{
		Get: &openapi3.Operation{OperationID: "getNew", Tags: []string{"locks"}},
	}))}
	err := (&reference{doc: doc}).complete()
	if err == nil || !strings.Contains(err.Error(), "getNew needs an example") {
		t.Errorf("complete: %v", err)
	}
}

// The order of maps must not show.
func TestGenerateIsRepeatable(t *testing.T) {
	first, err := generate(sampleDir+"/sample.go", sampleDir)
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		if again, err := generate(
			sampleDir+"/sample.go", sampleDir,
		); err != nil || string(again) != string(first) {
			t.Fatalf("another result, %v:\n%s", err, cmp.Diff(string(first), string(again)))
		}
	}
}

func TestGenerateRefuses(t *testing.T) {
	source, err := os.ReadFile(sampleDir + "/sample.go")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ old, new, want string }{
		"no summary": {"// @Summary     Make a thing\n", "", "PUT /things/{name} needs @Summary"},
		"three sentences": {
			"	// Fence of it.\n", "	// Fence of it. One. Two.\n", "more than 2 sentences",
		},
		"unknown tag":       {"@Tags        things", "@Tags        thing", "one of the known @Tags"},
		"type unexplained":  {"// Part is a part.\n", "", "Part needs a doc comment"},
		"field unexplained": {"	// Fence of it.\n", "", "Thing.fence needs a doc comment"},
		"codes in prose": {
			`"lock_held, wait_timeout"`, `"When it is held"`,
			`putThing: response 423: "When it is held" is not a list of codes`,
		},
		"error without a body": {
			`404 {string} string  "No such page"`, `404 "No such page"`,
			"response 404: an error needs a body",
		},
		"body without a type": {
			"body  Body   false", "body  string   false", "the body has no schema of its own",
		},
		"path unexplained": {"path  string true", "query  string true", "not valid"},
		"unknown type":     {"{object} Thing", "{object} Think", "read the annotations"},
		"example out of bounds": {
			`json:"count,omitempty"`, `json:"count,omitempty" minimum:"2" example:"1"`, "not valid",
		},
	} {
		t.Run(name, func(t *testing.T) {
			changed := strings.Replace(string(source), c.old, c.new, 1)
			if changed == string(source) {
				t.Fatalf("the sample has no %q", c.old)
			}
			folder := t.TempDir()
			if err := os.WriteFile(folder+"/sample.go", []byte(changed), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := generate(folder+"/sample.go", folder); err == nil ||
				!strings.Contains(err.Error(), c.want) {
				t.Errorf("generate: %v, want an error with %q", err, c.want)
			}
		})
	}
}

func TestPhrase(t *testing.T) {
	for _, c := range []struct{ comment, name, want string }{
		{"TTLSeconds is the\nlease.\n", "ttl_seconds", "`ttl_seconds` is the lease."},
		{"Token proves it.", "token", "Token proves it."},
		{"Since when it is held.", "held_since", "Since when it is held."},
		{"", "held_since", ""},
	} {
		if got := phrase(c.comment, c.name); got != c.want {
			t.Errorf("phrase(%q, %q) = %q, want %q", c.comment, c.name, got, c.want)
		}
	}
}
