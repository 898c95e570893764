//go:build unix

package child

import (
	"errors"
	"os"
	"testing"
	"time"
)

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
