package cli

import (
	"os"
	"os/exec"
)

// become runs another program until it ends.
func become(path string, args []string) error {
	cmd := exec.Command(path, args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	_ = cmd.Run() // the code says how it ended
	return &exit{code: cmd.ProcessState.ExitCode()}
}
