//go:build unix && !linux

package child

import (
	"os"
	"syscall"
)

// adopts reports whether orphans become children of this process.
func adopts() bool { return os.Getpid() == 1 }

// self returns the path of this program.
func self() (string, error) { return os.Executable() }

// dieWithParent does nothing, as endWithParent.
func dieWithParent() {}

// endWithParent does nothing: only Linux kills a process with its parent.
func endWithParent(*syscall.SysProcAttr) {}
