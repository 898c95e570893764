package etcd

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	"go.etcd.io/bbolt"
)

// checkData refuses a data file that etcd would die of: it maps the file into memory, so
// that what is missing or points nowhere is a fault of the whole process, in a goroutine
// whose panic nobody can take. So all that is in use is read here first. The log beside it
// has checksums.
func checkData(dir string) error {
	path := filepath.Join(dir, dataDir, "member", "snap", "db")
	file, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil // a new store, or one whose log has everything
	}
	if err != nil {
		return fmt.Errorf("the embedded store's data cannot be read: %w", err)
	}
	if err := checkPages(path, file.Size()); err != nil {
		return fmt.Errorf("the embedded store's data file %s is damaged: %w; %s", path, err, remedyOfDamage)
	}
	return nil
}

const remedyOfDamage = "restore a backup into an empty folder with api restore, or begin with an empty folder, and start with --fence-floor above every fence ever handed out"

// checkPages reads what is in use of the first size bytes of a data file. What is damaged in
// it shows as a panic of bbolt's or as a fault, in this goroutine. The needed buckets have to
// be there.
func checkPages(path string, size int64, needed ...string) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("what is in it is no database of etcd's: %v", r)
		}
	}()
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true, Timeout: time.Second})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	return db.View(func(tx *bbolt.Tx) error {
		if whole := tx.Size(); size < whole {
			return fmt.Errorf("it has %d bytes and should have %d", size, whole)
		}
		for _, name := range needed {
			if tx.Bucket([]byte(name)) == nil {
				return fmt.Errorf("there is no %q in it, as in every copy of etcd's", name)
			}
		}
		return tx.ForEach(checkBucket)
	})
}

var errOutOfOrder = errors.New("its keys are out of order")

// checkBucket reads every key by itself and looks it up, as the way there is what etcd
// goes, and has keys of its own.
func checkBucket(_ []byte, b *bbolt.Bucket) error {
	lookup := b.Cursor()
	var before []byte
	return b.ForEach(func(key, value []byte) error {
		if before != nil && bytes.Compare(before, key) >= 0 {
			return errOutOfOrder
		}
		if found, same := lookup.Seek(key); !bytes.Equal(found, key) || !bytes.Equal(same, value) {
			return errOutOfOrder
		}
		before = key
		return nil
	})
}
