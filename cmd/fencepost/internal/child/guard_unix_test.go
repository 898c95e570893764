//go:build unix

package child

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestSessionOfTheGuard: the guard has a session of its own, so that what stops or kills the group
// of the process that renews, such as Ctrl-Z, does not reach it.
func TestSessionOfTheGuard(t *testing.T) {
	file := filepath.Join(t.TempDir(), "session")
	t.Setenv(sessionFile, file)
	c := start(t, os.DevNull, true)
	c.Extend(time.Minute, time.Second)
	ended(t, c)
	for end := time.Now().Add(30 * time.Second); ; <-time.After(10 * time.Millisecond) {
		if own, _ := os.ReadFile(file); string(own) == "true\n" {
			return
		} else if time.Now().After(end) {
			t.Fatalf("the session is its own: %q", own)
		}
	}
}

// TestStoppedGuard: a stopped guard reads no orders, and does not block the process that sends
// them.
func TestStoppedGuard(t *testing.T) {
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = out.Close() })
	_ = in.SetWriteDeadline(time.Now().Add(time.Second))
	if _, err := in.Write(make([]byte, 1<<20)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("a full pipe returns %v", err)
	}
	_ = in.SetWriteDeadline(time.Time{})
	sent := make(chan struct{})
	go func() {
		(&guard{in: in}).set(order{})
		close(sent)
	}()
	select {
	case <-sent:
	case <-time.After(30 * time.Second):
		t.Error("an order blocks")
	}
}
