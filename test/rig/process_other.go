//go:build !linux

package rig

import "syscall"

// dieWithParent has no equivalent outside Linux: there only Close stops a child.
func dieWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{} }
