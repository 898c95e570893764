// Command etcdctl-lock runs a command under etcdctl lock. The command prints the revision that
// etcdctl gives it, and ends when this process writes to it, or dies.
package main

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"

	"github.com/fencepost/fencepost/fencetest/systems/protocol"
)

// The command reads descriptor 3: etcdctl hands its own standard input to none.
const guarded = `echo "$ETCD_LOCK_REV"; read -r _ <&3; exit 0`

func main() {
	protocol.Run(func(ctx context.Context, want protocol.Request) (*protocol.Held, error) {
		end, until, err := os.Pipe()
		if err != nil {
			return nil, err
		}
		cmd := exec.Command("./etcdctl", "--endpoints", os.Getenv("FENCETEST_SERVER"),
			"lock", "--ttl", strconv.Itoa(int(want.TTL.Seconds())), "--", want.Name, "sh", "-c", guarded)
		cmd.ExtraFiles, cmd.Stderr = []*os.File{end}, os.Stderr
		out, err := cmd.StdoutPipe()
		if err := errors.Join(err, cmd.Start(), end.Close()); err != nil {
			return nil, err
		}
		defer context.AfterFunc(ctx, func() { _ = cmd.Process.Signal(syscall.SIGINT) })()
		line, err := bufio.NewReader(out).ReadString('\n')
		if err != nil {
			return nil, errors.Join(err, cmd.Wait())
		}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			err = cmd.Wait()
		}()
		fence, check := strings.TrimSpace(line), protocol.HeldUntil(ended)
		release := func(context.Context) error {
			_ = until.Close() // the command reads to the end
			<-ended
			return err
		}
		return &protocol.Held{Fence: fence, Check: check, Release: release, Lost: ended}, nil
	})
}
