package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// server is a server under test, started by the scripts of its folder: install, start, and if it
// has them ready, replica, promote and version.
type server struct {
	*group
	procs  *processes
	folder string
	port   string
	data   string
}

const (
	serverStarts = 90 * time.Second
	installs     = 15 * time.Minute
)

// start runs a script that becomes the server, and waits until the server is ready. On the second
// start it has its port and its data.
func (s *server) start(script string, more ...string) error {
	if s.port == "" {
		port, err := freePort()
		if err != nil {
			return err
		}
		s.port = strconv.Itoa(port)
	}
	if err := os.MkdirAll(s.data, 0o755); err != nil { // a server may drop to another user
		return err
	}
	log, err := os.OpenFile(s.data+".log", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	args := append([]string{s.port, s.data}, more...)
	cmd := exec.CommandContext(context.Background(), filepath.Join(s.folder, script), args...)
	cmd.Stdout, cmd.Stderr = log, log
	if s.group, err = s.procs.start(cmd); err != nil {
		return err
	}
	if err := s.waitReady(); err != nil {
		s.kill()
		said, _ := os.ReadFile(log.Name()) // without it the message is shorter
		return fmt.Errorf("%s: %w; its log ends with:\n%s", s.folder, err, last(string(said)))
	}
	return nil
}

func (s *server) waitReady() error {
	for began := time.Now(); time.Since(began) < serverStarts; pause(100 * time.Millisecond) {
		if s.over() {
			return errors.New("the server ended")
		}
		conn, err := net.DialTimeout("tcp", s.address(), time.Second)
		if err != nil {
			continue
		}
		conn.Close()
		if !s.has("ready") || s.script(5*time.Second, "ready", s.port) == nil {
			return nil
		}
	}
	return fmt.Errorf("the server is not ready after %v", serverStarts)
}

func (s *server) has(script string) bool {
	_, err := os.Stat(filepath.Join(s.folder, script))
	return err == nil
}

// script runs a script of the folder to its end.
func (s *server) script(within time.Duration, name string, args ...string) error {
	_, err := output(within, s.folder, append([]string{filepath.Join(s.folder, name)}, args...)...)
	return err
}

func (s *server) address() string { return net.JoinHostPort("127.0.0.1", s.port) }

// cpu returns the processor time that the server's processes have used.
func (s *server) cpu() time.Duration {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	ticks := 0
	for _, file := range stats {
		text, _ := os.ReadFile(file) // empty if the process has ended since
		_, rest, _ := strings.Cut(string(text), ") ")
		f := strings.Fields(rest) // state ppid pgrp … utime (11) stime (12)
		if len(f) > 12 && f[2] == strconv.Itoa(s.pid) {
			user, _ := strconv.Atoi(f[11])
			system, _ := strconv.Atoi(f[12])
			ticks += user + system
		}
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

// freePort returns a port that is free, with the nine behind it: some servers listen on several.
func freePort() (int, error) {
search:
	for range 200 {
		first := 20000 + 10*rand.IntN(1000) // below the ports that the kernel gives to clients
		for port := first; port < first+10; port++ {
			l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
			if err != nil {
				continue search
			}
			l.Close()
		}
		return first, nil
	}
	return 0, errors.New("no ten free ports in a row")
}

// output runs a command in a folder and returns what it prints.
func output(within time.Duration, folder string, command ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Dir, cmd.WaitDelay = folder, time.Second // for what the command has started
	text, err := cmd.CombinedOutput()
	if err != nil && !errors.Is(err, exec.ErrWaitDelay) { // which says that it has left a daemon
		return "", fmt.Errorf("%s: %w: %s", strings.Join(command, " "), err, last(string(text)))
	}
	return strings.TrimSpace(string(text)), nil
}

// last returns the end of a long text.
func last(text string) string { return text[max(0, len(text)-1500):] }
