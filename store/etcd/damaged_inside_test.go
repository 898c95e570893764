package etcd

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"
)

// TestDamagedInside: what is in pages that are in order, and etcd ends the process for, without
// a word where there is no log, is refused by an error that says what to do.
func TestDamagedInside(t *testing.T) {
	whole := shortDir(t)
	conn, m := startIn(t, EmbeddedConfig{Dir: whole})
	put(t, m, "a", []byte("something"))
	end(t, conn)
	type change = func(k, v []byte) ([]byte, []byte)
	copied := func(t *testing.T, bucket string, other change) (dir string) {
		t.Helper()
		dir = shortDir(t)
		if err := os.CopyFS(dir, os.DirFS(whole)); err != nil {
			t.Fatal(err)
		}
		everyPair(t, filepath.Join(dir, dataDir, "member", "snap", "db"), bucket, other)
		return dir
	}
	refused := func(t *testing.T, conn *Conn, err error, why string) {
		t.Helper()
		if err == nil {
			end(t, conn)
		}
		if err == nil || !strings.Contains(err.Error(), why) ||
			!strings.Contains(err.Error(), "api restore") {
			t.Errorf("the start = %v, want %s, and what to do", err, why)
		}
	}
	t.Run("Values", func(t *testing.T) { // what no check of ours finds
		conn, err := StartEmbedded(t.Context(), EmbeddedConfig{Dir: copied(t, "key", nonsenseValue)})
		refused(t, conn, err, "failed to unmarshal mvccpb.KeyValue: ")
	})
	t.Run("ShortNames", func(t *testing.T) {
		conn, err := StartEmbedded(t.Context(), EmbeddedConfig{Dir: copied(t, "key", shortName)})
		refused(t, conn, err, "is no revision")
	})
	t.Run("OtherNames", func(t *testing.T) {
		conn, err := StartEmbedded(t.Context(), EmbeddedConfig{Dir: copied(t, "key", noRevision)})
		refused(t, conn, err, "is no revision")
	})
	t.Run("NeverReady", func(t *testing.T) {
		ctx, cancel := context.WithDeadline(t.Context(), time.Now())
		defer cancel()
		conn, err := StartEmbedded(ctx, EmbeddedConfig{Dir: copied(t, "meta", nonsenseValue)})
		refused(t, conn, err, "deadline exceeded")
	})
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

// everyPair changes what is in a bucket as a disk does that gives other bytes back: the pages are
// in order.
func everyPair(t *testing.T, path, bucket string, other func(k, v []byte) ([]byte, []byte)) {
	t.Helper()
	change(t, path, func(tx *bbolt.Tx) error {
		b := tx.Bucket([]byte(bucket))
		pairs := map[string][]byte{}
		if err := b.ForEach(
			func(k, v []byte) error { pairs[string(k)] = bytes.Clone(v); return nil },
		); err != nil {
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
