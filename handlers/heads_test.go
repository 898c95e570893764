package handlers_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/fencepost/fencepost/handlers"
)

// TestUnfinishedHeadsHaveABound: over the bound of bytes the server closes the connection that has
// been sending a large head for longest. A head that is complete does not count, and neither does
// what an authenticated client sends.
func TestUnfinishedHeadsHaveABound(t *testing.T) {
	t.Parallel()
	w := &waiting{came: make(chan struct{}, 100), over: make(chan struct{})}
	server := httptest.NewUnstartedServer(handlers.New(shared.handlers(w)))
	all := handlers.NewConnections(100)
	all.BoundHeads(40_000)
	server.Listener, server.Config.ConnContext = all.Listener(server.Listener), handlers.ConnContext
	server.Start()
	r := &replica{server: server, url: server.URL, transport: &http.Transport{}}
	t.Cleanup(func() { close(w.over); r.close() })
	bearer := newTenant(t).bearer
	begin := func(bytes int) *conn {
		t.Helper()
		c, was := dial(t, r), all.Unfinished()
		c.write("GET /healthz HTTP/1.1\r\nHost: x\r\nX-Filler: " + strings.Repeat("x", bytes))
		if bytes > 8<<10 {
			eventually(t, "it is read", func() bool { return all.Unfinished() >= was+bytes-8<<10 })
		}
		return c
	}
	small, first, second := begin(1000), begin(20_000), begin(20_000)

	busy := dial(t, r)
	busy.ask("POST", "/locks/a", bearer)
	<-w.came
	last := dial(t, r)
	last.write("GET /healthz HTTP/1.1\r\nHost: x\r\nX-Filler: " + strings.Repeat("x", 20_000))
	first.closed()
	for _, c := range []*conn{small, second, last} {
		c.write("\r\n\r\n")
		if a, _ := c.read(http.MethodGet); a.status != http.StatusOK {
			t.Errorf("%v", a)
		}
	}
	if n := all.Unfinished(); n != 0 {
		t.Errorf("%d bytes count when no head is unfinished", n)
	}

	writer := dial(t, r)
	writer.write(fmt.Sprintf("POST /locks/a HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n"+
		"Content-Type: application/json\r\nContent-Length: 16000\r\n\r\n{%s", bearer,
		strings.Repeat(" ", 15_998)))
	writer.write("}")
	<-w.came
	if n := all.Unfinished(); n != 0 {
		t.Errorf("%d bytes count of the body of an authenticated client", n)
	}
}
