package etcd

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/fencepost/fencepost/store"
)

// backups are the copies that a member makes for who connects to its socket.
type backups struct {
	// busy is held while the data file is copied or defragmented: defragmenting waits for
	// the copy's end, and all calls would wait for it. It also makes copies take turns.
	busy sync.Mutex

	longest, stall time.Duration
	listener       net.Listener
	tasks          sync.WaitGroup
}

// serve listens in the data folder, which this process has claimed. Without a socket the
// store does what it has to do, so that is logged and no more.
func (b *backups) serve(m *member, dir string, log *slog.Logger) {
	path := filepath.Join(dir, dataDir, backupSocket)
	listener, err := listenPrivately(m.ctx, path)
	if err != nil {
		log.Warn("no backup can be made while the server runs", "socket", path, "error", err)
		return
	}
	b.listener = listener
	b.tasks.Go(func() { b.accept(m, log) })
}

// listenPrivately takes the place of a socket that was left behind.
func listenPrivately(ctx context.Context, path string) (net.Listener, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	l, err := new(net.ListenConfig).Listen(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// close ends the copy that is being made, and waits for that: the data file cannot be
// closed before.
func (b *backups) close() error {
	if b.listener == nil {
		return nil
	}
	err := b.listener.Close()
	b.tasks.Wait()
	return err
}

func (b *backups) accept(m *member, log *slog.Logger) {
	for {
		conn, err := b.listener.Accept()
		switch {
		case m.ctx.Err() != nil:
			if err == nil {
				_ = conn.Close()
			}
			return
		case err != nil: // as when no more files may be opened
			log.Warn("a backup could not be begun", "error", err)
			_ = store.Pause(m.ctx, time.Second)
		case !b.busy.TryLock():
			b.refuse(conn)
		default:
			b.tasks.Go(func() {
				defer b.busy.Unlock()
				b.answer(m, conn, log)
			})
		}
	}
}

// refuse is a few bytes, which a socket has room for at once.
func (b *backups) refuse(conn net.Conn) {
	_, _ = fmt.Fprintf(paced{conn, time.Now().Add(time.Second), time.Second}, "%s another backup is being made, or the store is being tidied; try again\n", errorWord)
	_ = conn.Close()
}

func (b *backups) answer(m *member, conn net.Conn, log *slog.Logger) {
	defer func() { _ = conn.Close() }()
	defer context.AfterFunc(m.ctx, func() { _ = conn.Close() })()
	began := time.Now()
	size, err := copyTo(paced{conn, began.Add(b.longest), b.stall}, m)
	if err != nil {
		log.Warn("a backup was not made: whoever asked for it went away, or was too slow", "error", err, "seconds", time.Since(began).Seconds())
		return
	}
	log.Info("a backup was made", "bytes", size, "seconds", time.Since(began).Seconds())
}

func copyTo(conn paced, m *member) (size int64, err error) {
	s := m.server.Backend().Snapshot()
	defer func() { err = errors.Join(err, s.Close()) }()
	size = s.Size() + sha256.Size
	if _, err := fmt.Fprintf(conn, "%s %d\n", okWord, size); err != nil {
		return 0, err
	}
	return size, writeSnapshot(conn, s)
}
