package mcp_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"testing"
)

const hello = `{"jsonrpc":"2.0","id":"hello","method":"initialize","params":{"protocolVersion":` +
	`"2025-06-18","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
`

// raw is a session of an agent that writes lines by hand.
type raw struct {
	t   *testing.T
	in  io.WriteCloser
	out *bufio.Reader
}

type reply struct {
	ID    any
	Error failure
}

type failure struct{ Code int }

func (r *raw) send(text string) {
	r.t.Helper()
	if _, err := io.WriteString(r.in, text); err != nil {
		r.t.Error(err)
	}
}

func (r *raw) reply() (got reply) {
	r.t.Helper()
	line, err := r.out.ReadBytes('\n')
	if err != nil {
		r.t.Fatal("the session has ended: ", err)
	}
	if err := json.Unmarshal(line, &got); err != nil {
		r.t.Fatalf("%s: %v", line, err)
	}
	return got
}

// raw starts a session as agent does, and says hello.
func (w *world) raw() (r *raw, out io.Closer, command *exec.Cmd) {
	w.t.Helper()
	r, out, command = w.silent()
	r.send(hello)
	r.reply()
	return r, out, command
}

func (w *world) silent() (r *raw, out io.Closer, command *exec.Cmd) {
	w.t.Helper()
	command = w.command("", "mcp")
	in, err := command.StdinPipe()
	if err != nil {
		w.t.Fatal(err)
	}
	answers, err := command.StdoutPipe()
	if err != nil {
		w.t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		w.t.Fatal(err)
	}
	return &raw{w.t, in, bufio.NewReader(answers)}, answers, command
}

func TestBadLineDoesNotEndTheSession(t *testing.T) {
	t.Parallel()
	r, _, command := newWorld(t).raw()
	t.Cleanup(func() { _ = r.in.Close(); _ = command.Wait() })
	ping := `{"jsonrpc":"2.0","id":%q,"method":"ping"}`
	for line, want := range map[string]reply{
		"garbage":                           {nil, failure{-32700}},
		"\ufeff" + fmt.Sprintf(ping, "bom"): {nil, failure{-32700}},
		strings.Repeat(fmt.Sprintf(ping, "two")+" ", 2): {nil, failure{-32700}},
		"null":                               {nil, failure{-32600}},
		"[]":                                 {nil, failure{-32600}},
		"[" + fmt.Sprintf(ping, "one") + "]": {nil, failure{-32600}},
		"{}":                                 {nil, failure{-32600}},
		`{"jsonrpc":"1.0","id":"old","method":"ping"}`:                      {"old", failure{-32600}},
		`{"jsonrpc":"2.0","id":{},"method":"ping"}`:                         {nil, failure{-32600}},
		`{"jsonrpc":"2.0","id":1,"x":"` + strings.Repeat("x", 3<<20) + `"}`: {nil, failure{-32600}},
	} {
		go r.send(line + "\n\r\n" + fmt.Sprintf(ping, "after") + "\r\n")
		if got := r.reply(); got != want {
			t.Errorf("%.50q is answered %+v, not %+v", line, got, want)
		}
		if got := r.reply(); got.ID != "after" || got.Error.Code != 0 {
			t.Errorf("after %.50q a ping is answered %+v", line, got)
		}
	}
}

// TestReaderThatWentAwayEndsTheSession: an agent that reads no answers cannot use its locks.
func TestReaderThatWentAwayEndsTheSession(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r, out, command := w.raw()
	r.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":` +
		`{"name":"acquire","arguments":{"name":"gone"}}}` + "\n")
	r.reply()
	w.await("gone", 1, 0)
	_ = out.Close()
	r.send(`{"jsonrpc":"2.0","id":2,"method":"ping"}` + "\n")
	if state, err := command.Process.Wait(); err != nil || !state.Success() {
		t.Errorf("it ends with %v, %v", state, err)
	}
	w.await("gone", 0, 0)
}
