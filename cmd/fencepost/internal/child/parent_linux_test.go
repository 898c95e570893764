package child

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestOrphansAreReaped: the first process of a container reaps the orphans of the command, which
// else stay as zombies. The command ends when its orphan has been reaped.
func TestOrphansAreReaped(t *testing.T) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0) })
	const script = `(sleep 0.1 & echo $! >"$0"); while [ -d "/proc/$(cat "$0")" ]; do sleep 0.01; done`
	file := filepath.Join(t.TempDir(), "orphan")
	c, err := Start("/bin/sh", []string{"sh", "-c", script, file}, os.Environ(), false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Kill)
	ended(t, c)
}
