package main_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func build(t *testing.T) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "bench")
	if out, err := exec.Command("go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return binary
}

func TestCommand(t *testing.T) {
	bench := build(t)
	t.Run("runs a row", func(t *testing.T) {
		dir, document := t.TempDir(), filepath.Join(t.TempDir(), "performance.md")
		out, err := exec.Command(bench, "-rows", "ceiling", "-rounds", "1", "-duration", "100ms", "-warmup", "0s",
			"-dir", dir, "-markdown", document).Output()
		if err != nil || !strings.Contains(string(out), "empty answers, 128 clients") {
			t.Errorf("%v\n%s", err, out)
		}
		text, err := os.ReadFile(document)
		if err != nil || !strings.Contains(string(text), "| ceiling | empty answers, 128 clients |") {
			t.Errorf("%v\n%s", err, text)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
			t.Errorf("left behind: %v, %v", left, err)
		}
	})
	for name, tt := range map[string]struct {
		args []string
		code int
		says string
	}{
		"help":             {[]string{"-h"}, 2, "-markdown"},
		"unknown row":      {[]string{"-rows", "S99"}, 1, "S99"},
		"stray argument":   {[]string{"S1"}, 1, "unexpected argument"},
		"no older server":  {[]string{"-rows", "older"}, 1, "by -older"},
		"no rounds":        {[]string{"-rounds", "0"}, 1, "must be positive"},
		"folder is a file": {[]string{"-rows", "ceiling", "-dir", bench}, 1, "not a directory"},
	} {
		t.Run(name, func(t *testing.T) {
			var stderr bytes.Buffer
			cmd := exec.Command(bench, tt.args...)
			cmd.Stderr = &stderr
			err := cmd.Run()
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.ExitCode() != tt.code || !strings.Contains(stderr.String(), tt.says) {
				t.Errorf("%v, want code %d and %q in\n%s", err, tt.code, tt.says, &stderr)
			}
		})
	}
}
