//go:build unix

package claims

import (
	"os"

	"golang.org/x/sys/unix"
)

// exclude waits until no other process has the file locked. Closing the file ends the lock.
func exclude(file *os.File) error {
	for {
		if err := unix.Flock(int(file.Fd()), unix.LOCK_EX); err != unix.EINTR {
			return err
		}
	}
}
