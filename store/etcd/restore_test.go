package etcd

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/fencepost/fencepost/lock"
)

// backupFile makes a store with one entry that is held, and copies it.
func backupFile(t *testing.T, dir string) (file string, held *lock.Entry, tokenKey []byte) {
	t.Helper()
	conn, _ := startIn(t, EmbeddedConfig{Dir: dir})
	defer end(t, conn)
	s, err := Open(t.Context(), conn, Config{FenceFloor: 5000})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	err = answered(
		func() (err error) { held, _, err = s.Enqueue(t.Context(), testEntry("a", "held")); return err },
	)
	if err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(t.TempDir(), "copy")
	if err := os.WriteFile(file, backupOf(t, dir), 0o600); err != nil {
		t.Fatal(err)
	}
	return file, held, s.TokenKey()
}

// TestRestore: what was in the backup is there again, with its token key; nothing is granted
// before a floor above the fences of the lost time is given, and then fences are above it.
func TestRestore(t *testing.T) {
	file, held, tokenKey := backupFile(t, shortDir(t))
	dir := shortDir(t)
	made, err := Restore(t.Context(), file, dir)
	if err != nil {
		t.Fatal(err)
	}
	if made.Highest < held.Number || made.Highest > held.Number+100 {
		t.Errorf("the highest fence is %d, and one that is held has %d", made.Highest, held.Number)
	}
	if _, err := Restore(t.Context(), file, dir); err == nil ||
		!strings.Contains(err.Error(), "not empty") {
		t.Errorf("Restore over a store = %v", err)
	}
	conn, _ := startIn(t, EmbeddedConfig{Dir: dir})
	defer end(t, conn)
	enter := func(floor uint64, id string) (uint64, error) {
		s, err := Open(t.Context(), conn, Config{FenceFloor: floor})
		if err != nil {
			return 0, err
		}
		if !bytes.Equal(s.TokenKey(), tokenKey) {
			t.Error("the token key is another one")
		}
		e, _, err := s.Enqueue(t.Context(), testEntry("b", id))
		if err != nil {
			return 0, errors.Join(err, s.Close())
		}
		return e.Number, s.Close()
	}
	if _, err := enter(0, "early"); err == nil || !strings.Contains(err.Error(), "--fence-floor") {
		t.Errorf("without a floor: %v", err)
	}
	floor := made.Highest + RestoredBump
	number, err := enter(floor, "later")
	if err != nil || number <= floor {
		t.Errorf("with the floor %d: %d, %v", floor, number, err)
	}
}

// TestFloorOfARestore: a floor above the fences of the backup is not told to be low, although what
// is restored is at greater revisions. One below them is.
func TestFloorOfARestore(t *testing.T) {
	t.Parallel()
	file, _, _ := backupFile(t, shortDir(t))
	for name, c := range map[string]struct {
		above int64
		told  bool
	}{"above": {1000, false}, "below": {-1, true}} {
		t.Run(name, func(t *testing.T) {
			dir := shortDir(t)
			made, err := Restore(t.Context(), file, dir)
			if err != nil {
				t.Fatal(err)
			}
			conn, _ := startIn(t, EmbeddedConfig{Dir: dir})
			defer end(t, conn)
			var log bytes.Buffer
			s, err := Open(t.Context(), conn, Config{
				FenceFloor: made.Highest + uint64(c.above),
				Logger:     slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn})),
			})
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			if told := strings.Contains(log.String(), "the fence floor is below"); told != c.told {
				t.Errorf("it is said %q", log.String())
			}
		})
	}
}

