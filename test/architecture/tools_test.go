package architecture_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestMissingToolsAreNamedAtOnce: one message has all that is missing or too old.
func TestMissingToolsAreNamedAtOnce(t *testing.T) {
	path := t.TempDir()
	for _, tool := range []string{"sh", "awk", "dirname", "env", "head", "id", "sed"} {
		program, err := exec.LookPath(tool)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(program, filepath.Join(path, tool)); err != nil {
			t.Fatal(err)
		}
	}
	for tool, prints := range map[string]string{
		"go": "go1.25.9", "node": "v20.9.0", "cargo": "cargo 1.100.0", "javac": "javac 1.8.0_392",
		"curl": "curl 8.0.1 (x86_64-pc-linux-gnu)", "python3": "Python 3.10.0",
	} {
		script := "#!/bin/sh\necho '" + prints + "'\n"
		if err := os.WriteFile(filepath.Join(path, tool), []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), filepath.FromSlash("../../.ci/tools"))
	cmd.Env = []string{"PATH=" + path}
	said, err := cmd.CombinedOutput()
	if err == nil {
		t.Errorf("it succeeds")
	}
	for _, want := range []string{
		"(found: 1.25.9)", "node 20.19 (found: 20.9.0)", "a JDK 17 (found: 1.8.0)",
		"\n  git\n", "\n  npm\n", "\n  mvn\n", "\n  openssl\n", "C compiler",
	} {
		if !strings.Contains(string(said), want) {
			t.Errorf("%q is missing in:\n%s", want, said)
		}
	}
	for _, enough := range []string{"cargo 1.85", "curl", "python3 3.9"} {
		if strings.Contains(string(said), enough) {
			t.Errorf("%q is there, but it says:\n%s", enough, said)
		}
	}
}
