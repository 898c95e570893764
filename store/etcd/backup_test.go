package etcd

import (
	"bytes"
	"context"
	"crypto/sha256"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

// shortDir is a folder whose name leaves room for a socket's, which has 104 bytes at most.
func shortDir(t *testing.T) string {
	t.Helper()
	// T.TempDir has the name of the test in it, and is too long for a socket.
	dir, err := os.MkdirTemp("", "fp") //nolint:usetesting // see above
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func startIn(t *testing.T, cfg EmbeddedConfig) (*Conn, *member) {
	t.Helper()
	conn, m, err := startEmbedded(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return conn, m
}

func end(t *testing.T, conn *Conn) {
	t.Helper()
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
}

func put(t *testing.T, m *member, key string, value []byte) {
	t.Helper()
	err := answered(func() error {
		_, err := m.kv.Put(t.Context(), &pb.PutRequest{Key: []byte(key), Value: value})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestBackupOfBoth: a store is copied while it runs, and while it does not, with what was
// written last; the copy ends with the checksum of what is before it, and the store goes on.
func TestBackupOfBoth(t *testing.T) {
	dir := shortDir(t)
	conn, m := startIn(t, EmbeddedConfig{Dir: dir})
	put(t, m, "a", []byte("written-before-the-copy"))
	running := backupOf(t, dir)
	put(t, m, "b", []byte("written-after-the-copy"))
	end(t, conn)
	stopped := backupOf(t, dir)
	for name, c := range map[string]struct {
		copied []byte
		later  bool
	}{"running": {running, false}, "stopped": {stopped, true}} {
		data, sum := c.copied[:len(c.copied)-sha256.Size], c.copied[len(c.copied)-sha256.Size:]
		if want := sha256.Sum256(data); !bytes.Equal(sum, want[:]) {
			t.Errorf("%s: the copy does not end with its checksum", name)
		}
		if !bytes.Contains(data, []byte("written-before-the-copy")) ||
			bytes.Contains(data, []byte("written-after-the-copy")) != c.later {
			t.Errorf("%s: the copy is not of that moment", name)
		}
	}
}

func backupOf(t *testing.T, dir string) []byte {
	t.Helper()
	var b bytes.Buffer
	size, err := Backup(t.Context(), dir, &b)
	if err != nil || size != int64(b.Len()) {
		t.Fatalf("Backup = %d of %d bytes, %v", size, b.Len(), err)
	}
	return b.Bytes()
}

func TestBackupRefuses(t *testing.T) {
	t.Run("NoStore", func(t *testing.T) {
		dir := shortDir(t)
		_, err := Backup(t.Context(), dir, io.Discard)
		if files, _ := os.ReadDir(dir); err == nil || len(files) > 0 {
			t.Errorf("Backup of an empty folder = %v, and leaves %v", err, files)
		}
	})
	t.Run("NoAnswer", func(t *testing.T) {
		dir := shortDir(t)
		conn, _ := startIn(t, EmbeddedConfig{Dir: dir})
		defer end(t, conn)
		if err := os.Remove(filepath.Join(dir, dataDir, backupSocket)); err != nil {
			t.Fatal(err)
		}
		if _, err := Backup(t.Context(), dir, io.Discard); err == nil ||
			!strings.Contains(err.Error(), "does not answer") {
			t.Errorf("Backup = %v, want that the process does not answer", err)
		}
	})
	t.Run("OneAtATime", func(t *testing.T) {
		dir := shortDir(t)
		conn, m := startIn(t, EmbeddedConfig{Dir: dir})
		defer end(t, conn)
		m.copying.Lock() // as while another one is made
		if _, err := Backup(t.Context(), dir, io.Discard); err == nil ||
			!strings.Contains(err.Error(), "another backup") {
			t.Errorf("Backup beside another one = %v", err)
		}
		m.copying.Unlock()
		backupOf(t, dir)
	})
}

// TestBackupSocket: it is its owner's, one that a killed process left behind is replaced,
// and it goes with the store.
func TestBackupSocket(t *testing.T) {
	dir := shortDir(t)
	path := filepath.Join(dir, dataDir, backupSocket)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	conn, _ := startIn(t, EmbeddedConfig{Dir: dir})
	info, err := os.Stat(path)
	if err != nil || info.Mode() != os.ModeSocket|0o600 {
		t.Errorf("the socket is %v, %v", info.Mode(), err)
	}
	backupOf(t, dir)
	end(t, conn)
	if _, err := os.Lstat(path); !os.IsNotExist(err) {
		t.Errorf("the socket is left: %v", err)
	}
}

// TestBackupWithoutASocket: a folder whose name is too long for one is served all the same.
func TestBackupWithoutASocket(t *testing.T) {
	var log bytes.Buffer
	dir := filepath.Join(shortDir(t), strings.Repeat("long", 30))
	conn, _ := startIn(t, EmbeddedConfig{
		Dir:    dir,
		Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn})),
	})
	end(t, conn)
	if !strings.Contains(log.String(), "no backup can be made while the server runs") {
		t.Errorf("the log says nothing of it: %s", &log)
	}
}

// ask begins a copy that is too large for a socket's buffers, and reads a little of it.
func ask(t *testing.T, dir string, m *member) net.Conn {
	t.Helper()
	for _, key := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		put(t, m, key, make([]byte, 1<<20))
	}
	conn, err := new(net.Dialer).DialContext(
		t.Context(), "unix", filepath.Join(dir, dataDir, backupSocket),
	)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = conn.Read(make([]byte, 1)) // it has begun, or is over already
	return conn
}

// idle waits until nothing is copied any more.
func idle(t *testing.T, m *member) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for !m.copying.TryLock() {
		select {
		case <-ctx.Done():
			t.Fatal("the copy goes on")
		case <-time.After(time.Millisecond):
		}
	}
	m.copying.Unlock()
}

// TestBackupEnds: with its reader, and with the store.
func TestBackupEnds(t *testing.T) {
	dir := shortDir(t)
	server, m := startIn(t, EmbeddedConfig{Dir: dir})
	_ = ask(t, dir, m).Close()
	idle(t, m)
	backupOf(t, dir)
	conn := ask(t, dir, m)
	defer func() { _ = conn.Close() }()
	end(t, server)
}

// TestDefragmentsAfterABackup: while a copy is made a full store is not tidied, which would
// stop all calls for as long.
func TestDefragmentsAfterABackup(t *testing.T) {
	server, m := startIn(t, EmbeddedConfig{Dir: shortDir(t)})
	defer end(t, server)
	alarm := &pb.AlarmRequest{
		MemberID: uint64(m.server.MemberID()),
		Action:   pb.AlarmRequest_ACTIVATE, Alarm: pb.AlarmType_NOSPACE,
	}
	m.copying.Lock()
	err := answered(func() error { _, err := m.server.Alarm(t.Context(), alarm); return err })
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	if m.attend(log); !m.alarmed() {
		t.Error("it is tidied during a backup")
	}
	m.copying.Unlock()
	within(t, time.Minute, "it is tidied after the backup", func() bool {
		m.attend(log)
		return !m.alarmed()
	})
}

// TestReadCopy: what is cut short, or damaged on its way, is no copy.
func TestReadCopy(t *testing.T) {
	data := []byte("what is in the store")
	sum := sha256.Sum256(data)
	good := append(bytes.Clone(data), sum[:]...)
	damaged := bytes.Clone(good)
	damaged[3]++
	for name, c := range map[string]struct {
		sent []byte
		ok   bool
	}{
		"Whole": {good, true}, "Damaged": {damaged, false}, "CutInTheData": {good[:7], false},
		"CutInTheSum": {good[:len(good)-1], false}, "Empty": {nil, false},
	} {
		var b bytes.Buffer
		err := readCopy(bytes.NewReader(c.sent), &b, int64(len(good)))
		if (err == nil) != c.ok || c.ok && !bytes.Equal(b.Bytes(), good) {
			t.Errorf("%s: %v, %d bytes", name, err, b.Len())
		}
	}
}