// TestRestoreOfADistrusted: a backup of a store that is known to lack its past says which number
// that had reached: no fence may be below it.
func TestRestoreOfADistrusted(t *testing.T) {
	const lost = 7_000_000_000
	dir, file := shortDir(t), filepath.Join(t.TempDir(), "copy")
	conn, _ := startIn(t, EmbeddedConfig{Dir: dir})
	defer end(t, conn)
	s, err := Open(t.Context(), conn, Config{})
	if err != nil {
		t.Fatal(err)
	}
	told := func() error { return s.Distrust(t.Context(), lost) }
	if err := errors.Join(
		answered(told), s.Close(), os.WriteFile(file, backupOf(t, dir), 0o600),
	); err != nil {
		t.Fatal(err)
	}
	if made, err := Restore(t.Context(), file, shortDir(t)); err != nil || made.Highest != lost {
		t.Errorf("Restore = %+v, %v; want the number that was lost", made, err)
	}
}

// TestRestoreRefuses: what is no whole backup of ours, a folder that is not empty; and it
// leaves nothing there.
func TestRestoreRefuses(t *testing.T) {
	good, _, _ := backupFile(t, shortDir(t))
	data, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	damaged := bytes.Clone(data)
	damaged[len(damaged)/2]++
	for name, c := range map[string]struct {
		data []byte
		why  string
	}{
		"Damaged":    {damaged, "altered since"},
		"CutShort":   {data[:len(data)-4096], "cut short"},
		"CutToAByte": {data[:1], "cut short"},
		"WithoutSum": {data[:len(data)-32], "neither api backup nor etcdctl"},
		"Empty":      {nil, "0 bytes"},
		"Foreign": {
			bytes.Repeat([]byte("CREATE TABLE locks;\n"), 999), "neither api backup nor etcdctl",
		},
		// With a checksum that is right, as when the copy was made of what was damaged.
		"Half":         {summed(data[:len(data)/2&^4095]), "and should have"},
		"AlteredPages": {summed(overwritten(data[:len(data)-32])), "use another backup"},
		"Zeros":        {summed(make([]byte, 1<<14)), "invalid database"},
		"NoEtcd":       {summed(emptyDatabase(t)), "etcd cannot use what is in it"},
		"NoValues":     {summed(otherDatabase(t)), "is no revision"},
		"Values": {
			summed(changed(t, data, "key", nonsenseValue)), "failed to unmarshal mvccpb.KeyValue",
		},
	} {
		t.Run(name, func(t *testing.T) {
			file, dir := filepath.Join(t.TempDir(), "copy"), shortDir(t)
			if err := os.WriteFile(file, c.data, 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := Restore(t.Context(), file, dir)
			if err == nil || !strings.Contains(err.Error(), c.why) {
				t.Fatalf("Restore = %v, want %s", err, c.why)
			}
			if err := checkEmpty(dir); err != nil {
				t.Error(err)
			}
			if !strings.Contains(err.Error(), file) || !strings.Contains(err.Error(), "use another") {
				t.Errorf("%v does not name the file, and what to do", err)
			}
		})
	}
	t.Run("LastWords", func(t *testing.T) { // what no check of ours finds
		file := filepath.Join(t.TempDir(), "copy")
		if err := os.WriteFile(file, summed(otherDatabase(t)), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := unpack(file, shortDir(t)); err == nil ||
			!strings.Contains(err.Error(), "etcd cannot use what is in it") {
			t.Errorf("unpack = %v", err)
		}
	})
	t.Run("NotEmpty", func(t *testing.T) {
		dir := shortDir(t)
		if err := os.WriteFile(filepath.Join(dir, "something"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Restore(t.Context(), good, dir); err == nil ||
			!strings.Contains(err.Error(), "something") {
			t.Errorf("Restore = %v", err)
		}
	})
	t.Run("NotOurs", func(t *testing.T) {
		from, dir := shortDir(t), shortDir(t)
		conn, m := startIn(t, EmbeddedConfig{Dir: from})
		put(t, m, "a", []byte("of somebody else"))
		end(t, conn)
		file := filepath.Join(t.TempDir(), "copy")
		if err := os.WriteFile(file, backupOf(t, from), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Restore(t.Context(), file, dir); err == nil ||
			!strings.Contains(err.Error(), "not a backup of Fencepost") {
			t.Errorf("Restore = %v", err)
		}
	})
	t.Run("GivenUp", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		dir := shortDir(t)
		if _, err := Restore(ctx, good, dir); err == nil || checkEmpty(dir) != nil {
			t.Errorf("Restore = %v, and then %v", err, checkEmpty(dir))
		}
	})
}

// TestRestoreAgain: what an attempt left that was killed is no obstacle, and goes.
func TestRestoreAgain(t *testing.T) {
	file, _, _ := backupFile(t, shortDir(t))
	dir := shortDir(t)
	left := filepath.Join(dir, dataDir, "member", "left")
	if err := errors.Join(
		os.MkdirAll(left, 0o700), os.WriteFile(filepath.Join(dir, beginning), nil, 0o600),
	); err != nil {
		t.Fatal(err)
	}
	if _, err := Restore(t.Context(), file, dir); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(left); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("what was left is still there: %v", err)
	}
}

// TestUsedDataIsNotRemoved: a mark of a start that did not finish removes no data with keys, as of
// a store that was copied into the folder. A repeated restore replaces what the killed one wrote.
func TestUsedDataIsNotRemoved(t *testing.T) {
	file, _, _ := backupFile(t, shortDir(t))
	dir := shortDir(t)
	if _, err := Restore(t.Context(), file, dir); err != nil {
		t.Fatal(err)
	}
	mark := func(by string) {
		if err := os.WriteFile(filepath.Join(dir, beginning), []byte(by), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	mark(starting)
	if conn, err := StartEmbedded(t.Context(), EmbeddedConfig{Dir: dir}); err == nil {
		t.Error("a server removed the data", conn.Close())
	}
	if _, err := Restore(t.Context(), file, dir); err == nil {
		t.Error("a restore removed the data of a server")
	}
	mark(restoring)
	if conn, err := StartEmbedded(t.Context(), EmbeddedConfig{Dir: dir}); err == nil {
		t.Error("a server removed what a restore wrote", conn.Close())
	}
	if _, err := Restore(t.Context(), file, dir); err != nil {
		t.Error("the restore cannot be repeated:", err)
	}
}

// changed is a copy, without its checksum, in which what is in a bucket is other than it was.
func changed(
	t *testing.T, copied []byte, bucket string, other func(k, v []byte) ([]byte, []byte),
) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "db")
	if err := os.WriteFile(path, copied[:len(copied)-sha256.Size], 0o600); err != nil {
		t.Fatal(err)
	}
	everyPair(t, path, bucket, other)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// summed is a data file with its checksum behind it.
func summed(data []byte) []byte {
	sum := sha256.Sum256(data)
	return append(bytes.Clone(data), sum[:]...)
}

// overwritten has nonsense in each page but the two that say where the others are.
func overwritten(data []byte) []byte {
	damaged := bytes.Clone(data)
	for at := 2 * 4096; at < len(data); at += 4096 {
		copy(damaged[at+16:], bytes.Repeat([]byte{0xff}, 32))
	}
	return damaged
}

// emptyDatabase is a data file as etcd makes it first, and otherDatabase one of something else
// that has all that etcd's has, but for the contents.
func emptyDatabase(t *testing.T) []byte { return database(t) }

func otherDatabase(t *testing.T) []byte {
	return database(t, "key", "lease", "meta", "members", "members_removed")
}

func database(t *testing.T, buckets ...string) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "db")
	db, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		for _, name := range buckets {
			b, err := tx.CreateBucket([]byte(name))
			if err := errors.Join(err, b.Put([]byte("some"), []byte("thing"))); err != nil {
				return err
			}
		}
		return nil
	})
	data, readErr := os.ReadFile(path)
	if err := errors.Join(err, db.Close(), readErr); err != nil {
		t.Fatal(err)
	}
	return data
}
