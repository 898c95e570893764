//go:build unix

package child

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// gateFrom is the least number of the gate's descriptor. Commands inherit lower ones: make has its
// job server at 3 and 4.
const gateFrom = 100

// gate delays a command until the guard has its first order. Without a gate the command outlives
// its lease if this process is stopped right after the start.
type gate struct {
	in  *os.File
	out int // the descriptor that the command waits at
}

func newGate() (*gate, error) {
	out, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer func() { _ = out.Close() }()
	fd, err := unix.FcntlInt(out.Fd(), unix.F_DUPFD, gateFrom)
	if err != nil {
		_ = in.Close()
		return nil, err
	}
	return &gate{in, fd}, nil
}

// behind returns the program and the arguments that run the command when the gate opens.
func (g *gate) behind(path string, args []string) (string, []string, error) {
	program, err := self()
	begin := []string{os.Args[0], BeginCommand, strconv.Itoa(g.out), path}
	return program, append(begin, args...), err
}

// started closes the descriptor that the command has inherited.
func (g *gate) started() { _ = unix.Close(g.out) }

func (g *gate) open() {
	_, _ = g.in.Write([]byte{1}) // fails if the command has ended
	_ = g.in.Close()
}

// Begin waits until the gate opens, and becomes the command of the arguments. It returns an error
// if it cannot, or if the process that holds the lock has ended.
func Begin(args []string) error {
	fd, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	syscall.CloseOnExec(fd)
	dieWithParent()
	if n, _ := os.NewFile(uintptr(fd), "gate").Read(make([]byte, 1)); n == 0 {
		return errors.New("the process that holds the lock has ended")
	}
	return fmt.Errorf("%s: %w", args[1], syscall.Exec(args[1], args[2:], os.Environ()))
}
