package side

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/fencepost/fencepost/test/bench/load"
)

// Connections are the connections of one side, one for each of its workers, kept
// for as long as requests on them succeed. A worker writes and reads on its own, in
// one goroutine, as a client without a pool does: the load shares the processors
// with what it measures, and an http.Transport takes as much of them as a server.
type Connections struct {
	// TLS is what they speak, if it is not nil.
	TLS *tls.Config

	mu     sync.Mutex
	open   map[net.Conn]struct{}
	closed bool
}

// NewConnections returns none yet: each is opened by its first request.
func NewConnections() *Connections { return &Connections{open: map[net.Conn]struct{}{}} }

// Close closes all; requests from then on fail.
func (c *Connections) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	var err error
	for conn := range c.open {
		err = errors.Join(err, conn.Close())
	}
	clear(c.open)
	return err
}

func (c *Connections) dial(ctx context.Context, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{Timeout: 30 * time.Second}).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	if c.TLS != nil {
		conn = tls.Client(conn, c.TLS)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, errors.Join(net.ErrClosed, conn.Close())
	}
	c.open[conn] = struct{}{}
	return conn, nil
}

func (c *Connections) drop(conn net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, open := c.open[conn]; open {
		delete(c.open, conn)
		_ = conn.Close() // it is given up after an error
	}
}

// answerTimeout is more than a server may hold a request open.
const answerTimeout = 2 * time.Minute

// line is the connection of one worker, which makes one request after the other.
type line struct {
	connections *Connections
	address     string
	conn        net.Conn // nil before the first request and after an error
	reader      *bufio.Reader
}

func newLine(c *Connections, address string) line {
	return line{connections: c, address: address, reader: bufio.NewReaderSize(nil, 2<<10)}
}

// connect dials if there is no connection.
func (l *line) connect(ctx context.Context) error {
	if l.conn != nil {
		return nil
	}
	conn, err := l.connections.dial(ctx, l.address)
	if err != nil {
		return err
	}
	l.conn = conn
	l.reader.Reset(conn)
	return nil
}

func (l *line) hangUp() {
	l.connections.drop(l.conn)
	l.conn = nil
}

// exchange writes a request, and has read take the answer from l.reader. The end of ctx ends it.
// After an error the next exchange has a new connection.
func (l *line) exchange(ctx context.Context, request []byte, read func() error) (err error) {
	if err := l.connect(ctx); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			l.hangUp()
		}
	}()
	conn := l.conn
	if err := conn.SetDeadline(time.Now().Add(answerTimeout)); err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() {
		_ = conn.SetDeadline(time.Unix(1, 0)) // fails only on a closed one
	})
	defer func() {
		if !stop() {
			err = errors.Join(ctx.Err(), err)
		}
	}()
	if _, err := conn.Write(request); err != nil {
		return err
	}
	return read()
}

// caller speaks HTTP on its line, and reuses what requests need.
type caller struct {
	line
	header http.Header
	url    url.URL
	text   []byte
	status int
	answer bytes.Buffer
}

func newCaller(c *Connections, base *url.URL, header http.Header) *caller {
	return &caller{line: newLine(c, base.Host), header: header, url: *base}
}

// expect sends a request and returns the body of the answer, which is valid
// until the next call. Another status than want is an error. A nil header
// stands for the caller's own.
func (c *caller) expect(
	ctx context.Context,
	want int,
	method, path string,
	header http.Header,
	body []byte,
) ([]byte, error) {
	status, err := c.send(ctx, method, path, header, body)
	if err != nil {
		return nil, err
	}
	if status != want {
		return nil, unexpected(method, status, c.answer.Bytes())
	}
	return c.answer.Bytes(), nil
}

// send sends a request, and has the body of the answer in c.answer.
func (c *caller) send(
	ctx context.Context,
	method, path string,
	header http.Header,
	body []byte,
) (status int, err error) {
	if err := c.exchange(ctx, c.request(method, path, header, body), c.read); err != nil {
		return 0, fmt.Errorf("%s: %w", method, err)
	}
	return c.status, nil
}

func (c *caller) request(method, path string, header http.Header, body []byte) []byte {
	if header == nil {
		header = c.header
	}
	c.url.Path = path
	t := append(append(append(c.text[:0], method...), ' '), c.url.RequestURI()...)
	t = append(append(t, " HTTP/1.1\r\nHost: "...), c.url.Host...)
	for name, values := range header {
		t = append(append(append(append(t, "\r\n"...), name...), ": "...), values[0]...)
	}
	t = strconv.AppendInt(append(t, "\r\nContent-Length: "...), int64(len(body)), 10)
	c.text = append(append(t, "\r\n\r\n"...), body...)
	return c.text
}

func (c *caller) read() error {
	resp, err := http.ReadResponse(c.reader, nil)
	if err != nil {
		return err
	}
	c.answer.Reset()
	_, err = c.answer.ReadFrom(resp.Body)
	if err = errors.Join(err, resp.Body.Close()); err != nil {
		return fmt.Errorf("read the answer: %w", err)
	}
	if c.status = resp.StatusCode; resp.Close {
		c.hangUp()
	}
	return nil
}

// errNoEffect is wrapped by the error of a request that may be sent again: it had no effect,
// and the server says so.
var errNoEffect = errors.New("it had no effect")

// unexpected does not quote good answers: they hold lock tokens. It tells a refusal
// that says that the request had no effect.
func unexpected(method string, status int, answer []byte) error {
	none := bytes.Contains(answer, []byte(`"may_have_taken_effect":false`))
	switch {
	case none && status == http.StatusTooManyRequests:
		return fmt.Errorf("%s answers %d: %w, %w", method, status, load.ErrRefused, errNoEffect)
	case none && status == http.StatusServiceUnavailable:
		return fmt.Errorf("%s answers %d %.500s: %w", method, status, answer, errNoEffect)
	}
	if status < http.StatusBadRequest {
		answer = nil
	}
	return fmt.Errorf("%s answers %d %.500s", method, status, answer)
}
