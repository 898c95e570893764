package etcd

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

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
	err = answered(func() (err error) { held, _, err = s.Enqueue(t.Context(), testEntry("a", "held")); return err })
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
	if _, err := Restore(t.Context(), file, dir); err == nil || !strings.Contains(err.Error(), "not empty") {
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
	if err := errors.Join(answered(told), s.Close(), os.WriteFile(file, backupOf(t, dir), 0o600)); err != nil {
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
		"Damaged":    {damaged, "sha256"},
		"CutShort":   {data[:len(data)-4096], "sha256"},
		"WithoutSum": {data[:len(data)-32], "missing hash"},
		"Empty":      {nil, "cannot be restored"},
	} {
		t.Run(name, func(t *testing.T) {
			file, dir := filepath.Join(t.TempDir(), "copy"), shortDir(t)
			if err := os.WriteFile(file, c.data, 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := Restore(t.Context(), file, dir); err == nil || !strings.Contains(err.Error(), c.why) {
				t.Errorf("Restore = %v, want %s", err, c.why)
			}
			if err := checkEmpty(dir); err != nil {
				t.Error(err)
			}
		})
	}
	t.Run("NotEmpty", func(t *testing.T) {
		dir := shortDir(t)
		if err := os.WriteFile(filepath.Join(dir, "something"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Restore(t.Context(), good, dir); err == nil || !strings.Contains(err.Error(), "something") {
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
		if _, err := Restore(t.Context(), file, dir); err == nil || !strings.Contains(err.Error(), "not a backup of Fencepost") {
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
