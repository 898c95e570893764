package child

import (
	"runtime"
	"syscall"
)

// endWithParent lets the kernel kill the command, though not the rest of its group, with this
// process. That counts when the guard cannot kill: pkill -KILL fencepost ends it, too, and a
// process that dies right after the start has not sent it an order.
func endWithParent(a *syscall.SysProcAttr) {
	runtime.LockOSThread() // the kernel looks at the thread that starts the command
	a.Pdeathsig = syscall.SIGKILL
}
