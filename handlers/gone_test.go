package handlers_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/fencepost/fencepost/test/poll"
)

// promptly is below every TTL in these tests, and above what a busy machine takes.
const promptly = 15 * time.Second

// TestDisconnectedWaiterLeavesTheQueue: when a client goes away while it waits, its entry leaves
// the queue at once, however the connection ends and however the body was sent.
func TestDisconnectedWaiterLeavesTheQueue(t *testing.T) {
	t.Parallel()
	const text = `{"wait_seconds":60}`
	large := `{"wait_seconds":60` + padded(8 << 10)[1:]
	cases := map[string][]option{
		"Body": {body(text)}, "Chunked": {chunked(text)}, "LargeBody": {body(large)},
		"LargeChunked": {chunked(large)},
		"Traced": {
			body(text), header("traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"),
		},
	}
	for name, o := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newTenant(t)
			first := c.acquire("orders:42")
			gone := c.named("gone").join("orders:42", o...)
			c.named("stays").join("orders:42")
			gone.cut()
			poll.Within(
				t, promptly, "the entry is gone", func() bool { return *c.look("orders:42").Waiting == 1 },
			)
			c.checkQueue("orders:42", first, []string{"stays"})
		})
	}
}

// TestEveryWayToDisconnectLeavesTheQueue: the same for each way in which a connection can end.
func TestEveryWayToDisconnectLeavesTheQueue(t *testing.T) {
	t.Parallel()
	ends := map[string]func(*conn){
		"Reset": (*conn).reset,
		"Close": func(c *conn) { _ = c.Close() },
		"HalfClose": func(c *conn) {
			if err := c.CloseWrite(); err != nil {
				c.t.Fatal(err)
			}
		},
	}
	const text = `{"wait_seconds":60}`
	bodies := map[string]string{
		"Body": fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(text), text),
		"Chunked": fmt.Sprintf(
			"Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", len(text), text,
		),
		"Expect": fmt.Sprintf("Expect: 100-continue\r\nContent-Length: %d\r\n\r\n%s", len(text), text),
	}
	for how, end := range ends {
		for name, rest := range bodies {
			t.Run(how+name, func(t *testing.T) {
				t.Parallel()
				c := newTenant(t)
				first := c.acquire("orders:42")
				conn := dial(t, shared.main)
				conn.write(
					"POST /locks/orders:42 HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n" +
						"Authorization: Bearer " + c.bearer + "\r\n" + rest,
				)
				c.awaitWaiting("orders:42", 1)
				end(conn)
				poll.Within(
					t, promptly, "the entry is gone", func() bool { return *c.look("orders:42").Waiting == 0 },
				)
				c.checkQueue("orders:42", first, nil)
			})
		}
	}
}

// TestResumableWaiterStaysQueued: with an idempotency key, or with the token, the client can
// come back, so its place is kept.
func TestResumableWaiterStaysQueued(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(c *client) *pending{
		"WithKey": func(c *client) *pending { return c.join("orders:42", key("k")) },
		"WithToken": func(c *client) *pending {
			e := c.at(shared.brief).post("/locks/orders:42", body(`{"wait_seconds":60}`)).waiting(
				http.StatusAccepted,
			)
			p := c.start("GET", entryPath(e)+"?wait_seconds=20", lockToken(e.Token))
			poll.Until(c.t, "the GET waits", func() bool { return waitsOn(c, e) })
			return p
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newTenant(t)
			first := c.acquire("orders:42")
			gone := start(c.named("gone"))
			c.named("behind").join("orders:42")
			gone.cut()
			for cut := time.Now(); time.Since(cut) < time.Second; { // enough to see it removed
				c.checkQueue("orders:42", first, []string{"gone", "behind"})
			}
		})
	}
}
