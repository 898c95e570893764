package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestRestoreRefuses: no file, no such file, and none that is a backup; the folder is not made a
// store.
func TestRestoreRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	junk := filepath.Join(dir, "junk")
	if err := os.WriteFile(junk, bytes.Repeat([]byte("junk"), 4096), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		args []string
		code int
		says string
	}{
		"no file":      {nil, exitConfig, "--from"},
		"no such file": {[]string{"--from", filepath.Join(dir, "none")}, 1, "nothing was restored"},
		"no backup":    {[]string{"--from", junk}, 1, "nothing was restored"},
	} {
		var stdout, stderr bytes.Buffer
		data := filepath.Join(dir, "data")
		code := run(
			t.Context(), append([]string{"restore", "--data-dir", data}, c.args...), environment{}, &stdout,
			&stderr,
		)
		if code != c.code || !strings.Contains(stderr.String(), c.says) || stdout.Len() > 0 {
			t.Errorf("%s: %d, %s%s", name, code, &stdout, &stderr)
		}
		if _, err := os.Stat(filepath.Join(data, "etcd", "member")); err == nil {
			t.Errorf("%s: a store was made", name)
		}
	}
}
