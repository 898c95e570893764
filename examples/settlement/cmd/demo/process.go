package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// process is a child with a process group of its own and a log file.
type process struct {
	name string
	log  string // path of its standard error
	cmd  *exec.Cmd
	done chan struct{} // closed once it has ended
	err  error         // how it ended; read it after done
}

// start runs argv with env added to ours. Its group lets a signal reach what a
// shell has started, too.
func start(dir, name string, env, argv []string) (started *process, err error) {
	p := &process{name: name, log: filepath.Join(dir, name+".log"), done: make(chan struct{})}
	log, err := os.Create(p.log)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, log.Close()) }() // the child has its own copy
	p.cmd = exec.Command(argv[0], argv[1:]...)
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// kill ends the process alone, as the kernel does when memory runs out; what it
// has started must notice by itself.
func (p *process) kill() error {
	if err := p.cmd.Process.Kill(); err != nil {
		return err
	}
	<-p.done
	return nil
}

// signal reaches the whole group.
func (p *process) signal(s syscall.Signal) error { return syscall.Kill(-p.cmd.Process.Pid, s) }

// stop asks p to end, insists after five seconds, and leaves nothing of its group.
func (p *process) stop() {
	_ = p.signal(syscall.SIGTERM) // it may have ended already
	_ = p.signal(syscall.SIGCONT)
	select {
	case <-p.done:
	case <-time.After(5 * time.Second):
	}
	_ = p.signal(syscall.SIGKILL)
	<-p.done
}

// ended reports whether p has ended; p.err says how.
func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// wait returns how p ended.
func (p *process) wait(ctx context.Context) error {
	select {
	case <-p.done:
	case <-ctx.Done():
		return fmt.Errorf("%s still runs: %w", p.name, ctx.Err())
	}
	if p.err != nil {
		return fmt.Errorf("%s: %w\n%s", p.name, p.err, p.tail(5))
	}
	return nil
}

// address waits for the log line that says where a server listens.
func (p *process) address(ctx context.Context) (string, error) {
	for {
		for _, line := range p.lines() {
			var entry struct{ Msg, Address string }
			if json.Unmarshal([]byte(line), &entry) == nil && entry.Msg == "listening" &&
				entry.Address != "" {
				return entry.Address, nil
			}
		}
		select {
		case <-p.done:
			return "", fmt.Errorf("%s ended: %s\n%s", p.name, p.cmd.ProcessState, p.tail(5))
		case <-ctx.Done():
			return "", fmt.Errorf("%s does not listen: %w\n%s", p.name, ctx.Err(), p.tail(5))
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// lines returns the log so far; a log that cannot be read is an empty one.
func (p *process) lines() []string {
	text, err := os.ReadFile(p.log)
	if err != nil {
		return nil
	}
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}

func (p *process) tail(n int) string {
	lines := p.lines()
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
