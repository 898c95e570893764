package handlers_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"testing"
	"time"
)

// conn is a connection on which a test writes bytes itself, for what no HTTP
// client would send.
type conn struct {
	t testing.TB
	*net.TCPConn
	in *bufio.Reader
}

func dial(t testing.TB, r *replica) *conn {
	t.Helper()
	c, err := net.Dial("tcp", r.server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() }) // it may be closed already
	if err := c.SetDeadline(time.Now().Add(60 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return &conn{t: t, TCPConn: c.(*net.TCPConn), in: bufio.NewReader(c)}
}

func (c *conn) write(text string) {
	c.t.Helper()
	if _, err := c.Write([]byte(text)); err != nil {
		c.t.Fatal(err)
	}
}

// read returns the answer to a request of the method, and whether the connection
// can take another one.
func (c *conn) read(method string) (a *answer, goesOn bool) {
	c.t.Helper()
	resp, err := http.ReadResponse(c.in, &http.Request{Method: method})
	if err != nil {
		c.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return &answer{
		t: c.t, asked: method, method: method, status: resp.StatusCode, header: resp.Header, body: text,
	}, !resp.Close
}

// reset closes the connection the hard way.
func (c *conn) reset() {
	c.t.Helper()
	if err := c.SetLinger(0); err != nil {
		c.t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		c.t.Fatal(err)
	}
}
