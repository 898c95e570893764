package settings

import (
	"os"

	"golang.org/x/sys/windows"
)

// Exclude waits until no other process has the file locked. Closing the file ends the lock.
func Exclude(file *os.File) error {
	return windows.LockFileEx(
		windows.Handle(file.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK, 0, 1, 0, &windows.Overlapped{},
	)
}
