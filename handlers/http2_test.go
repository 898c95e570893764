package handlers_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fencepost/fencepost/auth/certtest"
	"github.com/fencepost/fencepost/handlers"
	"github.com/fencepost/fencepost/quota"
	"github.com/fencepost/fencepost/service"
	"github.com/fencepost/fencepost/test/poll"
)

// secured serves h over TLS, with no more than most connections.
func secured(t *testing.T, most int, h http.Handler) *replica {
	t.Helper()
	a := certtest.NewAuthority(t, "a")
	pair := must(tls.X509KeyPair(a.Issue(t, nil)))
	server := httptest.NewUnstartedServer(h)
	config := &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"},
		Certificates: []tls.Certificate{pair},
	}
	server.Listener = tls.NewListener(handlers.NewConnections(most).Listener(server.Listener), config)
	server.Config.ConnContext = handlers.ConnContext
	server.Config.HTTP2 = handlers.HTTP2()
	server.Config.MaxHeaderBytes = 32 << 10
	server.Config.ReadHeaderTimeout = 5 * time.Second
	server.Start()
	r := &replica{server: server, url: "https://" + server.Listener.Addr().String()}
	r.transport = &http.Transport{
		ForceAttemptHTTP2: true,
		TLSClientConfig:   &tls.Config{RootCAs: a.Pool(), MinVersion: tls.VersionTLS12},
	}
	t.Cleanup(r.close)
	return r
}

// another is the same replica over a connection of its own.
func (r *replica) another(t *testing.T) *replica {
	t.Helper()
	d := *r
	d.transport = r.transport.Clone()
	t.Cleanup(d.transport.CloseIdleConnections)
	return &d
}

// TestConnectionsWithoutTLSHoldNobodyUp: the server closes a connection that is silent, or on which
// the client does not speak TLS.
func TestConnectionsWithoutTLSHoldNobodyUp(t *testing.T) {
	t.Parallel()
	r := secured(t, 100, handlers.New(shared.handlers(shared.main.service)))
	var silent [6]*conn // one after the other they would take half a minute
	for i := range silent {
		silent[i] = dial(t, r)
	}
	other, plain := dial(t, r), dial(t, r)
	other.write("\x00\x01 something else entirely")
	plain.write("GET /locks/a HTTP/1.1\r\nHost: x\r\n\r\n")
	if a, goesOn := plain.read(http.MethodGet); a.status != http.StatusBadRequest || goesOn {
		t.Errorf("HTTP without TLS is answered %v", a)
	}
	newTenant(t).at(r).get("/healthz").wantStatus(http.StatusOK)
	_, _ = io.Copy(io.Discard, other.in) // an alert, or a reset
	for _, c := range silent {
		c.closed()
	}
}

// TestRequestsOfOneConnection: over HTTP/2 a tenant may have as many requests on one connection
// as over several, and other tenants are let in.
func TestRequestsOfOneConnection(t *testing.T) {
	t.Parallel()
	w := &waiting{came: make(chan struct{}, 100), over: make(chan struct{})}
	r := secured(t, 12, handlers.New(shared.handlers(w)))
	c := newTenant(t).at(r)
	var asked sync.WaitGroup
	defer asked.Wait()
	defer close(w.over)
	wait := func(c *client) {
		asked.Go(func() { c.post("/locks/a") })
		select {
		case <-w.came:
		case <-time.After(20 * time.Second):
			t.Fatal("it is not let in")
		}
	}
	if a := c.get("/healthz"); a.proto != "HTTP/2.0" {
		t.Fatalf("it speaks %s", a.proto)
	}
	for range 9 { // three times as many as are left then
		wait(c)
	}
	a := c.post("/locks/a")
	a.wantProblem(tooMany("requests of the tenant"), "may_have_taken_effect")
	c.delete("/locks/a", lockToken(someToken)).wantStatus(http.StatusNoContent)
	wait(newTenant(t).at(r))
	for range 3 * 12 { // one after the other, which takes nothing for good
		c.get("/healthz").wantStatus(http.StatusOK)
	}
}

