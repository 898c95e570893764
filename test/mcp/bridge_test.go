package mcp_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
)

const sessionID = "Mcp-Session-Id"

// bridge offers `fencepost mcp` over Streamable HTTP, without streams. Each session is a process.
// It passes one request at a time.
type bridge struct {
	w *world

	mu       sync.Mutex
	sessions map[string]*raw
}

// overHTTP returns the URL of a bridge.
func (w *world) overHTTP() string {
	w.t.Helper()
	server := httptest.NewServer(&bridge{w: w, sessions: map[string]*raw{}})
	w.t.Cleanup(server.Close)
	return server.URL + "/mcp"
}

func (b *bridge) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var line bytes.Buffer
	var message struct {
		ID     any
		Method string
	}
	body, err := io.ReadAll(r.Body)
	if err != nil || json.Compact(&line, body) != nil || json.Unmarshal(body, &message) != nil {
		out.WriteHeader(http.StatusBadRequest)
		return
	}
	id := r.Header.Get(sessionID)
	if message.Method == "initialize" {
		id = strconv.Itoa(len(b.sessions))
		b.sessions[id] = b.start()
	}
	session := b.sessions[id]
	switch {
	case r.Method != http.MethodPost:
		out.WriteHeader(http.StatusMethodNotAllowed)
	case session == nil:
		out.WriteHeader(http.StatusNotFound)
	default:
		session.send(line.String() + "\n")
		out.Header().Set(sessionID, id)
		b.answer(out, session, message.ID)
	}
}

func (b *bridge) answer(out http.ResponseWriter, session *raw, id any) {
	if id == nil {
		out.WriteHeader(http.StatusAccepted)
		return
	}
	answer, err := session.out.ReadBytes('\n')
	if err != nil {
		b.w.t.Error("the session has ended: ", err)
	}
	out.Header().Set("Content-Type", "application/json")
	_, _ = out.Write(answer) // the suite may have gone away
}

func (b *bridge) start() *raw {
	session, _, command := b.w.silent()
	b.w.t.Cleanup(func() { _ = session.in.Close(); _ = command.Wait() })
	return session
}
