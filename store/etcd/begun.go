package etcd

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.uber.org/zap"
)

// clearUnbegun empties the data folder of a first start that ended, as by kill -9, before etcd
// had put down who its members are: with such a folder it waits for a leader for ever. Nothing
// was committed then, so nothing is lost.
func clearUnbegun(dir string) error {
	member := filepath.Join(dir, dataDir, "member")
	if _, err := os.Stat(member); err != nil || begun(member) {
		return nil // others tell what is wrong with it
	}
	if err := os.RemoveAll(member); err != nil {
		return fmt.Errorf("what a first start left in the data folder cannot be removed: %w", err)
	}
	return nil
}

// begun reports whether a member has, or may have, committed anything. What cannot be read
// may have.
func begun(member string) bool {
	if applied, err := appliedIndex(filepath.Join(member, "snap", "db")); err != nil || applied > 0 {
		return true
	}
	if snapshots, err := filepath.Glob(filepath.Join(member, "snap", "*.snap")); err != nil || len(snapshots) > 0 {
		return true
	}
	committed, err := committedIndex(filepath.Join(member, "wal"))
	return err != nil || committed > 0
}

// appliedIndex returns how far a data file is, 0 if there is none, or nothing in it yet.
func appliedIndex(path string) (index uint64, err error) {
	file, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) || err == nil && file.Size() == 0 {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	err = readData(path, file.Size(), func(tx *bbolt.Tx, p *pages) error {
		meta := tx.Bucket([]byte("meta"))
		if meta == nil {
			return nil
		}
		if err := p.follow(meta); err != nil {
			return err
		}
		if v := meta.Get([]byte("consistent_index")); len(v) == 8 {
			index = binary.BigEndian.Uint64(v)
		}
		return nil
	})
	return index, err
}

// committedIndex returns how far a log is, 0 if there is none, or nothing in it yet.
func committedIndex(dir string) (index uint64, err error) {
	if !wal.Exist(dir) {
		return 0, nil
	}
	w, err := wal.OpenForRead(zap.NewNop(), dir, &walpb.Snapshot{})
	if err != nil {
		return 0, err
	}
	defer func() {
		if closed := w.Close(); !errors.Is(closed, os.ErrInvalid) { // of the folder, which was not opened to be read from
			err = errors.Join(err, closed)
		}
	}()
	_, state, _, err := w.ReadAll()
	return state.GetCommit(), err
}
