package etcd

import (
	"bufio"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"go.etcd.io/etcd/etcdutl/v3/snapshot"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/fencepost/fencepost/store"
)

// RestoredBump is added to the revision of a store that is restored, so that what was written
// after its backup was made, up to so many writes, has no number that comes again.
const RestoredBump = 1_000_000_000

// Restored is what a backup had in it.
type Restored struct {
	// Highest is a number that no fence handed out before the backup was made is above.
	Highest uint64
}

// Restore makes the embedded store in the data folder dir from a backup, which is a file as
// [Backup] or etcdctl writes it, with a checksum, and proves that it starts. The folder has
// to be empty, and stays so if there is an error. The store is another cluster then: nothing
// is granted in it until it is opened with a fence floor.
func Restore(ctx context.Context, file, dir string) (r Restored, err error) {
	if err := checkEmpty(dir); err != nil {
		return r, err
	}
	if err := checkBackup(file); err != nil {
		return r, err
	}
	release, err := claimDir(dir)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, release()) }()
	if err := removeAside(dir); err != nil {
		return r, err
	}
	aside, err := os.MkdirTemp(dir, asidePrefix+"*")
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(aside)) }()
	if err := unpack(file, aside); err != nil {
		return r, fmt.Errorf("%s cannot be restored: %w", file, err)
	}
	if r, err = inspect(ctx, aside); err != nil {
		return r, fmt.Errorf("what is in %s cannot be used: %w", file, err)
	}
	own := filepath.Join(dir, dataDir)
	if err := os.Remove(own); err != nil { // the empty one
		return r, err
	}
	return r, errors.Join(os.Rename(filepath.Join(aside, dataDir), own), SyncDir(dir))
}

// asidePrefix begins the name of the folder in which a backup is unpacked.
const asidePrefix = ".restoring-"

// removeAside removes what an attempt left that was killed. The folder is held, so that no other
// one is at it.
func removeAside(dir string) error {
	files, err := os.ReadDir(dir)
	for _, f := range files {
		if strings.HasPrefix(f.Name(), asidePrefix) {
			err = errors.Join(err, os.RemoveAll(filepath.Join(dir, f.Name())))
		}
	}
	return err
}

// checkEmpty refuses a folder in which there is something. A new volume has a lost+found, and an
// attempt that failed leaves the lock, an empty folder, and what it unpacked if it was killed.
func checkEmpty(dir string) error {
	files, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("the data folder cannot be read: %w", err)
	}
	for _, f := range files {
		if name := f.Name(); name == "lost+found" || name == lockFile || strings.HasPrefix(name, asidePrefix) {
			continue
		}
		if inside, err := os.ReadDir(filepath.Join(dir, f.Name())); f.Name() == dataDir && err == nil && len(inside) == 0 {
			continue
		}
		return fmt.Errorf("the data folder %s is not empty, there is %s in it: a backup is restored into an empty folder only", dir, f.Name())
	}
	return nil
}

// sectorSize is what the size of a data file is a multiple of.
const sectorSize = 512

// inEveryCopy are buckets without which etcd's code ends the process. A member that was killed
// while it made its data file starts without them.
func inEveryCopy() []string { return []string{"key", "lease", "meta", "members", "members_removed"} }

// checkBackup refuses a file that is no whole backup, before etcd's own code reads it: that
// speaks of its own flags, and ends the process where a page points nowhere.
func checkBackup(file string) error {
	info, err := os.Stat(file)
	if err != nil || !info.Mode().IsRegular() {
		return errors.Join(fmt.Errorf("%s is not a file with a backup", file), err)
	}
	size := info.Size() - sha256.Size
	if size <= 0 || size%sectorSize != 0 {
		return fmt.Errorf("%s is not a whole backup: it has %d bytes, and a database with a checksum behind it has another number; "+
			"it was cut short, or neither api backup nor etcdctl snapshot save wrote it; use another one", file, info.Size())
	}
	if err := checkSum(file, size); err != nil {
		return fmt.Errorf("%s cannot be restored: %w", file, err)
	}
	if err := checkPages(file, size, inEveryCopy()...); err != nil {
		return fmt.Errorf("%s cannot be restored: %w; use another backup", file, err)
	}
	return nil
}

// checkSum compares the checksum behind the first size bytes with theirs.
func checkSum(file string, size int64) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // it was only read
	err = readCopy(bufio.NewReaderSize(f, 1<<20), io.Discard, size+sha256.Size)
	if errors.Is(err, errWrongSum) {
		return errAltered
	}
	return err
}

var errAltered = errors.New("the checksum at its end is not that of what is before it: it was cut short, or altered since it was written; use another backup")

// unpack makes a data folder from a backup, with a cluster id of its own. Where etcd's code
// would end the process for what it finds in the backup, that is an error.
func unpack(file, dir string) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("etcd cannot use what is in it: %v; use another backup", r)
		}
	}()
	c := memberConfig(EmbeddedConfig{Dir: dir})
	return snapshot.NewV3(zap.NewNop().WithOptions(zap.WithFatalHook(zapcore.WriteThenPanic))).Restore(snapshot.RestoreConfig{
		SnapshotPath: file, Name: c.Name, OutputDataDir: c.Dir,
		PeerURLs: peerURLs(c), InitialCluster: c.InitialCluster, InitialClusterToken: c.InitialClusterToken,
		RevisionBump: RestoredBump, MarkCompacted: true,
	})
}

func peerURLs(c *embed.Config) (urls []string) {
	for _, u := range c.AdvertisePeerUrls {
		urls = append(urls, u.String())
	}
	return urls
}

// inspect starts what was restored, which changes nothing of ours in it, and reads it.
func inspect(ctx context.Context, dir string) (r Restored, err error) {
	conn, err := StartEmbedded(ctx, EmbeddedConfig{Dir: dir})
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	keys := newKeyspace(conn, Config{Timeout: startTimeout})
	m, header, err := (&metaKeeper{keyspace: keys}).readAll(ctx)
	if err != nil {
		return r, err
	}
	if !m.complete() {
		return r, errors.New("it is not a backup of Fencepost's: the store's own records are not there")
	}
	if err := store.NewTrust(0).Understands(m.form); err != nil {
		return r, err
	}
	r.Highest = max(uint64(header.Revision)-RestoredBump+m.floor, m.distrust)
	return r, nil
}

// SyncDir has what a folder lists on the disk: a file that was made in it, or was given another
// name, is there after a crash.
func SyncDir(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
