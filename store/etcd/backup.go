package etcd

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/etcd/server/v3/storage/backend"

	"github.com/fencepost/fencepost/store"
)

// A process with an embedded store sends a copy to each connection to a socket in its data
// folder: the size in 8 bytes, then the copy. The copy has the form of etcd's own tools, which is
// the data file and its SHA-256. If the process is busy, it closes the connection without a copy.
const (
	backupSocket = "backup.sock" // in the folder that only its owner can enter

	// longestBackup bounds the time of a copy: meanwhile etcd cannot reuse pages, so the data file
	// grows.
	longestBackup = 10 * time.Minute
)

// Backup writes a consistent copy of the embedded store in the data folder dir to w, and returns
// its size in bytes. If a process uses the folder, Backup asks that process for the copy; it
// makes one at a time. Otherwise Backup starts the store for the time of the copy. The output is
// valid only if there is no error.
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

// receiveBackup asks the process that uses the data folder.
func receiveBackup(ctx context.Context, dir string, w io.Writer) (size int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, longestBackup)
	defer cancel()
	path := filepath.Join(dir, dataDir, backupSocket)
	conn, err := new(net.Dialer).DialContext(ctx, "unix", path)
	if err != nil {
		return 0, fmt.Errorf(
			"the data folder %s is in use by a process that does not answer: %w", dir, err,
		)
	}
	defer func() { _ = conn.Close() }()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	if err = binary.Read(conn, binary.BigEndian, &size); errors.Is(err, io.EOF) {
		return 0, errors.New("another backup is being made, or the store is being tidied; try again")
	}
	if err == nil {
		err = readCopy(conn, w, size)
	}
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	if err != nil {
		return 0, fmt.Errorf("the process that uses the data folder sent no whole copy: %w", err)
	}
	return size, nil
}

var errWrongSum = errors.New("its checksum is wrong")

// readCopy copies that many bytes, and fails if the checksum is wrong.
func readCopy(r io.Reader, w io.Writer, size int64) error {
	sum, end := sha256.New(), make([]byte, sha256.Size)
	_, err := io.CopyN(io.MultiWriter(w, sum), r, size-sha256.Size)
	if err == nil {
		_, err = io.ReadFull(r, end)
	}
	if err != nil {
		return errors.Join(io.ErrUnexpectedEOF, err)
	}
	if string(end) != string(sum.Sum(nil)) {
		return errWrongSum
	}
	_, err = w.Write(end)
	return err
}

// listenForBackups listens in the data folder, which this process has claimed. A store without a
// socket works, so listenForBackups only logs a failure.
func (m *member) listenForBackups(dir string, log *slog.Logger) {
	path := filepath.Join(dir, dataDir, backupSocket)
	err := os.Remove(path) // left by a killed process
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		m.listener, err = new(net.ListenConfig).Listen(m.ctx, "unix", path)
	}
	if err == nil {
		err = os.Chmod(path, 0o600)
	}
	if err != nil {
		log.Warn("no backup can be made while the server runs", "socket", path, "error", err)
		return
	}
	m.copies.Go(func() { m.serveBackups(log) })
}

func (m *member) serveBackups(log *slog.Logger) {
	for {
		conn, err := m.listener.Accept()
		switch {
		case m.ctx.Err() != nil:
			if err == nil {
				_ = conn.Close()
			}
			return
		case err != nil: // for example when no more files may be opened
			log.Warn("a backup could not be begun", "error", err)
			_ = store.Pause(m.ctx, time.Second)
		case !m.copying.TryLock():
			_ = conn.Close()
		default:
			m.copies.Go(func() {
				defer m.copying.Unlock()
				m.sendBackup(conn, log)
			})
		}
	}
}

func (m *member) sendBackup(conn net.Conn, log *slog.Logger) {
	defer func() { _ = conn.Close() }()
	defer context.AfterFunc(m.ctx, func() { _ = conn.Close() })()
	began := time.Now()
	s := m.server.Backend().Snapshot()
	size := s.Size() + sha256.Size
	err := conn.SetDeadline(began.Add(longestBackup))
	if err == nil {
		err = binary.Write(conn, binary.BigEndian, size)
	}
	if err == nil {
		err = writeSnapshot(conn, s)
	}
	if err = errors.Join(err, s.Close()); err != nil {
		log.Warn("a backup was not made: its reader went away, or was too slow", "error", err)
		return
	}
	log.Info("a backup was made", "bytes", size, "seconds", time.Since(began).Seconds())
}
