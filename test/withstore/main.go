// Command withstore starts a store for the time of one command, which finds its
// address in the environment as STORE:
//
//	go run ./test/withstore zookeeper examples/settlement/demo
//
// There are zookeeper, one server, and etcd, three members.
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
	if len(args) < 2 {
		return errUsage
	}
	dir, err := os.MkdirTemp("", "fencepost-store-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	s, err := start(ctx, args[0], dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	cmd := exec.CommandContext(ctx, args[1], args[2:]...)
	cmd.Env = append(os.Environ(), "STORE="+s.Store())
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	return cmd.Run()
}

var errUsage = errors.New("usage: withstore etcd|zookeeper command…")

type running interface {
	Store() string
	Close() error
}

func start(ctx context.Context, kind, dir string) (running, error) {
	switch kind {
	case "etcd":
		binary, err := rig.BuildEtcd(ctx)
		if err != nil {
			return nil, err
		}
		return rig.StartEtcd(ctx, rig.EtcdConfig{Members: 3, Dir: dir, Binary: binary})
	case "zookeeper":
		cache, err := rig.ZooKeeperCache()
		if err != nil {
			return nil, err
		}
		java, err := rig.FetchZooKeeper(ctx, cache)
		if err != nil {
			return nil, err
		}
		return rig.StartZooKeeper(ctx, rig.ZooKeeperConfig{Dir: dir, Java: java})
	}
	return nil, errUsage
}
