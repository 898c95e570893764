package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func lockFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "package-lock.json")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestFromNPM: what runs is listed, each once and in order, and what only builds is not.
func TestFromNPM(t *testing.T) {
	t.Parallel()
	sum := "sha512-" + base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{0xab}, 64))
	path := lockFile(t, fmt.Sprintf(`{"lockfileVersion": 3, "packages": {
		"": {"name": "page", "dependencies": {"a": "1.0.0"}},
		"node_modules/b": {"version": "2.0.0", "integrity": %[1]q, "license": "MIT"},
		"node_modules/@x/a": {"version": "1.0.0", "integrity": %[1]q, "license": "OFL-1.1"},
		"node_modules/@x/a/node_modules/b": {"version": "2.0.0", "integrity": %[1]q, "license": "MIT"},
		"node_modules/alias": {"name": "c", "version": "3.0.0", "integrity": %[1]q},
		"node_modules/vite": {"version": "1.0.0", "integrity": %[1]q, "dev": true},
		"node_modules/perhaps": {"version": "1.0.0", "integrity": %[1]q, "devOptional": true}
	}}`, sum))
	got, err := fromNPM(path)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, c := range got {
		names = append(names, c.PURL)
		if len(c.Hashes) != 1 || c.Hashes[0].Content != strings.Repeat("ab", 64) {
			t.Errorf("%s has the checksums %v", c.PURL, c.Hashes)
		}
	}
	if want := []string{"pkg:npm/%40x/a@1.0.0", "pkg:npm/b@2.0.0", "pkg:npm/c@3.0.0"}; !slices.Equal(names, want) {
		t.Errorf("%q, want %q", names, want)
	}
	if a := got[0]; a.Group != "@x" || a.Name != "a" || a.Licenses[0].Expression != "OFL-1.1" {
		t.Errorf("%+v", a)
	}
}

func TestNotFromNPM(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "{}", `{"lockfileVersion": 1, "dependencies": {}}`, `{"lockfileVersion": 3, "packages": {}}`,
		`{"lockfileVersion": 3, "packages": {"node_modules/a": {"version": "1.0.0"}}}`,
	} {
		if got, err := fromNPM(lockFile(t, text)); err == nil {
			t.Errorf("%s: no error, but %v", text, got)
		}
	}
}

// TestDashboard: what the dashboard says that it needs to run is in the document, and what
// builds it is not.
func TestDashboard(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile("../../dashboard/package.json")
	if err != nil {
		t.Fatal(err)
	}
	var page struct{ Dependencies, DevDependencies map[string]string }
	if err := json.Unmarshal(b, &page); err != nil || len(page.Dependencies) == 0 {
		t.Fatalf("%v, %v", page, err)
	}
	listed, err := fromNPM("../../dashboard/package-lock.json")
	if err != nil {
		t.Fatal(err)
	}
	has := func(name string) bool {
		return slices.ContainsFunc(listed, func(c component) bool { return strings.TrimPrefix(c.Group+"/"+c.Name, "/") == name })
	}
	for name := range page.Dependencies {
		if !has(name) {
			t.Errorf("%s is embedded and not listed", name)
		}
	}
	for name := range page.DevDependencies {
		if has(name) {
			t.Errorf("%s is listed, but not embedded", name)
		}
	}
}
