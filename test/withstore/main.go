// Command withstore starts a store for the time of one command, which finds its
// address in the environment as STORE:
//
//	go run ./test/withstore zookeeper examples/settlement/demo
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"github.com/fencepost/fencepost/test/rig"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "withstore:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) (err error) {
	if len(args) < 2 || args[0] != "zookeeper" {
		return errors.New("usage: withstore zookeeper command…")
	}
	dir, err := os.MkdirTemp("", "fencepost-store-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	cache, err := rig.ZooKeeperCache()
	if err != nil {
		return err
	}
	java, err := rig.FetchZooKeeper(ctx, cache)
	if err != nil {
		return err
	}
	z, err := rig.StartZooKeeper(ctx, rig.ZooKeeperConfig{Dir: dir, Java: java})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, z.Close()) }()
	cmd := exec.CommandContext(ctx, args[1], args[2:]...)
	cmd.Env = append(os.Environ(), "STORE="+z.Store())
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	return cmd.Run()
}
