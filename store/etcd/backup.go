package etcd

import (
	"bufio"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"go.etcd.io/etcd/server/v3/storage/backend"
)

// A process with an embedded store copies it for whoever connects to a socket in the data
// folder. It answers with one line, "ok" and how many bytes follow or "error" and why not,
// then with the copy. The copy is what etcd's own tools write and read: the data file, and
// behind it the SHA-256 of that.
const (
	backupSocket = "backup.sock" // in the folder that only its owner can enter
	okWord       = "ok"
	errorWord    = "error"
	maxLine      = 512 // bytes of the answer's line

	// A copy keeps pages from being used again, so that the data file grows: the whole of it
	// may take longestBackup, and a piece of it stalledBackup.
	longestBackup = 10 * time.Minute
	stalledBackup = 15 * time.Second
)

// Backup writes a copy of the embedded store in the data folder dir to w, as it is at one
// moment, and returns its size in bytes. If a process has the folder in use, that process is
// asked for the copy and goes on serving; it makes one at a time. If none has, the store is
// started for the time of the copy. What was written to w counts only if there is no error.
func Backup(ctx context.Context, dir string, w io.Writer) (bytes int64, err error) {
	if _, err := os.Stat(filepath.Join(dir, dataDir, "member")); err != nil {
		return 0, fmt.Errorf("there is no embedded store in %s: %w", dir, err)
	}
	release, err := claimDir(dir)
	if errors.Is(err, errInUse) {
		return receiveBackup(ctx, dir, w)
	}
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, release()) }()
	server, err := startMember(ctx, EmbeddedConfig{Dir: dir})
	if err != nil {
		return 0, err
	}
	defer server.Close()
	s := server.Server.Backend().Snapshot()
	return s.Size() + sha256.Size, errors.Join(writeSnapshot(whileWriter{ctx, w}, s), s.Close())
}

// whileWriter writes until ctx ends.
type whileWriter struct {
	ctx context.Context
	w   io.Writer
}

func (w whileWriter) Write(b []byte) (int, error) {
	if err := w.ctx.Err(); err != nil {
		return 0, err
	}
	return w.w.Write(b)
}

func writeSnapshot(w io.Writer, s backend.Snapshot) error {
	sum := sha256.New()
	if _, err := s.WriteTo(io.MultiWriter(w, sum)); err != nil {
		return err
	}
	_, err := w.Write(sum.Sum(nil))
	return err
}

// receiveBackup asks the process that has the data folder in use.
func receiveBackup(ctx context.Context, dir string, w io.Writer) (int64, error) {
	path := filepath.Join(dir, dataDir, backupSocket)
	conn, err := (&net.Dialer{Timeout: stalledBackup}).DialContext(ctx, "unix", path)
	if err != nil {
		return 0, fmt.Errorf("the data folder %s is in use by a process that does not answer: %w", dir, err)
	}
	defer func() { _ = conn.Close() }()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	r := bufio.NewReaderSize(paced{conn, time.Now().Add(longestBackup), stalledBackup}, maxLine)
	size, err := readSize(r)
	if err == nil {
		err = readCopy(r, w, size)
	}
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	if err != nil {
		return 0, fmt.Errorf("the process that has the data folder in use gave no whole copy: %w", err)
	}
	return size, nil
}

func readSize(r *bufio.Reader) (int64, error) {
	line, err := r.ReadSlice('\n')
	if err != nil {
		return 0, err
	}
	word, rest, _ := strings.Cut(strings.TrimSuffix(string(line), "\n"), " ")
	if word == errorWord {
		return 0, errors.New(rest)
	}
	size, err := strconv.ParseInt(rest, 10, 64)
	if word != okWord || err != nil || size <= sha256.Size {
		return 0, fmt.Errorf("it answers %q", line)
	}
	return size, nil
}

var errWrongSum = errors.New("its checksum is another one")

// readCopy hands on a copy of the size, and refuses it if its checksum is wrong.
func readCopy(r io.Reader, w io.Writer, size int64) error {
	sum := sha256.New()
	if _, err := io.CopyN(io.MultiWriter(w, sum), r, size-sha256.Size); err != nil {
		return whole(err)
	}
	return readSum(r, w, sum)
}

func readSum(r io.Reader, w io.Writer, sum hash.Hash) error {
	told := make([]byte, sha256.Size)
	if _, err := io.ReadFull(r, told); err != nil {
		return whole(err)
	}
	if string(told) != string(sum.Sum(nil)) {
		return errWrongSum
	}
	_, err := w.Write(told)
	return err
}

// whole tells that what ended should have gone on.
func whole(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// paced is a connection of which each read and write has stall, and all of them have until
// the end.
type paced struct {
	net.Conn
	end   time.Time
	stall time.Duration
}

func (p paced) until() time.Time {
	if next := time.Now().Add(p.stall); next.Before(p.end) {
		return next
	}
	return p.end
}

func (p paced) Read(b []byte) (int, error) {
	if err := p.SetReadDeadline(p.until()); err != nil {
		return 0, err
	}
	return p.Conn.Read(b)
}

func (p paced) Write(b []byte) (int, error) {
	if err := p.SetWriteDeadline(p.until()); err != nil {
		return 0, err
	}
	return p.Conn.Write(b)
}
