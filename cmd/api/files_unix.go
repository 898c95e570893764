//go:build linux || darwin

package main

import (
	"math"
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
