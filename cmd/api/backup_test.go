package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestWriteWhole: the file is its owner's only, is there as a whole or not at all, and none
// is replaced unless that is asked for.
func TestWriteWhole(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "copy")
	with := func(text string, err error) func(io.Writer) (int64, error) {
		return func(w io.Writer) (int64, error) {
			n, _ := io.WriteString(w, text)
			return int64(n), err
		}
	}
	check := func(what, want string) {
		t.Helper()
		got, _ := os.ReadFile(path)
		if string(got) != want {
			t.Errorf("%s: the file has %q, want %q", what, got, want)
		}
		if files, err := os.ReadDir(filepath.Dir(path)); err != nil || len(files) > 1 {
			t.Errorf("%s: something is left: %v, %v", what, files, err)
		}
	}
	if _, err := writeWhole(path, false, with("half", errors.New("cut"))); err == nil {
		t.Error("a half was written")
	}
	check("a half", "")
	if size, err := writeWhole(path, false, with("first", nil)); err != nil || size != 5 {
		t.Errorf("the first = %d, %v", size, err)
	}
	check("the first", "first")
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o600 {
		t.Errorf("it is %v, %v", info.Mode(), err)
	}
	if _, err := writeWhole(path, false, with("second", nil)); err == nil ||
		!strings.Contains(err.Error(), "--force") {
		t.Errorf("over another = %v", err)
	}
	came := func(w io.Writer) (int64, error) { // while it was written
		return 0, os.WriteFile(path+".late", []byte("other"), 0o600)
	}
	if _, err := writeWhole(path+".late", false, came); err == nil {
		t.Error("one that came meanwhile is replaced")
	}
	if err := os.Remove(path + ".late"); err != nil {
		t.Error(err)
	}
	check("over another", "first")
	if _, err := writeWhole(path, true, with("third", errors.New("cut"))); err == nil {
		t.Error("a half replaced it")
	}
	check("a half over another", "first")
	if _, err := writeWhole(path, true, with("third", nil)); err != nil {
		t.Error(err)
	}
	check("by force", "third")
}

// TestBackup: a server that runs is copied; stderr warns of the secrets in the copy.
func TestBackup(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "fp") //nolint:usetesting // that of a test is named after it, too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	data, to := filepath.Join(dir, "data"), filepath.Join(dir, "copy")
	order := func(args ...string) (code int, out, log string) {
		var stdout, stderr bytes.Buffer
		code = run(t.Context(), args, environment{}, &stdout, &stderr)
		return code, stdout.String(), stderr.String()
	}
	if code, _, log := order("backup", "--data-dir", data, "--to", to); code != 1 {
		t.Errorf("without a folder: %d, %s", code, log)
	}
	s := start(t, "--dev", "--data-dir", data)
	if code, _, log := order("backup", "--data-dir", data); code != exitConfig {
		t.Errorf("without --to: %d, %s", code, log)
	}
	code, out, log := order("backup", "--data-dir", data, "--to", to)
	if code != 0 || !strings.HasPrefix(out, to+": ") || !strings.Contains(log, "has secrets in it") {
		t.Errorf("while it runs: %d, %s, %s", code, out, log)
	}
	if code, _, log := order("backup", "--data-dir", data, "--to", to); code != 1 ||
		!strings.Contains(log, "--force") {
		t.Errorf("over another: %d, %s", code, log)
	}
	if code := s.end(); code != 0 {
		t.Errorf("the server ends with %d", code)
	}
	if code, _, log := order("backup", "--data-dir", data, "--to", to, "--force"); code != 0 {
		t.Errorf("while it does not run: %d, %s", code, log)
	}
}

// TestPutInPlace: a file that comes while a backup is made is not replaced unless that is asked
// for.
func TestPutInPlace(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	from, to := filepath.Join(dir, "from"), filepath.Join(dir, "to")
	for path, text := range map[string]string{from: "new", to: "old"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for force, want := range map[bool]string{false: "old", true: "new"} {
		err := putInPlace(from, to, force)
		got, failed := os.ReadFile(to)
		if force != (err == nil) || failed != nil {
			t.Fatalf("with --force %t: %v, %v", force, err, failed)
		}
		if string(got) != want {
			t.Errorf("with --force %t it is %q, want %q", force, got, want)
		}
		if err := os.WriteFile(to, []byte("old"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(from, []byte("new"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
