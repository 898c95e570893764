package child

import (
	"runtime"
	"syscall"
)

// endWithParent lets the kernel kill the command, though not the rest of its group, with this
// process, because pkill -KILL fencepost also ends the guard.
func endWithParent(a *syscall.SysProcAttr) {
	runtime.LockOSThread() // the kernel looks at the thread that starts the command
	a.Pdeathsig = syscall.SIGKILL
}
