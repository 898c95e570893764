package etcd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"go.etcd.io/etcd/etcdutl/v3/snapshot"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"

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
	if info, err := os.Stat(file); err != nil || !info.Mode().IsRegular() {
		return r, errors.Join(fmt.Errorf("%s is not a file with a backup", file), err)
	}
	release, err := claimDir(dir)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, release()) }()
	aside, err := os.MkdirTemp(dir, ".restoring-*")
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
	return r, errors.Join(os.Rename(filepath.Join(aside, dataDir), own), syncDir(dir))
}

// checkEmpty refuses a folder in which there is something. A new volume has a lost+found,
// and an attempt that failed leaves the lock and an empty folder.
func checkEmpty(dir string) error {
	files, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("the data folder cannot be read: %w", err)
	}
	for _, f := range files {
		if name := f.Name(); name == "lost+found" || name == lockFile {
			continue
		}
		if inside, err := os.ReadDir(filepath.Join(dir, f.Name())); f.Name() == dataDir && err == nil && len(inside) == 0 {
			continue
		}
		return fmt.Errorf("the data folder %s is not empty, there is %s in it: a backup is restored into an empty folder only", dir, f.Name())
	}
	return nil
}

// unpack makes a data folder from a backup, with a cluster id of its own.
func unpack(file, dir string) error {
	c := memberConfig(EmbeddedConfig{Dir: dir})
	return snapshot.NewV3(zap.NewNop()).Restore(snapshot.RestoreConfig{
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

func syncDir(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
