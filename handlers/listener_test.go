package handlers_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/fencepost/fencepost/handlers"
)

// TestNotHTTPDoesNotFillTheLog: whoever sends what is not HTTP without end has some lines at once and
// then one a second, which tells what was left out.
func TestNotHTTPDoesNotFillTheLog(t *testing.T) {
	t.Parallel()
	log := &journal{secrets: shared.secrets}
	server := httptest.NewUnstartedServer(handlers.New(shared.handlers(shared.main.service)))
	server.Listener = handlers.Listener(server.Listener, handlers.NewConnections(100), slog.New(slog.NewJSONHandler(log, nil)))
	server.Start()
	r := &replica{server: server, url: server.URL, transport: &http.Transport{}}
	t.Cleanup(r.close)
	began := time.Now()
	send := func() {
		conn := dial(t, r)
		conn.write("nonsense\r\n\r\n")
		if a, _ := conn.read(http.MethodGet); a.status != http.StatusBadRequest {
			t.Fatalf("%v", a)
		}
		_ = conn.Close()
	}
	for range handlers.LinesAtOnce + 50 {
		send()
	}
	eventually(t, "one tells of the others", func() bool {
		send()
		return log.search([]byte(`"silenced":`)) != nil
	})
	log.mu.Lock()
	defer log.mu.Unlock()
	if most := handlers.LinesAtOnce + 2 + int(time.Since(began)/time.Second); len(log.lines) > most {
		t.Errorf("%d lines are in the log, want %d at most", len(log.lines), most)
	}
}

// TestNotHTTP: what net/http refuses by itself is a problem document too.
func TestNotHTTP(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(handlers.New(shared.handlers(shared.main.service)))
	server.Listener = handlers.Listener(server.Listener, handlers.NewConnections(100), shared.telemetry.Logger())
	server.Config.DisableGeneralOptionsHandler = true
	server.Start()
	r := &replica{server: server, url: server.URL, transport: &http.Transport{}}
	t.Cleanup(r.close)
	for text, want := range map[string]int{
		"nonsense\r\n\r\n":                                                     400,
		"GET /healthz HTTP/1.1\r\n\r\n":                                        400, // no Host
		"GET /healthz HTTP/1.1\r\nHost: x\r\na b: c\r\n\r\n":                   400,
		"GET / HTTP/1.1\r\nHost: x\r\nX: " + strings.Repeat("x", 2<<20):        431,
		"GET /healthz HTTP/3.0\r\nHost: x\r\n\r\n":                             505,
		"POST /locks/a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n": 501,
		"POST /locks/a HTTP/1.1\r\nHost: x\r\nExpect: pie\r\n\r\n":             417,
	} {
		conn := dial(t, r)
		_, _ = conn.Write([]byte(text)) // the server need not read it to its end
		a, goesOn := conn.read(http.MethodGet)
		got := a.fields()
		if a.status != want || goesOn || a.header.Get("Content-Type") != "application/problem+json" || got["code"] != "invalid_request" || got["detail"] == "" {
			t.Errorf("%.60q is answered %v %v, want a problem with %d", text, a, a.header, want)
		}
		if line := shared.journal.request(t, a.header.Get("X-Request-Id")); line["status"] != float64(want) || line["client"] != "127.0.0.1" {
			t.Errorf("%.60q is logged as %v", text, line)
		}
	}
	conn := dial(t, r) // and ours stay as they are
	conn.write("OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\nGET /locks/- HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
	for _, want := range []string{"not_found", "unauthenticated"} {
		if a, _ := conn.read(http.MethodGet); a.fields()["code"] != want {
			t.Errorf("%v, want %s", a, want)
		}
	}
}
