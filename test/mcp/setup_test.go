package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/fencepost/fencepost/client"
	"github.com/fencepost/fencepost/test/rig"
)

const (
	secret = "mcp: thirty-two bytes or more, and never used elsewhere"
	soon   = 2 * time.Minute // a lease ends, and more
)

var folder string // of the programs

func TestMain(m *testing.M) {
	var err error
	if folder, err = os.MkdirTemp("", "fencepost-mcp-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	_ = os.RemoveAll(folder)
	os.Exit(code)
}

// programs builds the server and fencepost.
var programs = sync.OnceValues(func() (server string, err error) {
	if _, err := rig.BuildCommand(context.Background(), folder); err != nil {
		return "", err
	}
	return rig.BuildAPI(context.Background(), folder)
})

func program() string { return filepath.Join(folder, "fencepost") }

// world is a server, a client that looks, and what agents said to all sessions.
type world struct {
	t      *testing.T
	server *rig.Replica
	client *client.Client
	bearer string
	folder string // in which programs run

	mu  sync.Mutex
	out bytes.Buffer // of all sessions
}

func (w *world) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.out.Write(p)
}

func newWorld(t *testing.T) *world {
	t.Helper()
	binary, err := programs()
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, folder: t.TempDir()}
	w.server, err = rig.StartReplica(t.Context(), rig.ReplicaConfig{
		Binary: binary, DataDir: filepath.Join(t.TempDir(), "a"), Secret: secret,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.server.Close() })
	if w.bearer, err = w.server.Token("acme", "locks:read locks:write", "bot"); err != nil {
		t.Fatal(err)
	}
	w.client, err = client.New(client.Config{
		URLs: []string{w.server.URL()}, Token: client.Bearer(w.bearer),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.client.Close() })
	return w
}

type agent struct {
	*world
	session *sdk.ClientSession
	command *exec.Cmd
	in      io.Closer
	exited  chan error
}

// command is one of fencepost, in a session of that name, if it has one.
func (w *world) command(session string, args ...string) *exec.Cmd {
	command := exec.CommandContext(w.t.Context(), program(), args...)
	command.Dir = w.folder
	command.Env = append(os.Environ(),
		"FENCEPOST_URL="+w.server.URL(), "FENCEPOST_TOKEN="+w.bearer, "FENCEPOST_SESSION="+session,
		"FENCEPOST_REPO=test", "XDG_STATE_HOME="+filepath.Join(w.folder, "state"))
	return command
}

// agent starts a session as an agent does.
func (w *world) agent() *agent {
	w.t.Helper()
	return w.agentOf("")
}

func (w *world) agentOf(name string) *agent {
	w.t.Helper()
	command := w.command(name, "mcp")
	command.Stderr = w
	in, err := command.StdinPipe()
	if err != nil {
		w.t.Fatal(err)
	}
	out, err := command.StdoutPipe()
	if err != nil {
		w.t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		w.t.Fatal(err)
	}
	session, err := sdk.NewClient(&sdk.Implementation{Name: "agent"}, nil).Connect(w.t.Context(),
		&sdk.LoggingTransport{Transport: &sdk.IOTransport{Reader: out, Writer: in}, Writer: w}, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	a := &agent{w, session, command, in, make(chan error, 1)}
	go func() {
		state, err := command.Process.Wait()
		if err == nil && !state.Success() {
			err = errors.New(state.String())
		}
		a.exited <- err
	}()
	w.t.Cleanup(func() { _ = in.Close() })
	return a
}

type answer struct {
	State    string
	Fence    uint64
	Position int
	Waiting  int
	Lost     []string
	Was      string
	Text     string
	Holders  []any
	Locks    []struct{ Name string }
	Mine     []struct{ Name, State, Why string }
	Path, By string
	Released []string
	Claims   []struct{ Path string }
	failure  string
}

func (a *agent) call(ctx context.Context, tool string, arguments map[string]any) answer {
	a.t.Helper()
	result, err := a.session.CallTool(ctx, &sdk.CallToolParams{Name: tool, Arguments: arguments})
	if err != nil {
		return answer{failure: err.Error()}
	}
	text := result.Content[0].(*sdk.TextContent).Text
	if result.IsError {
		return answer{failure: text}
	}
	var got answer
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		a.t.Fatalf("%s: %v", text, err)
	}
	return got
}

func (a *agent) acquire(name string, wait int) answer {
	a.t.Helper()
	return a.call(a.t.Context(), "acquire", map[string]any{
		"name": name, "wait_seconds": wait, "purpose": "to test",
	})
}

func (a *agent) on(tool, name string) answer {
	a.t.Helper()
	return a.call(a.t.Context(), tool, map[string]any{"name": name})
}

// await polls until the lock has so many holders and waiters.
func (w *world) await(name string, holders, waiters int) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), soon)
	defer cancel()
	for tick := time.NewTicker(20 * time.Millisecond); ; {
		look, err := w.client.Look(ctx, name)
		if err == nil && len(look.Holders) == holders && look.Waiting == waiters {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			w.t.Fatalf("%s has not %d holders and %d waiters: %+v, %v", name, holders, waiters, look, err)
		}
	}
}
