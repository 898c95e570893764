package rig

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// ErrExited means that a process ended although it was not stopped.
var ErrExited = errors.New("process exited")

// errNotRunning is the answer to a signal for a process that has ended.
var errNotRunning = errors.New("process is not running")

// running is what members, servers and replicas have in common: a process that can be killed,
// frozen and started again.
type running struct {
	log     string
	process *process // nil before the first start
}

// Log returns the path of the log of all its processes.
func (r *running) Log() string { return r.log }

// PID returns the id of the newest process.
func (r *running) PID() int { return r.process.pid() }

// Running says whether the process exists, stopped or not.
func (r *running) Running() bool { return r.process != nil && r.process.running() }

// Kill ends the process like kill -9 and waits until it is gone.
func (r *running) Kill() error {
	if r.process == nil {
		return nil
	}
	return r.process.kill()
}

// Stop freezes the process (SIGSTOP).
func (r *running) Stop() error { return r.process.signal(sigStop) }

// Continue wakes a frozen process (SIGCONT).
func (r *running) Continue() error { return r.process.signal(sigContinue) }

// process is one child process. Its output goes to a file, not to a pipe, so
// that it never stops for a reader.
type process struct {
	cmd     *exec.Cmd
	logFile string
	logFrom int64         // where this process's part of the log begins
	exited  chan struct{} // closed when the process has ended and was waited for
	err     error         // what Wait returned; read after exited
}

// startProcess starts binary and appends its stdout and stderr to logFile.
//
// The kernel ties the "kill when the parent dies" signal to the thread that
// started the child, so one goroutine locks its thread, starts the child, and
// stays on it until the child has ended.
func startProcess(binary, logFile string, args, env []string) (*process, error) {
	return startProcessAs(dieWithParent(), binary, logFile, args, env)
}

func startProcessAs(
	attributes *syscall.SysProcAttr, binary, logFile string, args, env []string,
) (*process, error) {
	out, err := os.OpenFile(logFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	defer out.Close()
	from, err := out.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	p := &process{
		cmd: exec.Command(binary, args...), logFile: logFile, logFrom: from, exited: make(chan struct{}),
	}
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.Stdout, p.cmd.Stderr = out, out
	p.cmd.SysProcAttr = attributes
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		started <- err
		if err == nil {
			p.err = p.cmd.Wait()
		}
		close(p.exited)
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", binary, err)
	}
	return p, nil
}

func (p *process) pid() int { return p.cmd.Process.Pid }

func (p *process) running() bool {
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}

func (p *process) signal(s syscall.Signal) error {
	if !p.running() {
		return errNotRunning
	}
	if err := p.cmd.Process.Signal(s); err != nil {
		return fmt.Errorf("signal %s to process %d: %w", s, p.pid(), err)
	}
	return nil
}

// kill ends the process with SIGKILL, which works on a stopped one too, and
// waits until it is gone. Killing a process that has ended is no error.
func (p *process) kill() error {
	err := p.signal(syscall.SIGKILL)
	if err != nil && !errors.Is(err, errNotRunning) && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	<-p.exited
	return nil
}

// terminate asks the process to end and waits for it. It returns the error of
// an exit code other than zero. When ctx ends first the process is killed.
func (p *process) terminate(ctx context.Context) error {
	if err := p.signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case <-p.exited:
		return p.err
	case <-ctx.Done():
		return errors.Join(fmt.Errorf("process %d ignores SIGTERM: %w", p.pid(), ctx.Err()), p.kill())
	}
}

// await polls check until it returns nil, ctx ends or the process does.
func (p *process) await(ctx context.Context, what string, check func(context.Context) error) error {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		err := check(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-p.exited:
			return fmt.Errorf("wait for %s: %w (%v): %s", what, ErrExited, p.cmd.ProcessState, p.tail())
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w: last: %w: %s", what, ctx.Err(), err, p.tail())
		case <-tick.C:
		}
	}
}

// output returns what this process has written so far.
func (p *process) output() ([]byte, error) {
	f, err := os.Open(p.logFile)
	if err != nil {
		return nil, fmt.Errorf("read log: %w", err)
	}
	defer f.Close()
	if _, err := f.Seek(p.logFrom, io.SeekStart); err != nil {
		return nil, fmt.Errorf("read log: %w", err)
	}
	return io.ReadAll(f)
}

// tail returns the end of the log, for error messages.
func (p *process) tail() string {
	const most = 2000
	out, err := p.output()
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("log %s ends with:\n%s", p.logFile, out[max(0, len(out)-most):])
}
