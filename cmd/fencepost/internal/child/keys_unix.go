//go:build unix

package child

import (
	"os"
	"os/signal"
	"syscall"
	"time"
)

// dieWithin bounds the time until the kernel delivers a signal to this process.
const dieWithin = time.Second

func isKey(s syscall.Signal) bool { return s == syscall.SIGINT || s == syscall.SIGQUIT }

// PassOn sends the signal of a key to the group of this process: the terminal sent it to the group
// of the command alone, and a script or make around this process would continue. This process must
// catch it.
func PassOn(key os.Signal) {
	if s, ok := key.(syscall.Signal); ok {
		_ = syscall.Kill(0, s)
	}
}

// Die ends this process by SIGINT, for which a shell looks before it ends itself. It returns for
// another signal, for which no shell looks, and if SIGINT is ignored, as the kernel does for the
// first process of a container.
func Die(s os.Signal) {
	if s != syscall.SIGINT || signal.Ignored(s) || os.Getpid() == 1 {
		return
	}
	signal.Reset(s)
	_ = syscall.Kill(os.Getpid(), syscall.SIGINT)
	<-time.After(dieWithin) // another thread may get it
}
