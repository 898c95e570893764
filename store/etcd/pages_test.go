package etcd

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.etcd.io/bbolt"
)

// TestPagesInACircle: a page that leads to itself, or nowhere, is found to be damaged. bbolt follows
// it until there is no memory left, so that without the check this test ends its process.
func TestPagesInACircle(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		bucket string
		damage func(page []byte, number int)
		why    string
	}{
		"Itself":  {"key", func(page []byte, number int) { binary.NativeEndian.PutUint64(page[24:], uint64(number)) }, "more than one page leads"},
		"Nowhere": {"key", func(page []byte, _ int) { binary.NativeEndian.PutUint16(page[10:], 0) }, "leads nowhere"},
		"Far":     {"key", func(page []byte, _ int) { binary.NativeEndian.PutUint64(page[24:], 1<<40) }, "cannot be read"},
		"Before":  {"meta", func(page []byte, number int) { binary.NativeEndian.PutUint64(page[24:], uint64(number)) }, "more than one page leads"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "db")
			size := damagedBranches(t, path, c.bucket, c.damage)
			followed := func(tx *bbolt.Tx, p *pages) error { return p.follow(tx.Bucket([]byte(c.bucket))) }
			if err := readData(path, size, followed); err == nil || !strings.Contains(err.Error(), c.why) {
				t.Fatalf("follow = %v, want %s", err, c.why)
			}
			if err := checkPages(path, size); err == nil || !strings.Contains(err.Error(), c.why) {
				t.Errorf("checkPages = %v, want %s", err, c.why)
			}
			if _, err := appliedIndex(path); c.bucket == "meta" && err == nil {
				t.Error("how far it is can be told")
			}
		})
	}
}

// damagedBranches makes a data file in which one bucket has many pages, and damages those that lead to others.
func damagedBranches(t *testing.T, path, bucket string, damage func(page []byte, number int)) (size int64) {
	t.Helper()
	change(t, path, func(tx *bbolt.Tx) error {
		b, err := tx.CreateBucket([]byte(bucket))
		for i := 0; i < 2000 && err == nil; i++ {
			err = b.Put(fmt.Appendf(nil, "%08d_%08d", i, i), nil)
		}
		return err
	})
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	damaged, size := 0, int64(len(data))
	for number := 2; number*os.Getpagesize() < len(data); number++ {
		page := data[number*os.Getpagesize():]
		if binary.NativeEndian.Uint16(page[8:]) == kindOfBranch {
			damage(page, number)
			damaged++
		}
	}
	if err := os.WriteFile(path, data, 0o600); err != nil || damaged == 0 {
		t.Fatalf("%d pages were damaged: %v", damaged, err)
	}
	return size
}

func change(t *testing.T, path string, do func(*bbolt.Tx) error) {
	t.Helper()
	db, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Update(do); err != nil {
		t.Error(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// everyPair changes what is in a bucket as a disk does that gives other bytes back: the pages are in order.
func everyPair(t *testing.T, path, bucket string, other func(k, v []byte) ([]byte, []byte)) {
	t.Helper()
	change(t, path, func(tx *bbolt.Tx) error {
		b := tx.Bucket([]byte(bucket))
		pairs := map[string][]byte{}
		if err := b.ForEach(func(k, v []byte) error { pairs[string(k)] = bytes.Clone(v); return nil }); err != nil {
			return err
		}
		for k, v := range pairs {
			if err := b.Delete([]byte(k)); err != nil {
				return err
			}
			if err := b.Put(other([]byte(k), v)); err != nil {
				return err
			}
		}
		return nil
	})
}

func nonsenseValue(k, v []byte) ([]byte, []byte) { return k, bytes.Repeat([]byte{0xff}, len(v)) }
func shortName(k, v []byte) ([]byte, []byte)     { return k[:len(k)-1], v }
func noRevision(k, v []byte) ([]byte, []byte)    { k[8]++; return k, v }
