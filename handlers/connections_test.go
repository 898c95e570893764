package handlers_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"github.com/fencepost/fencepost/handlers"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service"
	"github.com/fencepost/fencepost/test/poll"
)

// waiting is a service in which every acquire waits until the test ends it.
type waiting struct {
	stub
	came chan struct{}
	over chan struct{}
}

func (w *waiting) Acquire(ctx context.Context, _ service.AcquireRequest) (*service.Grant, error) {
	w.came <- struct{}{}
	select {
	case <-w.over:
	case <-ctx.Done():
	}
	return nil, lock.LostBecause(lock.Released)
}

// bounded serves over no more than most connections.
func bounded(t *testing.T, most int) (*replica, *waiting) {
	t.Helper()
	w := &waiting{came: make(chan struct{}, 100), over: make(chan struct{})}
	server := httptest.NewUnstartedServer(handlers.New(shared.handlers(w)))
	server.Listener = handlers.NewConnections(most).Listener(server.Listener)
	server.Config.ConnContext = handlers.ConnContext
	server.Start()
	r := &replica{server: server, url: server.URL, transport: &http.Transport{}}
	t.Cleanup(func() { close(w.over); r.close() })
	return r, w
}

func (c *conn) ask(method, path, bearer string) {
	c.t.Helper()
	c.patience()
	c.write(fmt.Sprintf(
		"%s %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n\r\n", method, path, bearer,
	))
}

func (c *conn) patience() {
	c.t.Helper()
	if err := c.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		c.t.Fatal(err)
	}
}

// closed waits until the server has closed the connection.
func (c *conn) closed() {
	c.t.Helper()
	c.patience()
	if n, err := io.Copy(io.Discard, c.in); n > 0 || errors.Is(err, os.ErrDeadlineExceeded) {
		c.t.Fatalf("%d bytes, %v instead of the end", n, err)
	}
}

// TestIdleConnectionsGiveWay: at the limit of connections the server closes the oldest idle one,
// so that idle clients keep no new client out.
func TestIdleConnectionsGiveWay(t *testing.T) {
	t.Parallel()
	r, w := bounded(t, 4)
	bearer := newTenant(t).bearer
	waiter := dial(t, r)
	waiter.ask("POST", "/locks/a", bearer)
	<-w.came
	silent, half, idle := dial(t, r), dial(t, r), dial(t, r)
	half.write("GET /healthz HTTP/1.1\r\nHo")
	idle.ask("GET", "/healthz", "")
	if a, _ := idle.read(http.MethodGet); a.status != http.StatusOK {
		t.Fatal(a)
	}
	for _, gone := range []*conn{silent, half, idle} {
		next := dial(t, r)
		next.ask("POST", "/locks/a", newTenant(t).bearer)
		<-w.came
		gone.closed()
	}
	dial(t, r).closed() // all are busy
}

// TestUsedLastGivesWayLast: of two idle connections the server closes the one that was used
// first, also if the other is older.
func TestUsedLastGivesWayLast(t *testing.T) {
	t.Parallel()
	r, w := bounded(t, 3)
	bearer := newTenant(t).bearer
	used, idle := dial(t, r), dial(t, r)
	get := func(c *conn, path string) {
		t.Helper()
		c.ask("GET", path, bearer)
		if a, _ := c.read(http.MethodGet); a.status != http.StatusOK {
			t.Fatal(a)
		}
	}
	get(idle, "/healthz") // both are there now, and neither is authenticated
	get(used, "/locks")
	get(used, "/healthz") // that is over
	for range 2 {
		next := dial(t, r)
		next.ask("POST", "/locks/a", newTenant(t).bearer)
		<-w.came
	}
	idle.closed()
	get(used, "/locks")
}

// TestConnectionsOfOneTenant: a tenant that takes most of what there is is refused more,
// but not its releases; there is room for others, and it is back as soon as one ends.
func TestConnectionsOfOneTenant(t *testing.T) {
	t.Parallel()
	r, w := bounded(t, 12)
	bearer := newTenant(t).bearer
	var all []*conn
	for range 9 { // three times as many as are left then
		c := dial(t, r)
		c.ask("POST", "/locks/a", bearer)
		<-w.came
		all = append(all, c)
	}
	over := dial(t, r)
	for _, path := range []string{
		"/locks/a", "/locks", "/locks/a/entries/" + someID + "?wait_seconds=50",
	} {
		method := "GET"
		if path == "/locks/a" {
			method = "POST"
		}
		over.ask(method, path, bearer)
		a, _ := over.read(method)
		a.wantProblem(tooMany("requests of the tenant"), "may_have_taken_effect")
		if a.fields()["may_have_taken_effect"] != false || a.header.Get("Retry-After") != "1" {
			t.Errorf("%v", a)
		}
	}
	over.write(fmt.Sprintf(
		"DELETE /locks/a HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nLock-Token: %s\r\n\r\n",
		bearer, someToken,
	))
	if a, _ := over.read(http.MethodDelete); a.status != http.StatusNoContent {
		t.Errorf("a release is answered %v", a)
	}
	other := dial(t, r)
	other.ask("POST", "/locks/a", newTenant(t).bearer)
	<-w.came
	all[0].reset()
	all[1].reset()
	poll.Until(t, "the tenant is let in again", func() bool {
		over.ask("GET", "/locks", bearer)
		a, _ := over.read(http.MethodGet)
		return a.status == http.StatusOK
	})
	for range 50 { // one after the other, which takes nothing for good
		over.ask("GET", "/locks", bearer)
		if a, _ := over.read(http.MethodGet); a.status != http.StatusOK {
			t.Fatal(a)
		}
	}
}

// TestBodyThatDoesNotCome: a client that announces a body and sends none takes its
// connection for 10 s, and no longer.
func TestBodyThatDoesNotCome(t *testing.T) {
	t.Parallel()
	r, _ := bounded(t, 4)
	c := dial(t, r)
	c.write(
		"POST /locks/a HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + newTenant(t).bearer +
			"\r\nContent-Length: 2\r\n\r\n{",
	)
	a, _ := c.read(http.MethodPost)
	a.wantProblem(problem{code: "invalid_request", detail: "the body did not arrive whole; " +
		"send it again"})
}
