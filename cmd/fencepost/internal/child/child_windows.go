package child

import (
	"io"
	"os"
	"os/exec"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"
)

// Child is a running command. One goroutine may use it.
type Child struct {
	pid int
	job windows.Handle
	// Stopped is for other systems.
	Stopped chan struct{}
	// Blocked is for other systems.
	Blocked chan struct{}
	// Done gets the exit code of the command.
	Done chan int
	// Key is for other systems.
	Key os.Signal
}

// Begin is for other systems.
func Begin([]string) error { return nil }

// Guard is for other systems.
func Guard(io.Reader) {}

// Start runs the command with the standard streams of this process, in a job that ends with it.
func Start(path string, args, env []string, _ bool) (*Child, error) {
	job, err := newJob()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(path)
	cmd.Args, cmd.Env = args, env
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &windows.SysProcAttr{CreationFlags: windows.CREATE_NEW_PROCESS_GROUP}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	c := &Child{pid: cmd.Process.Pid, job: job, Done: make(chan int, 1)}
	if err := c.assign(); err != nil {
		_ = cmd.Process.Kill()
		return nil, err
	}
	go func() {
		_ = cmd.Wait() // the code says how it ended
		c.Done <- cmd.ProcessState.ExitCode()
	}()
	return c, nil
}

// newJob makes a job whose processes end when this process does.
func newJob() (windows.Handle, error) {
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return 0, err
	}
	limits := windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION{
		BasicLimitInformation: windows.JOBOBJECT_BASIC_LIMIT_INFORMATION{
			LimitFlags: windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE,
		},
	}
	_, err = windows.SetInformationJobObject(
		job, windows.JobObjectExtendedLimitInformation, uintptr(unsafe.Pointer(&limits)),
		uint32(unsafe.Sizeof(limits)),
	)
	return job, err
}

func (c *Child) assign() error {
	process, err := windows.OpenProcess(
		windows.PROCESS_SET_QUOTA|windows.PROCESS_TERMINATE, false, uint32(c.pid),
	)
	if err != nil {
		return err
	}
	defer func() { _ = windows.CloseHandle(process) }()
	return windows.AssignProcessToJobObject(c.job, process)
}

// Extend does nothing.
func (c *Child) Extend(_, _ time.Duration) {}

// Overdue reports false.
func (c *Child) Overdue() bool { return false }

// Close does nothing.
func (c *Child) Close() {}

// Signal sends Ctrl-Break to the process group of the command, whatever the signal.
func (c *Child) Signal(os.Signal) {
	_ = windows.GenerateConsoleCtrlEvent(windows.CTRL_BREAK_EVENT, uint32(c.pid))
}

// Terminate asks the process group to end.
func (c *Child) Terminate() { c.Signal(os.Interrupt) }

// Kill ends all processes of the job.
func (c *Child) Kill() { _ = windows.TerminateJobObject(c.job, 1) }

// Suspend does nothing.
func (c *Child) Suspend() {}

// Unblock does nothing.
func (c *Child) Unblock() {}

// Resume does nothing.
func (c *Child) Resume() {}

// TakeTerminal does nothing.
func (c *Child) TakeTerminal() bool { return false }

// PassOn does nothing.
func PassOn(os.Signal) {}

// Die returns.
func Die(os.Signal) {}

// IsContinue reports false.
func IsContinue(os.Signal) bool { return false }

// Signals are those that end a command.
func Signals() []os.Signal { return []os.Signal{os.Interrupt} }
