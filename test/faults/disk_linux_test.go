package faults_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"
)

// writableBytes is how long files may be while the disk is full: more than the server's log has,
// and less than what the store's log of writes has reached by then.
const writableBytes = 128 << 10

// limitFiles has the kernel refuse what the process writes beyond so many bytes of any file, which
// needs no rights.
func limitFiles(pid int, bytes uint64) error {
	limit := syscall.Rlimit{Cur: bytes, Max: bytes}
	_, _, errno := syscall.RawSyscall6(
		syscall.SYS_PRLIMIT64, uintptr(pid), syscall.RLIMIT_FSIZE, uintptr(unsafe.Pointer(&limit)), 0, 0,
		0,
	)
	if errno != 0 {
		return fmt.Errorf("limit the files of process %d: %w", pid, errno)
	}
	return nil
}

// TestDiskFull has the embedded store find no space for what it writes: the server ends and says
// why, acknowledges nothing that it could not write, and goes on when there is room. As root the
// disk is a small file system that is full; anybody can have the kernel refuse the writes.
func TestDiskFull(t *testing.T) {
	t.Run("refused writes", func(t *testing.T) {
		r := newRestored(t)
		r.fillDisk(
			func() { r.must(limitFiles(r.replicas[0].PID(), writableBytes)) }, func() {}, syscall.EFBIG,
		)
	})
	if os.Geteuid() == 0 {
		t.Run("full file system", fullFileSystem)
	}
}

// fullFileSystem has room for the store's two files of writes, of 64 MiB each, and some more.
func fullFileSystem(t *testing.T) {
	r := newRestored(t)
	folder := filepath.Join(r.dir, "data")
	r.must(os.Mkdir(folder, 0o700))
	err := syscall.Mount("tmpfs", folder, "tmpfs", 0, "size=160m")
	if errors.Is(err, syscall.EPERM) {
		t.Log("a container that may not mount: what is left are the refused writes")
		return
	}
	r.must(err)
	t.Cleanup(func() { r.must(syscall.Unmount(folder, syscall.MNT_DETACH)) })
	ballast := filepath.Join(folder, "ballast")
	r.fillDisk(func() {
		f, err := os.Create(ballast)
		r.must(err)
		if _, err := io.Copy(f, zeros{}); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("the file system is not full: %v", err)
		}
		r.must(f.Close())
	}, func() { r.must(os.Remove(ballast)) }, syscall.ENOSPC)
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// fillDisk has a server run while the disk becomes full, and again when there is room.
func (r *restored) fillDisk(fill, empty func(), why error) {
	r.t.Helper()
	r.start("data", "--log-level", "warn") // so that the log stays short
	held, freed := r.acquire("held:before", time.Hour), r.acquire("freed:before", time.Hour)
	if a := r.clients[0].Delete(r.ctx, 0, freed); a.Status != http.StatusNoContent {
		r.t.Fatalf("release: %v", a)
	}
	stop := r.load()
	r.await(int64(count(400, 4000)))
	fill()
	full := r.history.Now()
	select {
	case <-r.replicas[0].Exited():
	case <-time.After(within(30 * time.Second)):
		r.t.Fatal("a server whose store cannot write goes on")
	}
	stop()
	before := r.highest.Load()
	r.t.Logf(
		"the server ended %v after the disk was full, with %d grants",
		(r.history.Now() - full).Round(time.Millisecond), r.grants.Load(),
	)
	r.saysWhy(why)
	empty()
	r.must(r.replicas[0].Restart(r.ctx))
	if a := r.clients[0].Put(r.ctx, 0, held); a.Status != http.StatusOK {
		r.t.Errorf("what was held before: %v", a)
	}
	if h := r.acquire("freed:before", time.Minute); h.Fence <= before {
		r.t.Errorf("the first fence after it is %d, and %d was handed out before", h.Fence, before)
	}
	stop = r.load()
	r.await(50)
	stop()
}

// saysWhy checks that the last line of the server's log is the error that the store met.
func (r *restored) saysWhy(why error) {
	r.t.Helper()
	log, err := os.ReadFile(r.replicas[0].Log())
	r.must(err)
	lines := strings.Split(strings.TrimSpace(string(log)), "\n")
	last := lines[len(lines)-1]
	r.t.Logf("its last line: %s", last)
	if !strings.Contains(last, why.Error()) || !strings.Contains(last, `"level":"ERROR"`) ||
		strings.Contains(string(log), "panic") {
		r.t.Errorf("the log does not end with the reason %q: %s", why, log[max(0, len(log)-3000):])
	}
}
