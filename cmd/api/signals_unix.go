//go:build linux || darwin

package main

import (
	"os"
	"syscall"
)

// ignoredSignals returns those that do not end the process. Go would end it at a write to a stdout
// or stderr whose reader has gone. Operators' tools send the others to have files read again, which
// the server does each second.
func ignoredSignals() []os.Signal {
	return []os.Signal{syscall.SIGPIPE, syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGUSR2}
}
