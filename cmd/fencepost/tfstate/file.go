package tfstate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/fencepost/fencepost/cmd/fencepost/internal/settings"
)

// file is the path of a state. The fence is next to it, in PATH.fence, and stays when the state is
// deleted. Processes that write exclude each other by PATH.lock.
type file string

// newFile resolves links: a state has one fence, whatever path leads to it.
func newFile(path string) (State, error) {
	resolved, err := filepath.EvalSymlinks(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return file(resolved), err
	}
	if _, err := os.Lstat(path); err == nil {
		return nil, fmt.Errorf("%s is a link to a file that does not exist", path)
	}
	folder, err := filepath.EvalSymlinks(filepath.Dir(path))
	if err != nil {
		return nil, fmt.Errorf("the folder of the state: %w", err)
	}
	return file(filepath.Join(folder, filepath.Base(path))), nil
}

func (f file) Raise(ctx context.Context, fence uint64) error {
	return f.alone(ctx, func() error { return f.raise(fence) })
}

func (f file) Write(ctx context.Context, fence uint64, data []byte) error {
	return f.alone(ctx, func() error {
		if err := f.raise(fence); err != nil {
			return err
		}
		if len(data) > 0 {
			return settings.Replace(string(f), data)
		}
		if err := os.Remove(string(f)); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	})
}

func (f file) Read(context.Context) ([]byte, error) {
	opened, err := os.Open(string(f))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	defer func() { _ = opened.Close() }() // nothing was written
	return readAll(opened)
}

// maxFence is more than the bytes of a fence.
const maxFence = 32

// readAll reads a state up to the greatest size, and a fence.
func readAll(from io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(from, MaxSize+maxFence))
	if err == nil && len(data) == MaxSize+maxFence {
		err = fmt.Errorf("it is larger than %d MiB", MaxSize>>20)
	}
	return data, err
}

// raise compares the fence, and keeps it. The caller is alone.
func (f file) raise(fence uint64) error {
	path, known := string(f)+".fence", uint64(0)
	text, err := os.ReadFile(path)
	if err == nil {
		if known, err = strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64); err != nil {
			return fmt.Errorf("%s must be a number, the fence of the last holder", path)
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := compare(fence, known); err != nil || fence == known {
		return err
	}
	return settings.Replace(path, strconv.AppendUint(nil, fence, 10))
}

// alone calls work while no other process does. It returns when ctx ends, although a stopped
// process may keep the file locked; then it does not call work later.
func (f file) alone(ctx context.Context, work func() error) error {
	lock, err := os.OpenFile(string(f)+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() {
		defer func() { _ = lock.Close() }() // which ends the exclusion
		err := settings.Exclude(lock)
		if err = errors.Join(err, ctx.Err()); err == nil {
			err = work()
		}
		done <- err
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return fmt.Errorf("another process locks %s; is it stopped? %w", lock.Name(), ctx.Err())
	}
}
