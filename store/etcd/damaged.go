package etcd

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"google.golang.org/protobuf/proto"
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
	if err := errors.Join(checkPages(path, file.Size()), checkLog(dir, path)); err != nil {
		return fmt.Errorf("the embedded store's data file %s is damaged: %w; %s",
			path, err, remedyOfDamage)
	}
	return nil
}

// checkLog refuses a data file that is further than a log that is gone: etcd begins another
// cluster beside it, of which the old member is still one, and so does not start again after
// that.
func checkLog(dir, path string) error {
	log := filepath.Join(dir, dataDir, "member", "wal")
	if wal.Exist(log) {
		return nil
	}
	if applied, err := appliedIndex(path); err != nil || applied == 0 {
		return err
	}
	return fmt.Errorf("the log %s that belongs to it is gone", log)
}

const remedyOfDamage = "restore a backup into an empty folder with api restore, " +
	"or begin with an empty folder, and start with --fence-floor above every fence ever handed out"

// checkPages reads what is in use of the first size bytes of a data file. The needed buckets
// have to be there.
func checkPages(path string, size int64, needed ...string) error {
	return readData(path, size, func(tx *bbolt.Tx, p *pages) error {
		for _, name := range needed {
			if tx.Bucket([]byte(name)) == nil {
				return fmt.Errorf("there is no %q in it, as in every copy of etcd's", name)
			}
		}
		return tx.ForEach(p.check)
	})
}

// check reads a bucket.
func (p *pages) check(name []byte, b *bbolt.Bucket) error {
	if err := p.follow(b); err != nil {
		return err
	}
	if string(name) == bucketOfKeys {
		return checkBucket(b, checkKeyValue)
	}
	return checkBucket(b, func(_, _ []byte) error { return nil })
}

// bucketOfKeys is where etcd has what it stores, by revision: two numbers of 8 bytes with a _
// between them, and a mark behind those of a deletion.
const (
	bucketOfKeys     = "key"
	lengthOfRevision = 17
	lengthOfMarked   = 18
)

// checkKeyValue refuses what etcd ends the process for: it takes a name apart in a goroutine of its
// own, and a value it cannot read is fatal. The last name of a copy that was restored has no value.
func checkKeyValue(name, value []byte) error {
	if n := len(name); n != lengthOfRevision && n != lengthOfMarked || name[8] != '_' {
		return fmt.Errorf("the name %q is no revision", name)
	}
	if err := proto.Unmarshal(value, &mvccpb.KeyValue{}); err != nil {
		return fmt.Errorf("a value in it cannot be read: %w", err)
	}
	return nil
}

var errOutOfOrder = errors.New("its keys are out of order")

// checkBucket reads every key by itself and looks it up, as the way there is what etcd
// goes, and has keys of its own.
func checkBucket(b *bbolt.Bucket, check func(key, value []byte) error) error {
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
		return check(key, value)
	})
}
