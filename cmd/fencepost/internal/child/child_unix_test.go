//go:build unix

package child

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// The first thread belongs to TestMain.
var _ = func() (none struct{}) {
	runtime.LockOSThread()
	return none
}()

// TestMain is the guard and the gate of the tests, too.
func TestMain(m *testing.M) {
	switch {
	case len(os.Args) > 1 && os.Args[1] == GuardCommand:
		if file := os.Getenv(sessionFile); file != "" {
			session, _ := unix.Getsid(0)
			_ = os.WriteFile(file, fmt.Append(nil, session == os.Getpid(), "\n"), 0o600)
		}
		Guard(os.Stdin)
	case len(os.Args) > 1 && os.Args[1] == BeginCommand:
		go func() { // in any thread but the first
			fmt.Fprintln(os.Stderr, Begin(os.Args[2:]))
			os.Exit(NotExecutable)
		}()
		select {}
	default:
		os.Exit(m.Run())
	}
}

// sessionFile is the variable with the file into which a guard writes whether it has a session of
// its own.
const sessionFile = "GUARD_SESSION_FILE"

// start starts a command that makes a file.
func start(t *testing.T, file string, guarded bool) *Child {
	t.Helper()
	c, err := Start("/bin/sh", []string{"sh", "-c", `>"$0"`, file}, os.Environ(), guarded)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func ended(t *testing.T, c *Child) {
	t.Helper()
	select {
	case code := <-c.Done:
		if code != 0 {
			t.Fatalf("the command ends with %d", code)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("the command does not end")
	}
}

// TestGuardBeforeCommand: a command does not begin before its guard has an order.
func TestGuardBeforeCommand(t *testing.T) {
	file := filepath.Join(t.TempDir(), "begun")
	c := start(t, file, true)
	for range 10 { // later commands begin and end meanwhile
		ended(t, start(t, os.DevNull, false))
	}
	if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the command has begun: %v", err)
	}
	c.Extend(time.Minute, time.Second)
	ended(t, c)
	if _, err := os.Stat(file); err != nil {
		t.Error(err)
	}
}

// TestOverdueStays: a command that its guard has asked to end is overdue, although the lock was
// renewed before the command ended.
func TestOverdueStays(t *testing.T) {
	c := start(t, os.DevNull, true)
	c.Extend(time.Minute, time.Second)
	if c.Extend(time.Minute, time.Second); c.Overdue() {
		t.Error("a command in time is overdue")
	}
	c.Extend(time.Minute, 2*time.Minute) // SIGTERM is due at once
	if c.Extend(time.Minute, time.Second); !c.Overdue() {
		t.Error("a renewal makes the order to end undone")
	}
	<-c.Done
}
