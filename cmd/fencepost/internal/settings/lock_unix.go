//go:build unix

package settings

import (
	"os"

	"golang.org/x/sys/unix"
)

// Exclude waits until no other process has the file locked. Closing the file ends the lock.
func Exclude(file *os.File) error {
	for {
		if err := unix.Flock(int(file.Fd()), unix.LOCK_EX); err != unix.EINTR {
			return err
		}
	}
}
