package handlers_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"github.com/fencepost/fencepost/handlers"
	"github.com/fencepost/fencepost/quota"
	"github.com/fencepost/fencepost/service"
	"github.com/fencepost/fencepost/store/memory"
	"github.com/fencepost/fencepost/telemetry"
	"github.com/fencepost/fencepost/test/poll"
)

// hotRouter returns a router over the store in memory, and a bearer token.
func hotRouter(b *testing.B) (http.Handler, string) {
	server := memory.NewServer(memory.Config{})
	b.Cleanup(server.Close)
	backing := server.Connect(nil)
	b.Cleanup(backing.Close)
	config := service.Config{
		Store: backing, TokenKey: secret(), MinTTL: time.Second, Metrics: shared.telemetry.Metrics(),
	}
	s := service.New(config)
	b.Cleanup(s.Close)
	poll.Until(b, "the service is ready", func() bool { return s.Ready(b.Context()) == nil })
	h := shared.handlers(s)
	limits := quota.Standard()
	limits[quota.Requests], limits[quota.Renewals], limits[quota.Releases] = 1e6, 1e6, 1e6
	h.Quotas = quota.New(quota.Config{Defaults: limits, Records: shared.records})
	lines := telemetry.NewLineWriter(io.Discard, nil)
	b.Cleanup(func() { _ = lines.Close() })
	h.Logger = telemetry.NewLogger(lines, telemetry.FormatJSON, slog.LevelInfo)
	return handlers.New(h), newTenant(b).bearer
}

// hotBody is what the benchmarks acquire with.
const hotBody = `{"ttl_seconds":30,"wait_seconds":5}`

// sink is a response writer and a body that allocate nothing, so that a benchmark counts the
// server's allocations alone.
type sink struct {
	header http.Header
	status int
	text   []byte
	body   bytes.Reader
}

func (s *sink) Header() http.Header    { return s.header }
func (s *sink) WriteHeader(status int) { s.status = status }
func (s *sink) Flush()                 {}
func (s *sink) Write(text []byte) (int, error) {
	s.text = append(s.text, text...)
	return len(text), nil
}
func (s *sink) Read(p []byte) (int, error) { return s.body.Read(p) }
func (s *sink) Close() error               { return nil }

// hotCall is a request that is sent again and again.
type hotCall struct {
	request *http.Request
	token   []string
}

func newHotCall(method, bearer string) *hotCall {
	r := httptest.NewRequest(method, "/", http.NoBody)
	c := &hotCall{request: r, token: make([]string, 1)}
	r.Header.Set("Authorization", "Bearer "+bearer)
	switch method {
	case http.MethodPost:
		r.Header.Set("Content-Type", "application/json")
	default:
		r.Header["Lock-Token"] = c.token
	}
	return c
}

// do sends the request and returns what answers it.
func (c *hotCall) do(b *testing.B, h http.Handler, to *sink, path, body, token string) []byte {
	c.token[0] = token
	r := c.request
	r.URL.Path, r.RequestURI, r.Body, r.ContentLength = path, path, http.NoBody, int64(len(body))
	if body != "" {
		to.body.Reset([]byte(body))
		r.Body = to
	}
	clear(to.header)
	to.status, to.text = 0, to.text[:0]
	h.ServeHTTP(to, r)
	if to.status >= http.StatusMultipleChoices {
		b.Fatalf("%s %s = %d %s", r.Method, path, to.status, to.text)
	}
	return to.text
}

// tokenIn returns the lock token in an answer.
func tokenIn(text []byte) string {
	_, rest, _ := bytes.Cut(text, []byte(`"token":"`))
	token, _, _ := bytes.Cut(rest, []byte(`"`))
	return string(token)
}

// BenchmarkCycle measures acquire and release of a free lock, from the handler to the store in
// memory and back; "renewed" renews between them.
func BenchmarkCycle(b *testing.B) {
	for _, renewals := range []int{0, 1} {
		b.Run([]string{"held", "renewed"}[renewals], func(b *testing.B) {
			h, bearer := hotRouter(b)
			to := &sink{header: http.Header{}}
			acquire, renew := newHotCall("POST", bearer), newHotCall("PUT", bearer)
			release := newHotCall("DELETE", bearer)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				path := "/locks/orders:" + strconv.Itoa(i)
				token := tokenIn(acquire.do(b, h, to, path, hotBody, ""))
				for range renewals {
					renew.do(b, h, to, path+"/renew", "", token)
				}
				release.do(b, h, to, path, "", token)
			}
		})
	}
}

// BenchmarkLoopback is BenchmarkCycle over a connection of HTTP/1.1 that is kept alive, as the
// server serves it.
func BenchmarkLoopback(b *testing.B) {
	h, bearer := hotRouter(b)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	server := &http.Server{
		Handler: h, ReadHeaderTimeout: time.Second, IdleTimeout: time.Minute,
		ConnContext: handlers.ConnContext,
	}
	go func() { _ = server.Serve(handlers.NewConnections(10).Listener(l)) }()
	b.Cleanup(func() { _ = server.Close() })
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = conn.Close() })
	from, out, text := bufio.NewReader(conn), []byte(nil), []byte(nil)
	call := func(format string, args ...any) []byte {
		out = fmt.Appendf(out[:0], format, args...)
		if _, err := conn.Write(out); err != nil {
			b.Fatal(err)
		}
		if text, err = readAnswer(from, text[:0]); err != nil {
			b.Fatal(err)
		}
		return text
	}
	const head = " HTTP/1.1\r\nHost: localhost\r\nUser-Agent: Go-http-client/1.1\r\n" +
		"Accept-Encoding: gzip\r\nAuthorization: Bearer "
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		token := tokenIn(call("POST /locks/orders:%d"+head+"%s\r\nContent-Type: application/json\r\n"+
			"Content-Length: %d\r\n\r\n%s", i, bearer, len(hotBody), hotBody))
		call("DELETE /locks/orders:%d"+head+"%s\r\nLock-Token: %s\r\n\r\n", i, bearer, token)
	}
}

// readAnswer appends the body of an answer.
func readAnswer(from *bufio.Reader, text []byte) ([]byte, error) {
	length := 0
	for {
		line, err := from.ReadSlice('\n')
		if err != nil {
			return nil, err
		}
		if value, ok := bytes.CutPrefix(line, []byte("Content-Length: ")); ok {
			length, _ = strconv.Atoi(string(bytes.TrimSpace(value)))
		}
		if len(line) <= 2 {
			break
		}
	}
	text = append(text, make([]byte, length)...)
	_, err := io.ReadFull(from, text)
	return text, err
}
