package handlers_test

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// stepUntilAsked replaces sleep: the first step lasts until the test makes the file, or until its
// folder is gone, because a killed test must leave no process behind.
const stepUntilAsked = `#!/bin/sh
while [ -d "${ASKED%/*}" ] && [ ! -e "$ASKED" ]; do /bin/sleep 0.05; done
`

// TestDocumentedHolder runs the documented holder that releases on request. It stops after the
// step in which a waiter asks.
func TestDocumentedHolder(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	text, err := os.ReadFile(filepath.FromSlash("../docs/webhooks.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(text), "\n```sh\n")
	script, _, found := strings.Cut(after, "\n```\n")
	if !found {
		t.Fatal("there is no such program")
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "sleep"), []byte(stepUntilAsked), 0o700); err != nil { //nolint:gosec // it is run
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-c", script)
	cmd.Env = []string{
		"PATH=" + dir + ":" + os.Getenv("PATH"), "API=" + c.replica.url, "TOKEN=" + c.bearer,
		"STEP=1", "ASKED=" + filepath.Join(dir, "asked"),
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // unless it has ended
		_ = cmd.Wait()
	})
	lines := bufio.NewScanner(out)
	if !lines.Scan() || lines.Text() != "job 1" {
		t.Fatalf("it begins with %q", lines.Text())
	}
	waits := c.join("reports", body(`{"wait_seconds":60,"request_release":{"within_seconds":30}}`))
	if err := os.WriteFile(filepath.Join(dir, "asked"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var said []string
	for lines.Scan() {
		said = append(said, lines.Text())
	}
	if err := cmd.Wait(); err != nil || strings.Join(said, "|") != "a waiter asks, done after job 1" {
		t.Errorf("it goes on with %q, and ends with %v", said, err)
	}
	waits.wait()
}
