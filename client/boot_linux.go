package client

import (
	"syscall"
	"time"
	"unsafe"
)

const clockBoottime = 7 // CLOCK_BOOTTIME of linux/time.h, which package syscall does not name

// sinceBoot reads CLOCK_BOOTTIME, or returns 0 if the kernel refuses.
func sinceBoot() time.Duration {
	var t syscall.Timespec
	_, _, failed := syscall.RawSyscall(
		syscall.SYS_CLOCK_GETTIME, clockBoottime, uintptr(unsafe.Pointer(&t)), 0,
	)
	if failed != 0 {
		return 0
	}
	return time.Duration(t.Nano())
}
