//go:build unix && !linux

package child

import "syscall"

// attributes give the command a process group. It outlives this process if that is killed.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
