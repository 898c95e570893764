package etcd

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/bbolt"
)

// checkData refuses a data file that etcd would die of: it maps the file into memory, so
// that what is missing at its end is a fault of the whole process, in a goroutine whose
// panic nobody can take. It costs nothing by the size of the file. Damage in the middle is
// left to etcd, and so is the log beside it, which has checksums.
func checkData(dir string) error {
	path := filepath.Join(dir, dataDir, "member", "snap", "db")
	file, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil // a new store, or one whose log has everything
	}
	if err != nil {
		return fmt.Errorf("the embedded store's data cannot be read: %w", err)
	}
	whole, err := sizeOf(path)
	if err != nil {
		return fmt.Errorf("the embedded store's data file %s is damaged: %w", path, err)
	}
	if file.Size() < whole {
		return fmt.Errorf("the embedded store's data file %s is damaged: it has %d bytes and should have %d", path, file.Size(), whole)
	}
	return nil
}

// sizeOf returns how many bytes of a data file are in use, by what it says itself.
func sizeOf(path string) (size int64, err error) {
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true, Timeout: time.Second})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	return size, db.View(func(tx *bbolt.Tx) error { size = tx.Size(); return nil })
}
