package etcd_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.uber.org/zap"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/store/etcd"
)

func TestDataFolder(t *testing.T) {
	t.Parallel()
	t.Run("BelongsToItsOwner", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "data")
		startEmbedded(t, etcd.EmbeddedConfig{Dir: dir})
		info, err := os.Stat(dir)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o700 {
			t.Errorf("mode = %v, want 0700", info.Mode().Perm())
		}
	})
	t.Run("SharedWithOthers", func(t *testing.T) {
		dir := t.TempDir()
		if err := os.Chmod(dir, 0o777); err != nil {
			t.Fatal(err)
		}
		startEmbedded(t, etcd.EmbeddedConfig{Dir: dir})
		if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o777 {
			t.Errorf("a folder that was there before is changed: %v, %v", info, err)
		}
		entries, err := os.ReadDir(dir)
		if err != nil || len(entries) == 0 {
			t.Fatalf("in the folder: %v, %v", entries, err)
		}
		for _, e := range entries {
			if info, err := e.Info(); err != nil || info.Mode().Perm()&0o077 != 0 {
				t.Errorf("%s is open to others: %v, %v", e.Name(), info, err)
			}
		}
	})
	t.Run("InUse", func(t *testing.T) {
		dir := t.TempDir()
		startEmbedded(t, etcd.EmbeddedConfig{Dir: dir})
		if _, err := etcd.StartEmbedded(
			t.Context(), etcd.EmbeddedConfig{Dir: dir},
		); err == nil || !strings.Contains(err.Error(), "in use") {
			t.Errorf("second start = %v, want in use", err)
		}
	})
	t.Run("IsAFile", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := etcd.StartEmbedded(t.Context(), etcd.EmbeddedConfig{Dir: file}); err == nil {
			t.Error("a file served as a data folder")
		}
	})
}

// TestStartedAfterAnEndAtOnce: a server whose first start was killed starts the next time. etcd
// would wait for a leader forever.
func TestStartedAfterAnEndAtOnce(t *testing.T) {
	dir := t.TempDir()
	member := filepath.Join(dir, "etcd", "member")
	if err := errors.Join(
		os.MkdirAll(filepath.Join(member, "snap"), 0o700),
		os.WriteFile(filepath.Join(dir, "beginning"), nil, 0o600),
	); err != nil {
		t.Fatal(err)
	}
	w, err := wal.Create(zap.NewNop(), filepath.Join(member, "wal"), nil)
	if err != nil {
		t.Fatal(err)
	}
	closing(t, "the log", w.Close)
	held := mustEnqueue(
		t, openStore(t, startEmbedded(t, etcd.EmbeddedConfig{Dir: dir}), etcd.Config{}),
		newEntry("a", "held"),
	)
	if _, err := os.Stat(filepath.Join(dir, "beginning")); !errors.Is(err, os.ErrNotExist) ||
		held == nil {
		t.Errorf("the store is used, and would be removed at the next start: %v", err)
	}
}

