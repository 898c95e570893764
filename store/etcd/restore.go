package etcd

import (
	"bufio"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"go.etcd.io/etcd/etcdutl/v3/snapshot"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/store/engine"
)

// RestoredBump is added to the revision of a restored store, so that up to that many writes after
// the backup do not have their numbers used again.
const RestoredBump = 1_000_000_000

// Restored describes the content of a backup.
type Restored struct {
	// Highest is at least every fence that was issued before the backup.
	Highest uint64
}

// Restore makes the embedded store in the empty data folder dir from a backup, and proves that it
// starts. The backup is a file from [Backup] or etcdctl, with a checksum. The store is then
// another cluster: it grants nothing until it is opened with a fence floor.
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
	if err := begin(dir, restoring); err != nil { // repeats a restore that was killed
		return r, err
	}
	if err := unpack(file, dir); err != nil {
		return r, errors.Join(fmt.Errorf("%s cannot be restored: %w", file, err), begin(dir, restoring))
	}
	if r, err = inspect(ctx, dir); err != nil {
		return r, errors.Join(
			fmt.Errorf("what is in %s cannot be used: %w; use another backup", file, err), begin(dir, restoring))
	}
	return r, begun(dir)
}

// checkEmpty rejects a folder that is not empty. It allows a new volume's lost+found, and what a
// failed attempt leaves: the lock file, an empty folder, and the unpacked files of a killed
// attempt.
func checkEmpty(dir string) error {
	files, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("the data folder cannot be read: %w", err)
	}
	_, notBegun := os.Stat(filepath.Join(dir, beginning))
	for _, f := range files {
		switch f.Name() {
		case "lost+found", lockFile, beginning:
			continue
		case dataDir:
			inside, err := os.ReadDir(filepath.Join(dir, dataDir))
			if notBegun == nil || err == nil && len(inside) == 0 {
				continue
			}
		}
		return fmt.Errorf("the data folder %s is not empty, there is %s in it: "+
			"a backup is restored into an empty folder only", dir, f.Name())
	}
	return nil
}

// sectorSize divides the size of each data file.
const sectorSize = 512

// checkBackup rejects an incomplete backup before etcd's own code reads it, because that ends the
// process where a page points nowhere.
func checkBackup(file string) error {
	info, err := os.Stat(file)
	if err != nil || !info.Mode().IsRegular() {
		return errors.Join(fmt.Errorf("%s is not a file with a backup", file), err)
	}
	size := info.Size() - sha256.Size
	if size <= 0 || size%sectorSize != 0 {
		return fmt.Errorf("%s is not a whole backup: it has %d bytes, and a database with its checksum "+
			"has another number; it was cut short, or neither api backup nor etcdctl snapshot save "+
			"wrote it; use another one", file, info.Size())
	}
	if err := checkSum(file, size); err != nil {
		return fmt.Errorf("%s cannot be restored: %w", file, err)
	}
	if err := checkFile(file, size); err != nil {
		return fmt.Errorf("%s cannot be restored: %w; use another backup", file, err)
	}
	return nil
}

// checkSum compares the checksum after the first size bytes with theirs.
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

var errAltered = errors.New("the checksum at its end is wrong: it was cut short, " +
	"or altered since it was written; use another backup")

// unpack makes a data folder from a backup, with a new cluster id. Where etcd's code would end
// the process, unpack returns an error.
func unpack(file, dir string) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("etcd cannot use what is in it: %v; use another backup", r)
		}
	}()
	c := memberConfig(EmbeddedConfig{Dir: dir})
	log := zap.NewNop().WithOptions(zap.WithFatalHook(zapcore.WriteThenPanic))
	return snapshot.NewV3(log).Restore(snapshot.RestoreConfig{
		SnapshotPath: file, Name: c.Name, OutputDataDir: c.Dir, PeerURLs: peerURLs(c),
		InitialCluster: c.InitialCluster, InitialClusterToken: c.InitialClusterToken,
		RevisionBump: RestoredBump, MarkCompacted: true,
	})
}

func peerURLs(c *embed.Config) (urls []string) {
	for _, u := range c.AdvertisePeerUrls {
		urls = append(urls, u.String())
	}
	return urls
}

// inspect starts the restored store, which changes none of Fencepost's keys in it, and reads it.
func inspect(ctx context.Context, dir string) (r Restored, err error) {
	server, err := startMember(ctx, EmbeddedConfig{Dir: dir})
	if err != nil {
		return r, err
	}
	conn, _ := newMember(server)
	defer func() { err = errors.Join(err, conn.Close()) }()
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	keys := newKeyspace(conn, Config{Timeout: startTimeout})
	d := &driver{keyspace: keys}
	own, err := engine.NewMeta(engine.MetaConfig{Driver: d, Trust: keys.trust}).Ask(ctx)
	if errors.Is(err, store.ErrRecords) {
		_, earlier := d.Used(ctx)
		return r, cmp.Or(
			earlier, errors.New("it is not a backup of Fencepost's: the store's own record is not there"),
		)
	}
	if err == nil {
		err = store.CheckForm(own.Form)
	}
	if err != nil {
		return r, err
	}
	r.Highest = max(own.Position-RestoredBump+own.Floor, own.Distrust)
	return r, nil
}
