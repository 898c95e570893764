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
	folder string
	port   int
	data   string
	*group
	procs *processes
}

const serverStarts = 90 * time.Second

// startServer starts the server of a folder on a port of its own.
func startServer(procs *processes, folder, data string) (*server, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	s := &server{folder: folder, port: port, data: data, procs: procs}
	return s, s.start("start")
}

// has reports whether the folder has the script.
func (s *server) has(script string) bool {
	_, err := os.Stat(filepath.Join(s.folder, script))
	return err == nil
}

// start runs a script that becomes the server, and waits until the server is ready.
func (s *server) start(script string, more ...string) error {
	if err := os.MkdirAll(s.data, 0o755); err != nil { // a server may drop to another user
		return err
	}
	log, err := os.OpenFile(s.data+".log", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	args := append([]string{strconv.Itoa(s.port), s.data}, more...)
	cmd := exec.CommandContext(context.Background(), filepath.Join(s.folder, script), args...)
	cmd.Stdout, cmd.Stderr = log, log
	if s.group, err = s.procs.start(cmd); err != nil {
		return err
	}
	if err := s.waitReady(); err != nil {
		s.kill()
		return fmt.Errorf("%s: %w; its log ends with:\n%s", s.folder, err, tail(s.data+".log"))
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
		if !s.has("ready") || s.script("ready", strconv.Itoa(s.port)) == nil {
			return nil
		}
	}
	return fmt.Errorf("the server is not ready after %v", serverStarts)
}

// script runs a script of the folder to its end.
func (s *server) script(name string, args ...string) error {
	_, err := output(s.folder, nil, append([]string{filepath.Join(s.folder, name)}, args...)...)
	return err
}

// restart kills the server with SIGKILL and starts it again with the same port and data.
func (s *server) restart() error {
	s.kill()
	return s.start("start")
}

func (s *server) address() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)) }

// cpu returns the processor time that the server's processes have used.
func (s *server) cpu() time.Duration {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	ticks := 0
	for _, file := range stats {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended since
		}
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
	for range 200 {
		port := 20000 + 10*rand.IntN(1000) // below the ports that the kernel gives to clients
		if allFree(port) {
			return port, nil
		}
	}
	return 0, errors.New("no ten free ports in a row")
}

func allFree(port int) bool {
	for p := port; p < port+10; p++ {
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(p)))
		if err != nil {
			return false
		}
		l.Close()
	}
	return true
}

// output runs a command in a folder and returns what it prints.
func output(folder string, env []string, command ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Dir, cmd.Env = folder, append(os.Environ(), env...)
	text, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", strings.Join(command, " "), err, last(string(text)))
	}
	return strings.TrimSpace(string(text)), nil
}

func tail(file string) string {
	text, _ := os.ReadFile(file) // without it the message is shorter
	return last(string(text))
}

// last returns the end of a long text.
func last(text string) string {
	return text[max(0, len(text)-1500):]
}
