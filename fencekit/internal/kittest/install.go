package kittest

import (
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

// Install builds a program with go install in a folder, and returns its path. It keeps what it
// built for the next run.
func Install(t testing.TB, dir, program string) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(cache, "fencepost", "fencekit")
	name, version, _ := strings.Cut(path.Base(program), "@")
	if program == "." {
		name = filepath.Base(dir)
	}
	command := exec.CommandContext(t.Context(), "go", "install", program)
	command.Dir, command.Env = dir, append(os.Environ(), "GOBIN="+filepath.Join(bin, version))
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("install %s: %v\n%s", program, err, out)
	}
	return filepath.Join(bin, version, name)
}
