// Package commands_test uses the built command, fencepost, on the built server.
package commands_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/fencepost/fencepost/test/rig"
)

const (
	secret  = "commands: thirty-two bytes or more, and never used elsewhere"
	scopes  = "locks:read locks:write webhooks:write tenant-admin"
	patient = 30 * time.Second // for what takes moments on an idle machine
)

// programs are what all tests share.
var programs struct{ api, fencepost, dir string }

func TestMain(m *testing.M) {
	flag.Parse()
	defaultSignals()
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "fencepost-commands-")
		if err != nil {
			panic(err)
		}
		defer func() { _ = os.RemoveAll(dir) }()
		programs.dir = dir
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
		defer cancel()
		if programs.api, err = rig.BuildAPI(ctx, dir); err == nil {
			programs.fencepost, err = rig.BuildCommand(ctx, dir)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return m.Run()
	}())
}

// defaultSignals lets commands start as from a terminal. Under nohup and in background jobs of sh
// these signals are ignored, and run leaves ignored signals to the command.
func defaultSignals() {
	for _, s := range []os.Signal{syscall.SIGHUP, syscall.SIGINT} {
		if signal.Ignored(s) {
			signal.Notify(make(chan os.Signal, 1), s) // programs inherit no handler
		}
	}
}

// server starts a server, with a token that may do everything in its tenant.
func server(t *testing.T) (*rig.Replica, string) {
	t.Helper()
	return serverOn(t, os.Getenv("STORE"))
}

// shared is one server for the tests that do not harm it.
var shared = sync.OnceValues(func() (struct{ url, token string }, error) {
	var s struct{ url, token string }
	r, err := rig.StartReplica(context.Background(), rig.ReplicaConfig{
		Binary: programs.api, DataDir: filepath.Join(programs.dir, "data"), Secret: secret,
		Store: os.Getenv("STORE"),
	})
	if err != nil {
		return s, err
	}
	s.url = r.URL() // it dies with this process
	s.token, err = r.Token("acme", scopes, "tester")
	return s, err
})

// user is the folder and the environment of commands.
type user struct {
	t   *testing.T
	env []string
	dir string
}

// user returns one at the shared server, with a home and a folder of his own.
func newUser(t *testing.T) *user {
	t.Helper()
	s, err := shared()
	if err != nil {
		t.Fatal(err)
	}
	return userOf(t, s.url, s.token)
}

func userOf(t *testing.T, url, token string) *user {
	t.Helper()
	dir := t.TempDir()
	env := []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "FENCEPOST_URL=" + url, "FENCEPOST_TOKEN=" + token,
	}
	return &user{t: t, env: env, dir: dir}
}

// command is fencepost with the arguments.
func (u *user) command(args ...string) *process {
	return u.program(programs.fencepost, args...)
}

// process is a command and what it wrote.
type process struct {
	*exec.Cmd
	t              *testing.T
	stdout, stderr bytes.Buffer
}

func (u *user) program(path string, args ...string) *process {
	p := &process{Cmd: exec.Command(path, args...), t: u.t}
	p.Dir, p.Env = u.dir, u.env
	p.Stdout, p.Stderr = &p.stdout, &p.stderr
	p.WaitDelay = time.Second // what it left behind may have its streams
	return p
}

// start begins the command; the test ends it if it does not end.
func (p *process) start() *process {
	p.t.Helper()
	if err := p.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() {
		_ = p.Process.Kill()
		_ = p.Wait()
	})
	return p
}

// signal sends a signal to the command alone.
func (p *process) signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.Process.Signal(s); err != nil {
		p.t.Fatalf("%s: %v: %s", s, err, &p.stderr)
	}
}

// code waits for the end of a command and returns its exit code.
func (p *process) code() int {
	p.t.Helper()
	timer := time.AfterFunc(2*patient, func() { _ = p.Process.Kill() })
	defer timer.Stop()
	err := p.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) && !errors.Is(err, exec.ErrWaitDelay) {
		p.t.Fatal(err)
	}
	return p.ProcessState.ExitCode()
}

// expect runs a command that has to end with the code, and returns what it printed.
func (p *process) expect(code int) string {
	p.t.Helper()
	if got := p.start().code(); got != code {
		p.t.Fatalf("%q ends with %d, not %d: %s", p.Args[1:], got, code, &p.stderr)
	}
	return p.stdout.String()
}

// path is a file of the user.
func (u *user) path(name string) string { return filepath.Join(u.dir, name) }

// lines are what a file has; none if it is not there.
func (u *user) lines(name string) []string {
	text, err := os.ReadFile(u.path(name))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		u.t.Fatal(err)
	}
	return strings.Fields(string(text))
}