// TestBusyOverHTTP2: a connection with a request under way stays, though another of its requests
// has ended.
func TestBusyOverHTTP2(t *testing.T) {
	t.Parallel()
	w := &waiting{came: make(chan struct{}, 100), over: make(chan struct{})}
	r := secured(t, 2, handlers.New(shared.handlers(w)))
	c := newTenant(t).at(r)
	p := c.start("POST", "/locks/a")
	<-w.came
	c.delete("/locks/a", lockToken(someToken)).wantStatus(http.StatusNoContent)
	first := dial(t, r)
	dial(t, r)
	first.closed()
	close(w.over)
	p.wait().wantStatus(http.StatusGone)
}

// TestStrangersOfOneConnection: unauthenticated requests are at most as many as there may be
// connections, however few connections carry them, and one on each comes on top.
func TestStrangersOfOneConnection(t *testing.T) {
	t.Parallel()
	const most = 4
	r := secured(t, most, handlers.New(shared.handlers(shared.main.service)))
	stranger := newTenant(t).with("").at(r)
	stranger.get("/healthz") // one connection for all
	var slow sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	defer slow.Wait()
	defer cancel()
	for range most {
		slow.Go(func() {
			for ctx.Err() == nil { // a request of the test's own may have been in the way
				signInSlowly(ctx, r)
			}
		})
	}
	poll.Until(t, "there are too many", func() bool {
		a := stranger.start("GET", "/locks").raw()
		return a.status == http.StatusTooManyRequests &&
			strings.Contains(string(a.body), "too many requests are under way")
	})
	stranger.at(r.another(t)).get("/healthz").wantStatus(http.StatusOK)
	cancel()
	poll.Until(
		t, "there is room again",
		func() bool { return stranger.start("GET", "/locks").raw().status == http.StatusUnauthorized },
	)
}

// signInSlowly announces a body and sends none, until ctx ends or there is an answer.
func signInSlowly(ctx context.Context, r *replica) {
	body, end := io.Pipe()
	defer end.Close()
	req := must(http.NewRequestWithContext(ctx, http.MethodPost, r.url+"/dashboard/session", body))
	req.ContentLength = 10
	if resp, err := r.transport.RoundTrip(req); err == nil {
		resp.Body.Close()
	}
}

// TestGoneOverHTTP2: a client that gives up one of its requests leaves the queue with it at
// once, and goes on over the same connection; so does one that takes the connection along.
func TestGoneOverHTTP2(t *testing.T) {
	t.Parallel()
	r := secured(t, 100, handlers.New(shared.handlers(shared.main.service)))
	c := newTenant(t)
	first := c.acquire("orders:42")
	gone := c.named("gone").at(r).join("orders:42")
	c.named("stays").at(r).join("orders:42")
	gone.cut()
	poll.Within(t, promptly, "the entry is gone", func() bool {
		return *c.look("orders:42").Waiting == 1
	})
	c.checkQueue("orders:42", first, []string{"stays"})

	var raw net.Conn
	own := r.another(t)
	own.transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, address)
		raw = conn
		return conn, err
	}
	c.named("cut").at(own).join("orders:42")
	c.awaitWaiting("orders:42", 2)
	if err := raw.Close(); err != nil {
		t.Fatal(err)
	}
	poll.Within(t, promptly, "the entry is gone", func() bool {
		return *c.look("orders:42").Waiting == 1
	})
}

// TestSlowBodyOverHTTP2: a body that does not come takes its stream for 10 s, and no longer;
// one that is too large, and headers that are, are refused as ever.
func TestSlowBodyOverHTTP2(t *testing.T) {
	t.Parallel()
	r := secured(t, 100, handlers.New(shared.handlers(shared.main.service)))
	c := newTenant(t).at(r)
	body, end := io.Pipe()
	defer end.Close()
	req := must(http.NewRequestWithContext(t.Context(), http.MethodPost, r.url+"/locks/a", body))
	req.ContentLength = 10
	req.Header.Set("Authorization", "Bearer "+c.bearer)
	began := time.Now()
	resp, err := r.transport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	text := must(io.ReadAll(resp.Body))
	resp.Body.Close()
	if resp.StatusCode != http.StatusBadRequest ||
		!bytes.Contains(text, []byte("the body did not arrive whole; send it again")) ||
		time.Since(began) < 5*time.Second {
		t.Errorf("%d %s after %v", resp.StatusCode, text, time.Since(began))
	}
	c.post("/locks/a", chunked("{}"+strings.Repeat(" ", 20<<10))).
		wantStatus(http.StatusRequestEntityTooLarge)
	large := must(
		http.NewRequestWithContext(t.Context(), http.MethodGet, r.url+"/healthz", http.NoBody),
	)
	large.Header.Set("X", strings.Repeat("x", 40<<10))
	if resp, err := r.transport.RoundTrip(large); err == nil {
		if resp.Body.Close(); resp.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
			t.Errorf("headers of 40 KiB are answered %d", resp.StatusCode)
		}
	}
}

