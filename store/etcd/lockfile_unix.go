//go:build linux || darwin

package etcd

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// lockAlone locks an open file until it is closed, or returns errInUse at once if it is locked.
func lockAlone(f *os.File) error {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	switch {
	case errors.Is(err, syscall.EWOULDBLOCK):
		return errInUse
	case err != nil:
		return fmt.Errorf("not lockable: %w", err)
	}
	return nil
}
