//go:build linux || darwin

package main

import (
	"io/fs"
	"math"
	"os"
	"syscall"
)

// openFiles is how many files this process may have open. Go has raised it to what it
// may be.
func openFiles() uint64 {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil {
		return math.MaxUint64
	}
	return limit.Cur
}

// asItIs opens a file itself: not the target of a link, and without waiting for a writer of a
// named pipe.
const asItIs = syscall.O_NOFOLLOW | syscall.O_NONBLOCK

// isOurs reports whether a file belongs to the user that this process runs as.
func isOurs(info fs.FileInfo) bool {
	s, ok := info.Sys().(*syscall.Stat_t)
	return !ok || int(s.Uid) == os.Geteuid()
}
