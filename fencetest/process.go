package main

import (
	"fmt"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// processes are all that a run has started. End leaves none of them.
type processes struct {
	mu      sync.Mutex
	running map[*group]bool
}

// group is a process and the processes that it starts.
type group struct {
	pid   int
	ended chan struct{} // closed when the first process of the group has ended
}

// start runs cmd in a process group of its own. The kernel ends it when the harness is killed.
func (p *processes) start(cmd *exec.Cmd) (*group, error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	g := &group{pid: cmd.Process.Pid, ended: make(chan struct{})}
	p.mu.Lock()
	p.running[g] = true
	p.mu.Unlock()
	go func() {
		_ = cmd.Wait() // killed is what most of them are
		g.signal(syscall.SIGKILL)
		p.mu.Lock()
		delete(p.running, g)
		p.mu.Unlock()
		close(g.ended)
	}()
	return g, nil
}

// signal sends sig to all processes of the group.
func (g *group) signal(sig syscall.Signal) {
	_ = syscall.Kill(-g.pid, sig) // a group that has ended needs no signal
}

// kill ends the group with SIGKILL, and waits until it has ended.
func (g *group) kill() {
	if !g.over() {
		g.signal(syscall.SIGKILL)
		<-g.ended
	}
}

func (g *group) over() bool {
	select {
	case <-g.ended:
		return true
	default:
		return false
	}
}

func (p *processes) end() {
	p.mu.Lock()
	var all []*group
	for g := range p.running {
		all = append(all, g)
	}
	p.mu.Unlock()
	for _, g := range all {
		g.kill()
	}
}

// pause lets time pass: a fault lasts, a lease ends. No verdict rests on a pause under a second.
func pause(d time.Duration) { <-time.After(d) }
