//go:build unix

package child

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// guardEvery bounds how long the guard takes a suspension of the machine for no time: timers stand
// still meanwhile.
const guardEvery = 100 * time.Millisecond

// guard is a process that ends the command when this one is killed, or is stopped for too long.
type guard struct {
	in    *os.File
	ended chan struct{}
}

// never is later than all deadlines.
const never = time.Duration(math.MaxInt64)

func startGuard() (*guard, error) {
	program, err := self()
	if err != nil {
		return nil, err
	}
	out, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer func() { _ = out.Close() }() // the guard has it
	cmd := exec.Command(program)
	cmd.Args = []string{os.Args[0], GuardCommand}
	cmd.Stdin = out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // signals of the terminal are not for it
	if err := cmd.Start(); err != nil {
		_ = in.Close()
		return nil, fmt.Errorf("start the guard: %w", err)
	}
	g := &guard{in, make(chan struct{})}
	go func() {
		_ = cmd.Wait() // its code says nothing
		close(g.ended)
	}()
	return g, nil
}

// end ends the guard and waits for it: in a container without an init no other process reaps it.
func (g *guard) end() {
	g.set(order{})
	select {
	case <-g.ended:
	case <-time.After(guardEvery): // it is stopped
	}
}

// set names the process group, and when it gets SIGTERM and SIGKILL; group 0 ends the guard.
func (g *guard) set(o order) {
	// Without a guard this process still does what it can. A stopped guard must not block it.
	_ = g.in.SetWriteDeadline(time.Now().Add(guardEvery))
	_, _ = fmt.Fprintln(g.in, o.group, int64(o.term), int64(o.kill))
}

// order is a line that the guard reads.
type order struct {
	group      int
	term, kill time.Duration // since boot
}

// Guard reads which process group may live until when. It sends SIGTERM and SIGKILL then, and
// SIGKILL when the reader ends.
func Guard(in io.Reader) {
	signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT)
	orders := make(chan order)
	go func() {
		defer close(orders)
		for lines := bufio.NewScanner(in); lines.Scan(); {
			var o order
			_, err := fmt.Sscan(lines.Text(), &o.group, (*int64)(&o.term), (*int64)(&o.kill))
			if err == nil {
				orders <- o
			}
		}
	}()
	o := order{term: never, kill: never}
	for {
		select {
		case next, reads := <-orders:
			if !reads {
				o.send(syscall.SIGKILL)
				return
			}
			if o = next; o.group == 0 {
				return
			}
		case <-time.After(min(guardEvery, max(min(o.term, o.kill)-sinceBoot(), 0))):
		}
		o.carryOut(sinceBoot())
	}
}

// carryOut does what is due, once.
func (o *order) carryOut(now time.Duration) {
	switch {
	case now >= o.kill:
		o.send(syscall.SIGKILL)
		o.term, o.kill = never, never
	case now >= o.term:
		o.send(syscall.SIGTERM)
		o.send(syscall.SIGCONT) // a stopped process ends when it continues
		o.term = never
	}
}

func (o *order) send(s syscall.Signal) {
	if o.group > 0 {
		_ = syscall.Kill(-o.group, s) // fails if the group has ended
	}
}

// sinceBoot reads a clock that all processes share, and that passes while the machine is
// suspended.
func sinceBoot() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(bootClock, &t) != nil {
		return time.Duration(time.Now().UnixNano())
	}
	return time.Duration(t.Nano())
}
