package commands_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fencepost/fencepost/test/poll"
	"github.com/fencepost/fencepost/test/rig"
)

// What the other commands do is in the table of docs/comparison.md, in these words.
const (
	oneAtATime = "one at a time"     // the other command starts when the first one is dead
	killed     = "killed at wake-up" // after the lock was granted to the other
	bothRun    = "both run"
	otherWaits = "the other waits" // until the first command ends
	notThere   = "–"               // there is no server
)

// peer is a program that runs a command under a lock.
type peer struct {
	server interface { // nil without one
		Stop() error
		Continue() error
	}
	args []string      // before the command, which is a script in the folder of the user
	ends time.Duration // after which its lease has ended, and another can have the lock
}

// TestPeers: fencepost run, flock, etcdctl lock and consul lock do what docs/comparison.md says
// when a part is stopped or killed. Consul takes part if CONSUL is the path of its program.
func TestPeers(t *testing.T) {
	t.Parallel()
	peers := map[string]func(*testing.T, *user) peer{
		"fencepost run": fencepostPeer, "flock": flockPeer, "etcdctl lock": etcdctlPeer,
	}
	if os.Getenv("CONSUL") != "" {
		peers["consul lock"] = consulPeer
	}
	for fault, inject := range map[string]func(*contest){
		"the server is stopped":         (*contest).stopServer,
		"the lock command is stopped":   (*contest).stopWrapper,
		"the machine is stopped":        (*contest).stopMachine,
		"`kill -9` of the lock command": (*contest).killWrapper,
	} {
		for name, start := range peers {
			t.Run(fault+"/"+name, func(t *testing.T) {
				t.Parallel()
				u := userOf(t, "", "")
				c := &contest{user: u, peer: start(t, u), outcome: notThere}
				c.begin()
				inject(c)
				if says := documented(t, fault, name); says != c.outcome {
					t.Errorf("%s, and docs/comparison.md says %s", c.outcome, says)
				}
			})
		}
	}
}

// documented returns the cell of the table.
func documented(t *testing.T, fault, name string) string {
	t.Helper()
	page, err := os.ReadFile("../../docs/comparison.md")
	if err != nil {
		t.Fatal(err)
	}
	column := -1
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(line, " | ")
		for i := range cells {
			cells[i] = strings.Trim(cells[i], "| *\n")
		}
		if at := slices.Index(cells, "`"+name+"`"); at > 0 {
			column = at
		} else if column > 0 && cells[0] == fault {
			return cells[column]
		}
	}
	t.Fatalf("docs/comparison.md has no cell for %s, %s", fault, name)
	return ""
}

// contest is one command that holds a lock, and another that is to get it.
type contest struct {
	*user
	peer
	outcome string
	wrapper *process
	family  []int // the wrapper, and all that it started
}

// begin starts the first command, which writes to the log until the end of the test.
func (c *contest) begin() {
	c.script("first", "while [ ! -e over ]; do echo beat >>log || exit; sleep 0.02; done")
	c.script("second", "echo granted >>log; sleep 0.5")
	c.wrapper = c.start("./first")
	poll.Until(c.t, "the first command", func() bool { return len(c.lines("log")) > 5 })
	c.family = familyOf(c.t, c.wrapper.Process.Pid)
	c.t.Cleanup(func() {
		c.touch("over")
		each(c.family, syscall.SIGCONT)
		poll.Until(c.t, "the end of the first command", func() bool { return !c.alive() })
	})
}

func (u *user) script(name, text string) {
	u.t.Helper()
	err := os.WriteFile(u.path(name), []byte("#!/bin/sh\n"+text+"\n"), 0o700) //nolint:gosec // it runs
	if err != nil {
		u.t.Fatal(err)
	}
}

func (c *contest) start(command string) *process {
	p := c.program(c.args[0], append(slices.Clone(c.args[1:]), command)...)
	p.Stdout, p.Stderr = nil, nil // which an orphan could keep open
	return p.start()
}

func (c *contest) stopServer() {
	if c.server == nil {
		return
	}
	if err := c.server.Stop(); err != nil {
		c.t.Fatal(err)
	}
	<-time.After(c.ends)
	if err := c.server.Continue(); err != nil {
		c.t.Fatal(err)
	}
	c.observe()
}

func (c *contest) stopWrapper() {
	c.wrapper.signal(syscall.SIGSTOP)
	c.observe()
}

func (c *contest) killWrapper() {
	c.wrapper.signal(syscall.SIGKILL)
	c.observe()
}

func (c *contest) stopMachine() {
	each(c.family, syscall.SIGSTOP)
	if c.observe(); c.outcome != oneAtATime {
		return
	}
	each(c.family, syscall.SIGCONT)
	stopped := len(c.lines("log"))
	poll.Until(c.t, "work after it woke, or its end", func() bool {
		switch {
		case len(c.lines("log")) > stopped+100:
			c.outcome = bothRun
		case !c.alive():
			c.outcome = killed
		}
		return c.outcome != oneAtATime
	})
}

// alive reports whether the first command runs: a zombie has no command line.
func (c *contest) alive() bool {
	return slices.ContainsFunc(c.family[1:], func(pid int) bool {
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		return err == nil && strings.Contains(string(line), "first")
	})
}

// observe starts the second command, and sees whether both run.
func (c *contest) observe() {
	second := c.start("./second")
	deadline := time.Now().Add(3 * c.ends)
	for {
		if at := slices.Index(c.lines("log"), "granted"); at >= 0 {
			second.code() // it had the lock for a time
			if c.outcome = oneAtATime; at < len(c.lines("log"))-1 {
				c.outcome = bothRun
			}
			return
		}
		if time.Now().After(deadline) {
			c.outcome = otherWaits
			return
		}
		time.Sleep(20 * time.Millisecond) //nolint:forbidigo // a poll with a deadline
	}
}

func fencepostPeer(t *testing.T, u *user) peer {
	r, token := server(t)
	u.env = append(u.env, "FENCEPOST_URL="+r.URL(), "FENCEPOST_TOKEN="+token)
	args := []string{programs.fencepost, "run", "--ttl", "5s", "peers", "--"}
	return peer{r, args, 10 * time.Second}
}

func flockPeer(*testing.T, *user) peer {
	return peer{nil, []string{"flock", "peers"}, time.Second}
}

func etcdctlPeer(t *testing.T, _ *user) peer {
	binary, err := rig.BuildEtcd(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctl, err := rig.BuildEtcdctl(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	store, err := rig.StartEtcd(t.Context(), rig.EtcdConfig{Binary: binary, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	args := []string{ctl, "--endpoints", store.Endpoints()[0], "lock", "--ttl", "2", "peers"}
	return peer{store.Member(0), args, 10 * time.Second}
}

// consulPeer has the ports of an agent: one test at a time (-parallel 1).
func consulPeer(t *testing.T, _ *user) peer {
	binary := os.Getenv("CONSUL")
	agent, err := rig.StartProgram(rig.ProgramConfig{
		Binary: binary, Args: []string{"agent", "-dev", "-bind", "127.0.0.1"},
		Log: filepath.Join(t.TempDir(), "log"),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = agent.Kill() })
	err = agent.Await(t.Context(), "a leader", func(ctx context.Context) error {
		return exec.CommandContext(ctx, binary, "kv", "put", "ready", "yes").Run()
	})
	if err != nil {
		t.Fatal(err)
	}
	// A session lasts for up to two TTLs of 15 s, and the lock for the delay of 15 s after it.
	return peer{agent, []string{binary, "lock", "-shell=false", "peers"}, 45 * time.Second}
}
