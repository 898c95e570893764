package etcd

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/server/v3/storage/wal"
)

const (
	dataDir  = "etcd" // in the data folder
	lockFile = "lock" // in the data folder

	// beginning is a file in the data folder. It exists until a store is ready for the first time,
	// and names what makes the store: a start or a restore.
	beginning = "beginning"
	starting  = "start"
	restoring = "restore"
)

// claimDir makes the data folder and locks it against other processes; etcd alone would wait for
// the other one without end. Others may share the volume, so claimDir restricts access only to
// the folder with the data.
func claimDir(dir string) (release func() error, err error) {
	own := filepath.Join(dir, dataDir)
	if err := os.MkdirAll(own, 0o700); err != nil {
		return nil, fmt.Errorf("the data folder cannot be made: %w", err)
	}
	if err := os.Chmod(own, 0o700); err != nil {
		return nil, fmt.Errorf("the data folder cannot be closed to others: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(dir, lockFile), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("the data folder %s is not writable: %w", dir, err)
	}
	if err := lockAlone(f); err != nil {
		return nil, errors.Join(fmt.Errorf("the data folder %s is %w", dir, err), f.Close())
	}
	return f.Close, nil
}

var errInUse = errors.New("in use by another process")

// begin records that a start or a restore makes a new store. It removes the remains of an attempt
// that was killed before the store was ready, because etcd would wait for a leader forever. It
// removes data with keys only if a restore wrote it and is repeated. After a first start, or for
// a server, it may be a store that was copied into the folder.
func begin(dir, by string) error {
	member, mark := filepath.Join(dir, dataDir, "member"), filepath.Join(dir, beginning)
	left, err := os.ReadFile(mark)
	switch again := by == restoring && string(left) == restoring; {
	case errors.Is(err, fs.ErrNotExist):
		if _, err := os.Stat(member); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	case err != nil:
		return err
	case !again && hasKeys(filepath.Join(member, "snap", "db")):
		return fmt.Errorf("there is data in %s, and the file %s says that no start or restore has "+
			"finished: if a server has used the data, remove the file; if a restore was killed, "+
			"repeat it in an empty folder", member, mark)
	}
	return errors.Join(os.RemoveAll(member), os.WriteFile(mark, []byte(by), 0o600), SyncDir(dir))
}

// hasKeys reports whether a data file has keys. A file that cannot be read may have some.
func hasKeys(path string) bool {
	if file, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) || err == nil && file.Size() == 0 {
		return false
	}
	found := false
	err := readData(path, func(tx *bbolt.Tx) error {
		if keys := tx.Bucket([]byte("key")); keys != nil {
			first, _ := keys.Cursor().First()
			found = first != nil
		}
		return nil
	})
	return found || err != nil
}

// begun records that the store is ready.
func begun(dir string) error {
	err := os.Remove(filepath.Join(dir, beginning))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return errors.Join(err, SyncDir(dir))
}

// SyncDir flushes a folder's listing to the disk, so that a new or renamed file in it survives a
// crash.
func SyncDir(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

const remedyOfDamage = "restore a backup into an empty folder with api restore, " +
	"or begin with an empty folder, and start with --fence-floor above every fence ever handed out"

// checkData rejects a data file that would end the process. etcd maps it into memory, so a
// missing page is a fault in one of etcd's goroutines. The log next to it has checksums. Without
// the log, etcd would run once on the rest, and then never again.
func checkData(dir string) error {
	member := filepath.Join(dir, dataDir, "member")
	path, log := filepath.Join(member, "snap", "db"), filepath.Join(member, "wal")
	file, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // a new store, or the log has everything
	}
	if err == nil {
		err = checkFile(path, file.Size())
	}
	if err == nil && !wal.Exist(log) {
		err = fmt.Errorf("the log %s that belongs to it is gone", log)
	}
	if err != nil {
		return fmt.Errorf(
			"the embedded store's data file %s is damaged: %w; %s", path, err, remedyOfDamage,
		)
	}
	return nil
}

// checkFile reads every key and value in the first size bytes of a data file.
func checkFile(path string, size int64) error {
	return readData(path, func(tx *bbolt.Tx) error {
		if whole := tx.Size(); size < whole {
			return fmt.Errorf("it has %d bytes and should have %d", size, whole)
		}
		return tx.ForEach(checkBucket)
	})
}

// readData reads a data file. Damage causes a panic of bbolt or a fault in this goroutine; both
// become an error.
func readData(path string, read func(*bbolt.Tx) error) (err error) {
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
	return db.View(read)
}

// checkBucket rejects a bucket with keys out of order, or with a key that is no revision. It
// leaves the values to etcd, which reads each when it starts.
func checkBucket(name []byte, b *bbolt.Bucket) error {
	var before []byte
	return b.ForEach(func(key, _ []byte) error {
		if before != nil && bytes.Compare(before, key) >= 0 {
			return fmt.Errorf("the keys of %q are out of order", name)
		}
		before = key
		if string(name) == "key" {
			return checkRevision(key)
		}
		return nil
	})
}

// checkRevision rejects a revision other than two numbers of 8 bytes with a _ between them,
// optionally followed by a mark of deletion.
func checkRevision(revision []byte) error {
	if n := len(revision); n != 17 && n != 18 || revision[8] != '_' {
		return fmt.Errorf("the name %q is no revision", revision)
	}
	return nil
}
