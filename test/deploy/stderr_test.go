package deploy_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fencepost/fencepost/test/rig"
)

// fullPipe returns a full pipe without a reader.
func fullPipe(t *testing.T) *os.File {
	t.Helper()
	unread, full, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = unread.Close(), full.Close() })
	if err := full.SetWriteDeadline(time.Now().Add(100 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = full.Write(bytes.Repeat([]byte("x"), 4096))
	}
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("the pipe is not full: %v", err)
	}
	return full
}

// stderr: a server whose stderr is not read, from its first line on, works as usual, and ends
// when it is stopped.
func stderr(t *testing.T, api string) {
	t.Helper()
	dir := t.TempDir()
	key := filepath.Join(dir, "key")
	if err := os.WriteFile(key, []byte(secret), 0o600); err != nil {
		t.Fatal(err)
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	if err := free.Close(); err != nil {
		t.Fatal(err)
	}
	server := exec.Command(
		api, "--listen", address, "--data-dir", filepath.Join(dir, "data"), "--jwt-secret-file", key,
		"--log-level", "debug",
	)
	server.Stderr = fullPipe(t)
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Wait() }()
	defer func() { _ = server.Process.Kill() }() // if it has not ended
	bearer, err := rig.SignToken(secret, "acme", "locks:read locks:write", "deploy")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	ask := func(path string) int {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+bearer)
		req.Header.Set("X-Request-Id", strings.Repeat("i", 100)) // for a long line
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return 0
		}
		_ = resp.Body.Close()
		return resp.StatusCode
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for ask("/readyz") != http.StatusOK {
		select {
		case <-tick.C:
		case err := <-ended:
			t.Fatalf("it ended: %v", err)
		case <-ctx.Done():
			t.Fatal("it does not come to be ready")
		}
	}
	for i := range 2000 {
		if got := ask("/locks/orders:42"); got != http.StatusOK && got != http.StatusNotFound {
			t.Fatalf("request %d: %d, %v", i, got, ctx.Err())
		}
	}
	if err := server.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		t.Logf("it ended: %v", err)
	case <-time.After(30 * time.Second):
		t.Error("it does not end")
	}
}
