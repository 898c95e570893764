// Package child runs a command in a process group of its own.
package child

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"syscall"
)

// Hidden commands of the program, on Unix.
const (
	// GuardCommand runs [Guard].
	GuardCommand = "guard"
	// BeginCommand runs [Begin].
	BeginCommand = "begin"
)

// Codes of shells for a command that cannot be run.
const (
	NotExecutable = 126
	notFound      = 127
)

// Find returns the path of the program, or the exit code of shells if it cannot be run.
func Find(program string) (path string, code int, err error) {
	path, err = exec.LookPath(program)
	switch {
	case err == nil || errors.Is(err, exec.ErrDot):
		return path, 0, nil
	case errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist):
		return "", notFound, err
	}
	return "", NotExecutable, err
}

// Ends reports whether the signal asks this process to end.
func Ends(s os.Signal) bool {
	switch s {
	case syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT:
		return true
	}
	return false
}

// Number of a signal.
func Number(s os.Signal) int {
	number, _ := s.(syscall.Signal)
	return int(number)
}
