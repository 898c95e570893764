package load

import (
	"syscall"
	"time"
)

// preciseSleep blocks the thread; the kernel wakes it some 50 µs late. The
// runtime's own signals interrupt it, then it sleeps for the rest.
func preciseSleep(d time.Duration) {
	ts := syscall.NsecToTimespec(d.Nanoseconds())
	for syscall.Nanosleep(&ts, &ts) == syscall.EINTR {
	}
}
