//go:build !linux && !darwin

package main

import (
	"os"
	"syscall"
)

var ignoredSignals = []os.Signal{syscall.SIGHUP}
