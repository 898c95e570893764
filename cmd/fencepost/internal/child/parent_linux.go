package child

import (
	"runtime"
	"syscall"
)

// self returns the path of this program, also if an upgrade has replaced or removed its file.
func self() (string, error) { return "/proc/self/exe", nil }

// endWithParent lets the kernel kill the command, though not the rest of its group, with this
// process, because pkill -KILL fencepost also ends the guard.
func endWithParent(a *syscall.SysProcAttr) {
	runtime.LockOSThread() // the kernel looks at the thread that starts the command
	a.Pdeathsig = syscall.SIGKILL
}
