package rig

import "syscall"

// dieWithParent makes the kernel kill the child when its parent dies, however
// that happens.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
