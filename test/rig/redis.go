package rig

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
)

// Redis is a running Redis 7 that flushes each write before it answers.
type Redis struct {
	running
	port *port
	// Version is that of the server, such as 7.0.15.
	Version string
}

// StartRedis starts redis-server with its data in dir, and with more options. The log is dir.log.
func StartRedis(ctx context.Context, dir string, options ...string) (*Redis, error) {
	r := &Redis{running: running{log: dir + ".log"}}
	var err error
	if r.Version, err = RedisVersion(ctx); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("start Redis: %w", err)
	}
	if r.port, err = reservePort(); err != nil {
		return nil, fmt.Errorf("start Redis: %w", err)
	}
	if err := r.start(ctx, dir, options); err != nil {
		return nil, errors.Join(fmt.Errorf("start Redis: %w", err), r.Close())
	}
	return r, nil
}

// RedisVersion fails with what to do unless redis-server is there in version 7.
func RedisVersion(ctx context.Context) (string, error) {
	const remedy = "Redis 7 is needed: install the package redis-server of Debian 12, " +
		"or put a redis-server of version 7 into PATH"
	out, err := exec.CommandContext(ctx, "redis-server", "--version").Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w", remedy, err)
	}
	_, after, _ := strings.Cut(string(out), " v=")
	version, _, _ := strings.Cut(after, " ")
	if !strings.HasPrefix(version, "7.") {
		return "", fmt.Errorf("%s: this one has version %q", remedy, version)
	}
	return version, nil
}

func (r *Redis) start(ctx context.Context, dir string, options []string) error {
	host, number, err := net.SplitHostPort(r.Address())
	if err != nil {
		return err
	}
	args := []string{
		"--bind", host, "--port", number, "--dir", dir,
		"--save", "", "--appendonly", "yes", "--appendfsync", "always",
	}
	args = append(args, options...)
	if r.process, err = startProcess("redis-server", r.log, args, nil); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	return r.process.await(ctx, "Redis", func(ctx context.Context) error {
		return accepts(ctx, r.Address())
	})
}

// Address returns where the server listens, as host:port.
func (r *Redis) Address() string { return r.port.address() }

// Close kills the server and waits for it.
func (r *Redis) Close() error { return errors.Join(r.Kill(), r.port.release()) }
