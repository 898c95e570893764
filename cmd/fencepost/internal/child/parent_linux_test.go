package child

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// deathFile is the variable with the file into which a command writes the signal that it gets when
// its parent dies.
const deathFile = "DEATH_SIGNAL_FILE"

// The thread of this initialization is the one that the command began with.
var _ = func() error {
	file, signal := os.Getenv(deathFile), int32(0)
	if file == "" || len(os.Args) > 1 { // the gate has it, too
		return nil
	}
	_ = unix.Prctl(unix.PR_GET_PDEATHSIG, uintptr(unsafe.Pointer(&signal)), 0, 0, 0)
	_ = os.WriteFile(file, fmt.Append(nil, signal), 0o600)
	os.Exit(0)
	return nil
}()

// TestCommandDiesWithItsParent: the kernel kills the command when the process that renews is
// killed, whichever thread of the gate became the command.
func TestCommandDiesWithItsParent(t *testing.T) {
	file := filepath.Join(t.TempDir(), "signal")
	env := append(os.Environ(), deathFile+"="+file)
	c, err := Start("/proc/self/exe", []string{"command"}, env, true)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	c.Extend(time.Minute, time.Second)
	ended(t, c)
	if got, err := os.ReadFile(file); err != nil || string(got) != "9" {
		t.Errorf("the signal is %q: %v", got, err)
	}
}

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
