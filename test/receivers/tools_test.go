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
)

// libraries returns a folder that has what the pins name, and fetches that if it is
// the first time: venv for Python, node_modules for JavaScript.
func libraries(t *testing.T) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(cache, "fencepost", "receivers", pins(t))
	if _, err := os.Stat(dir); err == nil {
		return dir
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
	run(t, fresh, "npm", "install", "--no-audit", "--no-fund", "--silent")
	// Another process may have been faster, with the same.
	if err := os.Rename(fresh, dir); err != nil && !errors.Is(err, fs.ErrExist) {
		t.Fatal(err)
	}
	return dir
}

// pins is what the libraries depend on, in short: the files that name them, and Python,
// for whose version they are installed.
func pins(t *testing.T) string {
	t.Helper()
	version, err := exec.CommandContext(t.Context(), "python3", "--version").Output()
	if err != nil {
		t.Fatalf("python3 is needed: %v", err)
	}
	sum := sha256.New()
	sum.Write(version)
	for _, name := range []string{"requirements.txt", "package.json"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		sum.Write(text)
	}
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
		return exec.CommandContext(
			ctx, filepath.Join(libraries(t), "venv", "bin", "python"), write("receiver.py"),
		)
	case "js":
		if err := os.Symlink(
			filepath.Join(libraries(t), "node_modules"), filepath.Join(dir, "node_modules"),
		); err != nil {
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