// TestLogHasEverything: what was committed is not taken for nothing where the data file has none of
// it.
func TestLogHasEverything(t *testing.T) {
	dir := t.TempDir()
	held := func(look func(*etcd.Store)) {
		t.Helper()
		conn, err := etcd.StartEmbedded(t.Context(), etcd.EmbeddedConfig{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		defer closing(t, "the connection", conn.Close)
		s, err := etcd.Open(t.Context(), conn, etcd.Config{})
		if err != nil {
			t.Fatal(err)
		}
		defer closing(t, "the store", s.Close)
		look(s)
	}
	held(func(s *etcd.Store) { mustEnqueue(t, s, newEntry("a", "held")) })
	if err := os.Remove(filepath.Join(dir, "etcd", "member", "snap", "db")); err != nil {
		t.Fatal(err)
	}
	held(func(s *etcd.Store) {
		if entries, _, err := s.Queue(
			t.Context(), lock.Ref{Tenant: "acme", Name: "a"},
		); err != nil || len(entries) != 1 {
			t.Errorf("%d entries are there, %v; want the one that holds", len(entries), err)
		}
	})
}

// TestDamagedData: a data file that is cut short or overwritten, and a log that is gone, empty or
// nonsense, are refused in one line that says what to do. Left to etcd they end the process with a
// dump of all goroutines.
func TestDamagedData(t *testing.T) {
	whole := t.TempDir()
	conn, err := etcd.StartEmbedded(t.Context(), etcd.EmbeddedConfig{Dir: whole})
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	db := filepath.Join("etcd", "member", "snap", "db")
	for name, damage := range map[string]func(path string) error{
		"CutShort": func(path string) error { return os.Truncate(path, 8<<10) },
		"Short":    func(path string) error { return os.Truncate(path, 10) },
		"Empty":    func(path string) error { return os.Truncate(path, 0) },
		"Overwritten": func(path string) error {
			f, err := os.OpenFile(path, os.O_WRONLY, 0)
			if err != nil {
				return err
			}
			_, err = f.Write(make([]byte, 16<<10))
			return errors.Join(err, f.Close())
		},
		"InTheMiddle": func(path string) error {
			data, err := os.ReadFile(path)
			for at := 8 << 10; at+64 < len(data); at += 4 << 10 {
				copy(data[at+16:], bytes.Repeat([]byte{0xff}, 32))
			}
			return errors.Join(err, os.WriteFile(path, data, 0o600))
		},
		"NoLog": func(path string) error {
			return os.RemoveAll(filepath.Join(filepath.Dir(path), "..", "wal"))
		},
		"EmptyLog": func(path string) error { return overwriteLog(path, nil) },
		"NonsenseLog": func(path string) error {
			return overwriteLog(path, bytes.Repeat([]byte("junk"), 1000))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.CopyFS(dir, os.DirFS(whole)); err != nil {
				t.Fatal(err)
			}
			if err := damage(filepath.Join(dir, db)); err != nil {
				t.Fatal(err)
			}
			conn, err := etcd.StartEmbedded(t.Context(), etcd.EmbeddedConfig{Dir: dir})
			if err == nil || !strings.Contains(err.Error(), "is damaged") ||
				!strings.Contains(err.Error(), "api restore") {
				t.Errorf("the start = %v, want that the file is damaged, and what to do", err)
			}
			if err == nil {
				closing(t, "the store", conn.Close)
			}
		})
	}
}

// overwriteLog replaces the log beside a data file.
func overwriteLog(db string, data []byte) error {
	logs, err := filepath.Glob(filepath.Join(filepath.Dir(db), "..", "wal", "*.wal"))
	if err != nil || len(logs) != 1 {
		return fmt.Errorf("there are the logs %v: %w", logs, err)
	}
	return os.WriteFile(logs[0], data, 0o600)
}

// TestRestart: what is held and queued is there again after a restart, with the same numbers,
// and new fences are greater.
func TestRestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	conn, err := etcd.StartEmbedded(t.Context(), etcd.EmbeddedConfig{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	s, err := etcd.Open(t.Context(), conn, etcd.Config{})
	if err != nil {
		t.Fatal(err)
	}
	key := string(s.TokenKey())
	first, second := mustEnqueue(t, s, newEntry("a", "first")), mustEnqueue(
		t, s, newEntry("a", "second"),
	)
	closing(t, "the store", s.Close)
	closing(t, "the member", conn.Close)

	again := openStore(t, startEmbedded(t, etcd.EmbeddedConfig{Dir: dir}), etcd.Config{})
	if string(again.TokenKey()) != key {
		t.Error("the key behind the lock tokens has changed")
	}
	queue, _, err := again.Queue(t.Context(), lock.Ref{Tenant: "acme", Name: "a"})
	if err != nil || len(queue) != 2 || queue[0].Number != first.Number ||
		queue[1].Number != second.Number {
		t.Fatalf("queue after the restart = %v, %v; want the two entries", queue, err)
	}
	if err := again.Renew(t.Context(), queue[0]); err != nil {
		t.Errorf("Renew after the restart = %v", err)
	}
	if third := mustEnqueue(t, again, newEntry("a", "third")); third.Number <= second.Number {
		t.Errorf("fence %d after %d", third.Number, second.Number)
	}
}

// Why an entry expired is known to a replica that starts after it.
func TestExpiryIsRecorded(t *testing.T) {
	t.Parallel()
	conn := startEmbedded(t, etcd.EmbeddedConfig{})
	s := openStore(t, conn, etcd.Config{})
	go s.Watch(t.Context(), silent{})
	e := newEntry("a", "expiring")
	e.TTL = etcd.MinTTL
	mustEnqueue(t, s, e)
	eventually(t, "a late follower knows the expiry", func() bool {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		first := make(recalls, 1)
		go openStore(t, conn, etcd.Config{}).Watch(ctx, first)
		for _, ended := range <-first {
			if ended.ID == e.ID {
				return ended.Reason == lock.Expired
			}
		}
		return false
	})
}

// recalls receives the ends that a feed recalls first.
type recalls chan []store.Ended

func (r recalls) Recall(ends []store.Ended, _ bool) {
	select {
	case r <- ends:
	default:
	}
}
func (recalls) Reset(store.Snapshot)         {}
func (recalls) Apply(uint64, []store.Change) {}
func (recalls) Lost(error)                   {}

// A full store refuses new entries. Renewing and releasing go on, with their
// reasons, and it accepts entries again by itself once there is room.
func TestFullStore(t *testing.T) {
	t.Parallel()
	s := openStore(t, startEmbedded(t, etcd.EmbeddedConfig{Quota: 16 << 20}), etcd.Config{})
	reasons := &reasonsFollower{}
	go s.Watch(t.Context(), reasons)
	entries := fill(t, s)
	t.Logf("full with %d entries", len(entries))

	if err := s.Renew(t.Context(), entries[0]); err != nil {
		t.Errorf("Renew in a full store = %v", err)
	}
	for _, e := range entries {
		if err := s.Remove(t.Context(), e, lock.Released); err != nil {
			t.Fatalf("Remove in a full store = %v", err)
		}
	}
	newest, err := s.Newest(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the feed tells the removals", func() bool { return reasons.upTo.Load() >= newest })
	if n := reasons.others.Load(); n > 0 {
		t.Errorf("%d entries left for another reason than their release", n)
	}
	eventually(t, "a store with room accepts entries", func() bool {
		_, _, err := s.Enqueue(t.Context(), newEntry("a", "room"))
		return err == nil
	})
}

// fill writes entries until the store is full.
func fill(t *testing.T, s *etcd.Store) []*lock.Entry {
	t.Helper()
	var entries []*lock.Entry
	for i := range 20_000 {
		e := newEntry(fmt.Sprint("lock-", i), fmt.Sprint("entry-", i))
		e.Metadata = map[string]string{"filler": strings.Repeat("x", lock.MaxMetadataSize-6)}
		e.TTL = time.Hour
		placed, _, err := s.Enqueue(t.Context(), e)
		var refused *lock.Error
		switch {
		case err == nil:
			entries = append(entries, placed)
		case errors.As(err, &refused) && strings.Contains(refused.Detail, "out of space"):
			if refused.OutcomeUnknown || refused.RetryAfter == 0 {
				t.Errorf("refusal = %+v, want it certain and with a time to retry", refused)
			}
			return entries
		default:
			t.Fatalf("Enqueue = %v", err)
		}
	}
	t.Fatal("the store did not fill up")
	return nil
}

// reasonsFollower counts entries that left for another reason than a release.
type reasonsFollower struct {
	upTo   atomic.Uint64
	others atomic.Int64
}

func (f *reasonsFollower) Reset(s store.Snapshot)     { f.upTo.Store(s.Number) }
func (f *reasonsFollower) Recall([]store.Ended, bool) {}
func (f *reasonsFollower) Lost(error)                 {}

func (f *reasonsFollower) Apply(upTo uint64, changes []store.Change) {
	for _, c := range changes {
		if c.Joined == nil && c.Reason != lock.Released {
			f.others.Add(1)
		}
	}
	f.upTo.Store(upTo)
}
