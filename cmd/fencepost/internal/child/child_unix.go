//go:build unix

package child

import (
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Child is a running command. One goroutine may use it. A process that adopts orphans may have one.
type Child struct {
	pid      int
	guard    *guard
	gate     *gate    // closed; nil if it is open
	until    order    // the last order to the guard
	overdue  bool     // an earlier order was due when the next one came
	terminal *os.File // the controlling terminal; nil without one
	// Stopped reports that the terminal's user stopped the command (Ctrl-Z).
	Stopped chan struct{}
	// Blocked reports that the command stopped because it is not in the foreground of the terminal.
	Blocked chan struct{}
	// Done gets the exit code of the command, or 128 and its signal.
	Done chan int
	// Key is the signal of a key of the terminal (Ctrl-C, Ctrl-\) that ended the command, or nil;
	// it is set before Done.
	Key os.Signal
}

// Start runs the command with the standard streams of this process. If this process is in the
// foreground of a terminal and not part of a pipeline, the command is, too. If guarded, the
// command begins at the first [Child.Extend], dies with this process, and does not outlive the
// last Extend.
func Start(path string, args, env []string, guarded bool) (c *Child, err error) {
	c = &Child{
		Stopped: make(chan struct{}, 1), Blocked: make(chan struct{}, 1), Done: make(chan int, 1),
	}
	attributes := &syscall.SysProcAttr{Setpgid: true}
	if guarded {
		if c.guard, err = startGuard(); err != nil {
			return nil, err
		}
		endWithParent(attributes)
		if c.gate, err = newGate(); err != nil {
			return nil, err
		}
		defer c.gate.started()
		if path, args, err = c.gate.behind(path, args); err != nil {
			return nil, err
		}
	}
	cmd := exec.Command(path)
	cmd.Args, cmd.Env = args, env
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = attributes
	if err := cmd.Start(); err != nil {
		c.Close()
		return nil, err
	}
	c.pid = cmd.Process.Pid
	go c.wait()
	c.terminal, _ = os.OpenFile("/dev/tty", os.O_RDWR, 0) // there may be none
	// A pager behind the command needs the terminal, and is in the group of this process.
	if !isPipe(os.Stdin) && !isPipe(os.Stdout) {
		c.Resume()
	}
	signal.Ignore(syscall.SIGTTOU) // which taking the terminal back would send
	return c, nil
}

func isPipe(file *os.File) bool {
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeNamedPipe != 0
}

// Extend lets the command live for so long from now on, whatever happens to this process. It gets
// SIGTERM before, with so much time to end.
func (c *Child) Extend(left, grace time.Duration) {
	c.overdue = c.Overdue()
	now, term := sinceBoot(), c.until.term
	if term != never {
		term = now + left - grace
	}
	c.tell(order{c.pid, term, now + left})
	if c.gate != nil {
		c.gate.open()
		c.gate = nil
	}
}

// Overdue reports whether the guard has asked the command to end, also if the lock was renewed
// afterwards.
func (c *Child) Overdue() bool {
	return c.overdue || c.guard != nil && c.until.group != 0 && sinceBoot() >= c.until.term
}

func (c *Child) tell(o order) {
	if c.until = o; c.guard != nil {
		c.guard.set(o)
	}
}

// Close ends the guard. It does not end the command.
func (c *Child) Close() {
	if c.guard != nil {
		c.guard.end()
	}
}

// wait reports each stop, and the end. A process that adopts orphans has no other parent that reaps
// them.
func (c *Child) wait() {
	of := c.pid
	if adopts() {
		of = -1
	}
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(of, &status, syscall.WUNTRACED, nil)
		switch {
		case errors.Is(err, syscall.EINTR), err == nil && pid != c.pid:
		case err != nil:
			c.Done <- 1
			return
		case status.Stopped():
			c.report(status.StopSignal())
		case status.Signaled():
			if isKey(status.Signal()) {
				c.Key = status.Signal()
			}
			c.Done <- 128 + int(status.Signal())
			return
		default:
			c.Done <- status.ExitStatus()
			return
		}
	}
}

// report says why the command stopped, unless a report is still to be read.
func (c *Child) report(s syscall.Signal) {
	to := c.Stopped
	switch s {
	case syscall.SIGTSTP:
	case syscall.SIGTTIN, syscall.SIGTTOU:
		to = c.Blocked
	default:
		return
	}
	select {
	case to <- struct{}{}:
	default:
	}
}

// Signal sends a signal to the process group of the command.
func (c *Child) Signal(s os.Signal) {
	if s, ok := s.(syscall.Signal); ok {
		_ = syscall.Kill(-c.pid, s) // fails if the group has ended
	}
}

// Terminate asks the process group to end. The guard does not ask again: many programs take a
// second SIGTERM for an order to end at once.
func (c *Child) Terminate() {
	c.tell(order{c.pid, never, c.until.kill})
	c.Signal(syscall.SIGTERM)
	c.Signal(syscall.SIGCONT) // a stopped process ends when it continues
}

// Kill ends the process group.
func (c *Child) Kill() { c.Signal(syscall.SIGKILL) }

// Suspend takes the terminal back from a command that was stopped, and stops the job of this
// process as well, as the shell expects it.
func (c *Child) Suspend() {
	if c.TakeTerminal() {
		_ = syscall.Kill(0, syscall.SIGTSTP)
	}
}

// Unblock gives the terminal to a command that needs it, if this process has it.
func (c *Child) Unblock() {
	if c.foreground() == syscall.Getpgrp() {
		c.Resume()
	}
}

// Resume lets the command continue, in the foreground if this process is.
func (c *Child) Resume() {
	if c.foreground() == syscall.Getpgrp() {
		_ = unix.IoctlSetPointerInt(int(c.terminal.Fd()), unix.TIOCSPGRP, c.pid)
	}
	c.Signal(syscall.SIGCONT)
}

// TakeTerminal makes this process the foreground of the terminal if the command is.
func (c *Child) TakeTerminal() bool {
	return c.foreground() == c.pid &&
		unix.IoctlSetPointerInt(int(c.terminal.Fd()), unix.TIOCSPGRP, syscall.Getpgrp()) == nil
}

// foreground returns the process group in the foreground of the terminal, or 0.
func (c *Child) foreground() int {
	if c.terminal == nil {
		return 0
	}
	group, err := unix.IoctlGetInt(int(c.terminal.Fd()), unix.TIOCGPGRP)
	if err != nil {
		return 0
	}
	return group
}

// IsContinue reports whether the signal says that this process continues after a stop.
func IsContinue(s os.Signal) bool { return s == syscall.SIGCONT }

// Signals are those that end or steer a command, and SIGCONT. Signals that this process ignores, as
// under nohup, are not among them: the command inherits that it ignores them.
func Signals() []os.Signal {
	return slices.DeleteFunc([]os.Signal{
		syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1,
		syscall.SIGUSR2, syscall.SIGWINCH, syscall.SIGCONT,
	}, signal.Ignored)
}
