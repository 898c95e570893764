package rig

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// startAlone waits until no other process of this machine starts servers, and keeps
// them from it until unlock. Servers that start at once take all processors for
// seconds, and what runs beside them misses its deadlines.
func startAlone(ctx context.Context) (unlock func() error, err error) {
	dir, err := ZooKeeperCache()
	if err != nil {
		return nil, err
	}
	dir = filepath.Join(dir, "start")
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return nil, err
	}
	return lockFolder(ctx, dir)
}

// lockFolder keeps other processes out of the folder until unlock.
func lockFolder(ctx context.Context, dir string) (unlock func() error, err error) {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		if err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err == nil {
			return f.Close, nil
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), f.Close())
		case <-tick.C:
		}
	}
}
