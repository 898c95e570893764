//go:build unix && !linux

package child

import "syscall"

// endWithParent does nothing: only Linux kills a process with its parent.
func endWithParent(*syscall.SysProcAttr) {}