// TestStallOverHTTP2: the server drops an event stream that its client does not read, and the
// other requests of the connection go on.
func TestStallOverHTTP2(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	inner := newReplica(
		t, func(c *service.Config) { c.Limits = limited(quota.Overrides{"event_streams": 1}) },
	)
	h := shared.handlers(inner.service)
	h.AnswerTimeout = 2 * time.Second // a busy machine may stop the other requests for less than this
	r := secured(t, 100, handlers.New(h))
	r.service = inner.service
	r.transport.HTTP2 = &http.HTTP2Config{MaxReceiveBufferPerStream: 16 << 10}
	req := must(http.NewRequestWithContext(t.Context(), http.MethodGet, r.url+"/events", http.NoBody))
	req.Header.Set("Authorization", "Bearer "+c.bearer)
	resp, err := r.transport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	metadata := fmt.Sprintf(`{"metadata":{"k":%q}}`, strings.Repeat("v", 2000))
	poll.Within(t, time.Minute, "who takes nothing is dropped", func() bool {
		for range 10 {
			c.at(r).release(c.at(r).acquire("a", body(metadata)))
		}
		return r.room(c)
	})
	if _, err := io.Copy(io.Discard, resp.Body); err == nil ||
		errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the stream ends with %v", err)
	}
}

// standing is a connection that is not read from once it stands still.
type standing struct {
	net.Conn
	still <-chan struct{}
	ended <-chan struct{}
}

func (c *standing) Read(p []byte) (int, error) {
	select {
	case <-c.still:
		<-c.ended
		return 0, net.ErrClosed
	default:
		return c.Conn.Read(p[:min(len(p), 4<<10)])
	}
}

// TestConnectionThatStalls: the server closes the connection of a client that reads nothing at
// all.
func TestConnectionThatStalls(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	inner := newReplica(
		t, func(c *service.Config) { c.Limits = limited(quota.Overrides{"event_streams": 1}) },
	)
	r := secured(t, 100, handlers.New(shared.handlers(inner.service)))
	r.service = inner.service
	still, ended := make(chan struct{}), make(chan struct{})
	stalls := r.another(t)
	stalls.transport.DialContext = func(
		ctx context.Context, network, address string,
	) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, address)
		if err == nil {
			err = conn.(*net.TCPConn).SetReadBuffer(4 << 10)
		}
		return &standing{conn, still, ended}, err
	}
	defer close(ended)
	req := must(http.NewRequestWithContext(t.Context(), http.MethodGet, r.url+"/events", http.NoBody))
	req.Header.Set("Authorization", "Bearer "+c.bearer)
	resp, err := stalls.transport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	close(still)
	metadata := fmt.Sprintf(`{"metadata":{"k":%q}}`, strings.Repeat("v", 2000))
	for range 300 { // more than the system keeps
		c.at(r).release(c.at(r).acquire("a", body(metadata)))
	}
	poll.Within(t, 50*time.Second, "who takes nothing is dropped", func() bool { return r.room(c) })
}

// TestSessionOverTLS: the cookie of a session is one for the host alone, and for TLS.
func TestSessionOverTLS(t *testing.T) {
	t.Parallel()
	config := shared.handlers(shared.main.service)
	config.PlainCookies = false
	r := secured(t, 100, handlers.New(config))
	c := newOperator(t).at(r)
	cookie := c.post("/dashboard/session", c.signsIn()).cookie()
	if cookie.Name != "__Host-fencepost-session" || !cookie.Secure || !cookie.HttpOnly ||
		cookie.Path != "/" || cookie.Domain != "" {
		t.Errorf("%v", cookie)
	}
	c.with("").get("/dashboard/session", bearing(cookie)).wantStatus(http.StatusOK)
}
