package receivers_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/fencepost/fencepost/test/rig"
)

// python returns a Python that has what requirements.txt pins, and fetches that if it is the first
// time.
func python(t *testing.T) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(cache, "fencepost", "receivers", pins(t))
	venv := filepath.Join(dir, "venv", "bin", "python")
	if _, err := os.Stat(dir); err == nil {
		return venv
	}
	fresh := dir + "-" + strconv.Itoa(os.Getpid()) // beside it, to be renamed when it is complete
	t.Cleanup(func() { _ = os.RemoveAll(fresh) })
	if err := os.MkdirAll(fresh, 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(fresh, os.DirFS(".")); err != nil {
		t.Fatal(err)
	}
	run(t, fresh, "python3", "-m", "venv", "venv")
	run(
		t, fresh, filepath.Join("venv", "bin", "python"), "-m", "pip", "install", "--quiet",
		"--disable-pip-version-check", "-r", "requirements.txt",
	)
	// Another process may have been faster, with the same.
	if err := os.Rename(fresh, dir); err != nil && !errors.Is(err, fs.ErrExist) {
		t.Fatal(err)
	}
	return venv
}

// modules returns the node_modules that package.json pins.
func modules(t *testing.T) string {
	t.Helper()
	dir, err := rig.FetchNPM(t.Context(), "package.json")
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "node_modules")
}

// pins is what the libraries depend on, in short: the file that names them, and Python,
// for whose version they are installed.
func pins(t *testing.T) string {
	t.Helper()
	version, err := exec.CommandContext(t.Context(), "python3", "--version").Output()
	if err != nil {
		t.Fatalf("python3 is needed: %v", err)
	}
	sum := sha256.New()
	sum.Write(version)
	text, err := os.ReadFile("requirements.txt")
	if err != nil {
		t.Fatal(err)
	}
	sum.Write(text)
	return fmt.Sprintf("%x", sum.Sum(nil)[:8])
}

func run(t *testing.T, dir, name string, args ...string) {
	t.Helper()
	if local := filepath.Join(dir, name); filepath.Dir(name) != "." {
		name = local
	}
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
}

// program is how a receiver of the document is started.
func program(ctx context.Context, t *testing.T, language string) *exec.Cmd {
	t.Helper()
	dir := t.TempDir()
	code := documented(t, language)
	write := func(name string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(code), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	switch language {
	case "python":
		return exec.CommandContext(ctx, python(t), write("receiver.py"))
	case "js":
		if err := os.Symlink(modules(t), filepath.Join(dir, "node_modules")); err != nil {
			t.Fatal(err)
		}
		return exec.CommandContext(ctx, "node", write("receiver.mjs"))
	case "go":
		module := filepath.Join("..", "..") // which has the client
		binary := filepath.Join(dir, "receiver")
		run(t, module, "go", "build", "-o", binary, write("main.go"))
		return exec.CommandContext(ctx, binary)
	}
	t.Fatalf("no receiver in %s", language)
	return nil
}
