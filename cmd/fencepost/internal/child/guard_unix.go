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

// GuardCommand is the hidden command that runs [Guard].
const GuardCommand = "guard"

// guardEvery bounds how long the guard takes a suspension of the machine for no time: timers stand
// still meanwhile.
const guardEvery = 100 * time.Millisecond

// guard is a process that kills the command when this one is killed, or is stopped for too long.
type guard struct{ in *os.File }

func startGuard() (*guard, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	out, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer func() { _ = out.Close() }() // the guard has it
	cmd := exec.Command(program, GuardCommand)
	cmd.Stdin = out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // signals of the terminal are not for it
	if err := cmd.Start(); err != nil {
		_ = in.Close()
		return nil, fmt.Errorf("start the guard: %w", err)
	}
	go func() { _ = cmd.Wait() }()
	return &guard{in}, nil
}

// set names the process group and how long it may live; 0 ends the guard.
func (g *guard) set(group int, left time.Duration) {
	// Without a guard this process still does what it can.
	_, _ = fmt.Fprintln(g.in, group, int64(sinceBoot()+left))
}

// order is a line that the guard reads.
type order struct {
	group int
	until time.Duration // since boot
}

// Guard reads which process group may live until when, and kills it then, or when the reader ends.
func Guard(in io.Reader) {
	signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT)
	orders := make(chan order)
	go func() {
		defer close(orders)
		for lines := bufio.NewScanner(in); lines.Scan(); {
			var o order
			if _, err := fmt.Sscan(lines.Text(), &o.group, (*int64)(&o.until)); err == nil {
				orders <- o
			}
		}
	}()
	o := order{until: math.MaxInt64}
	for {
		select {
		case next, reads := <-orders:
			if !reads {
				kill(o.group)
				return
			}
			if o = next; o.group == 0 {
				return
			}
		case <-time.After(min(guardEvery, max(o.until-sinceBoot(), 0))):
		}
		if sinceBoot() >= o.until {
			kill(o.group)
			o.until = math.MaxInt64
		}
	}
}

func kill(group int) {
	if group > 0 {
		_ = syscall.Kill(-group, syscall.SIGKILL) // a group that is gone needs none
	}
}

// sinceBoot reads a clock that all processes share, and that passes while the machine is suspended.
func sinceBoot() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(bootClock, &t) != nil {
		return time.Duration(time.Now().UnixNano())
	}
	return time.Duration(t.Nano())
}
