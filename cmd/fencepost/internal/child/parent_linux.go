package child

import (
	"os"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// adopts reports whether orphans become children of this process: it is the first process of a
// container, or a subreaper.
func adopts() bool {
	var is int32
	err := unix.Prctl(unix.PR_GET_CHILD_SUBREAPER, uintptr(unsafe.Pointer(&is)), 0, 0, 0)
	return os.Getpid() == 1 || err == nil && is != 0
}

// self returns the path of this program, also if an upgrade has replaced or removed its file.
func self() (string, error) { return "/proc/self/exe", nil }

// dieWithParent repeats, for the thread that becomes the command, what endWithParent asked for: a
// signal at the parent's death belongs to a thread. A parent that died before has closed the gate.
func dieWithParent() {
	runtime.LockOSThread()
	_ = unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(syscall.SIGKILL), 0, 0, 0) // as endWithParent did
}

// endWithParent lets the kernel kill the command, though not the rest of its group, with this
// process, because pkill -KILL fencepost also ends the guard.
func endWithParent(a *syscall.SysProcAttr) {
	runtime.LockOSThread() // the kernel looks at the thread that starts the command
	a.Pdeathsig = syscall.SIGKILL
}
