package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/fencepost/fencepost/store/etcd"
)

// backup writes a copy of the embedded store to a file, whether its server runs or not.
func backup(ctx context.Context, args []string, env environment, stdout, stderr io.Writer) error {
	var dir, to string
	var force bool
	f := newCommandFlags("api backup", stdout)
	f.StringVar(&dir, "data-dir", "./data", "`folder` of the embedded store")
	f.StringVar(&to, "to", "", "`file` to write the copy to (required)")
	f.BoolVar(&force, "force", false, "replace that file if it is there")
	if _, err := parse(f, args, env); err != nil {
		return err
	}
	if to == "" {
		return usagef("--to: name the file to write the copy to")
	}
	if err := checkOwner(dir); err != nil {
		return err
	}
	size, err := writeWhole(
		to, force, func(w io.Writer) (int64, error) { return etcd.Backup(ctx, dir, w) },
	)
	if err != nil {
		return fmt.Errorf("no backup was made: %w", err)
	}
	fmt.Fprintf(
		stderr,
		"%s has secrets in it: the key behind lock tokens, and those that sign webhooks. Only you can read it; keep it so.\n",
		to,
	)
	_, err = fmt.Fprintf(stdout, "%s: %d bytes\n", to, size)
	return err
}

// checkOwner refuses a data folder of another user's: what we would write there the server
// could not open.
func checkOwner(dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return fmt.Errorf("--data-dir: %w", err)
	}
	if !isOurs(info) {
		return usagef(
			"--data-dir: %s belongs to another user; run this as the user that the server runs as", dir,
		)
	}
	return nil
}

// writeWhole makes a file that only its owner can read, of what write returns the size. The
// file is there when all of it is on the disk, and not before. One that is there already is
// replaced only if force says so.
func writeWhole(
	path string, force bool, write func(io.Writer) (int64, error),
) (size int64, err error) {
	if _, err := os.Lstat(path); err == nil && !force {
		return 0, errThere(path)
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*") // its mode is 0600
	var why *fs.PathError
	if errors.As(err, &why) {
		return 0, fmt.Errorf("make %s: %w", path, why.Err) // without its temporary name
	}
	if err != nil {
		return 0, err
	}
	defer func() {
		if gone := os.Remove(f.Name()); !errors.Is(gone, fs.ErrNotExist) {
			err = errors.Join(err, gone)
		}
	}()
	size, err = write(f)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return 0, err
	}
	if err := putInPlace(f.Name(), path, force); err != nil {
		return 0, err
	}
	return size, etcd.SyncDir(filepath.Dir(path))
}

// putInPlace gives a file its name. Only a link is sure not to replace another one that
// came meanwhile.
func putInPlace(from, to string, force bool) error {
	if force {
		return os.Rename(from, to)
	}
	err := os.Link(from, to)
	if errors.Is(err, fs.ErrExist) {
		return errThere(to)
	}
	return err
}

func errThere(path string) error {
	return fmt.Errorf("%s is there already; --force replaces it", path)
}
