//go:build unix

package cli

import (
	"os"
	"syscall"
)

// become makes this process another program.
func become(path string, args []string) error { return syscall.Exec(path, args, os.Environ()) }
