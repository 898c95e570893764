package handlers_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/fencepost/fencepost/handlers"
	"github.com/fencepost/fencepost/test/bubble"
	"github.com/fencepost/fencepost/test/poll"
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
			poll.Until(t, "it is read", func() bool { return all.Unfinished() >= was+bytes-8<<10 })
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

// TestConnectionsAreReadSlowlyAtFirst: over HTTP/2 frames that make no request take time too. A
// connection whose client is known is read at full speed, and so is what every client sends first.
func TestConnectionsAreReadSlowlyAtFirst(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		at, client, authenticate := handlers.NewConnections(10).Pipe()
		defer at.Close()
		took := func(bytes int) time.Duration {
			t.Helper()
			began := time.Now()
			go func() { _, _ = client.Write(make([]byte, bytes)) }()
			if _, err := io.ReadFull(at, make([]byte, bytes)); err != nil {
				t.Fatal(err)
			}
			return time.Since(began)
		}
		if d := took(4 << 10); d != 0 {
			t.Errorf("the first bytes take %s", d)
		}
		if d := took(10_000); d != 10_000*handlers.ReadPause {
			t.Errorf("10 000 bytes take %s", d)
		}
		authenticate("acme")
		if d := took(10_000); d != 0 {
			t.Errorf("10 000 bytes of a known client take %s", d)
		}
	})
}
