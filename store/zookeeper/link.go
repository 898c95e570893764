package zookeeper

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"
)

const (
	// sessionTimeout matters little, because only the node below links/ is bound to a session. A
	// server may choose another one.
	sessionTimeout = 10 * time.Second

	// attemptTimeout bounds the wait for an answer before the connection counts as broken, and
	// openTimeout the same for each step of opening one.
	attemptTimeout = 1500 * time.Millisecond
	openTimeout    = 2 * time.Second

	// secondLook is the last part of attemptTimeout. A process that was stopped, and finds its
	// timers expired, still finds the answers that came meanwhile.
	secondLook = 100 * time.Millisecond

	// drainTimeout bounds how long requests in flight may take to end with their connection.
	drainTimeout = time.Second

	// inFlight bounds the requests of one connection, and bulk those of one task with many reads,
	// which leaves capacity for the others.
	inFlight = 256
	bulk     = 64

	// maxPacket bounds what a server can make this process buffer. No real answer comes near it.
	maxPacket = 8 << 20
)

var (
	errSilent  = errors.New("the server does not answer")
	errClosed  = errors.New("the connection was closed")
	errDialed  = errors.New("a connection is used once")
	errEnded   = errors.New("the connection has ended")
	errHungUp  = errors.New("the server hangs up: it is down, or it wants TLS or a certificate")
	errRefused = errors.New("the server refuses the credentials")
)

// notSent marks a request that has not reached the library, let alone a server.
type notSent struct{ cause error }

func (e *notSent) Error() string { return "not sent: " + e.cause.Error() }
func (e *notSent) Unwrap() error { return e.cause }

// link is one connection to one server with one session. It never reconnects: its dialer works
// once.
type link struct {
	conn   *zk.Conn
	raw    net.Conn
	server string
	slots  chan struct{}
	node   string // of this connection below links/; "" if it does not write

	broken chan struct{}
	once   sync.Once
	why    error // read after broken
}

// access is the configuration of connections.
type access struct {
	tls                *tls.Config
	username, password string
}

// openLink connects to one server and waits for a session.
func openLink(ctx context.Context, server string, a access) (*link, error) {
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	raw, err := a.dial(ctx, server)
	if err != nil {
		return nil, err
	}
	l := &link{
		raw: raw, server: server, slots: make(chan struct{}, inFlight), broken: make(chan struct{}),
	}
	started := make(chan struct{})
	ready := sync.OnceFunc(func() { close(started) })
	var dialed atomic.Bool
	l.conn, _, err = zk.Connect([]string{server}, sessionTimeout,
		zk.WithDialer(func(string, string, time.Duration) (net.Conn, error) {
			if dialed.Swap(true) {
				return nil, errDialed
			}
			return &buffered{raw, bufio.NewReader(raw)}, nil
		}),
		zk.WithHostProvider(&oneHost{}), zk.WithLogger(silence{}), zk.WithLogInfo(false),
		zk.WithMaxBufferSize(maxPacket),
		zk.WithEventCallback(func(e zk.Event) { l.event(e, ready) }),
	)
	if err != nil {
		return nil, errors.Join(err, raw.Close())
	}
	if err := l.begin(ctx, started, a); err != nil {
		l.fail(err)
		l.close()
		return nil, fmt.Errorf("%s: %w", server, err)
	}
	return l, nil
}

// begin waits for the session and authenticates.
func (l *link) begin(ctx context.Context, started <-chan struct{}, a access) error {
	select {
	case <-started:
	case <-l.broken:
		if errors.Is(l.why, errEnded) {
			return errHungUp
		}
		return l.why
	case <-ctx.Done():
		return fmt.Errorf("no session, as without a majority of the servers: %w", errSilent)
	}
	if a.username == "" {
		return nil
	}
	_, err := do(ctx, l, func(c *zk.Conn) (struct{}, error) {
		return struct{}{}, c.AddAuth("digest", []byte(a.username+":"+a.password))
	})
	if err != nil {
		return errors.Join(errRefused, err)
	}
	return nil
}

// event runs in the library's goroutines and must not block.
func (l *link) event(e zk.Event, ready func()) {
	if e.Type != zk.EventSession {
		return
	}
	switch e.State {
	case zk.StateHasSession:
		ready()
	case zk.StateAuthFailed:
		l.fail(errRefused)
	case zk.StateDisconnected, zk.StateExpired:
		l.fail(errEnded)
	}
}

// fail marks the connection as broken. Its owner closes it.
func (l *link) fail(why error) {
	l.once.Do(func() {
		l.why = why
		close(l.broken)
	})
}

// close ends the connection and waits for what is in flight. A healthy one ends its session, so
// that the server drops it at once.
//
// The library is closed when no request is in flight any more. If the connection breaks just
// after the library accepts a request, it answers that request three times; the channel has no
// space for that, and the goroutine would hang (go-zookeeper v1.0.4, queueRequest). Requests that
// still do not end are left behind.
func (l *link) close() {
	select {
	case <-l.broken:
		_ = l.raw.Close() // the library fails what it has sent, and then what it has not
	default:
		l.fail(errClosed)
	}
	taken := l.drain(0)
	l.conn.Close() // without an answer it takes a second
	_ = l.raw.Close()
	l.drain(taken)
}

// drain takes the slots of requests as they end, so that no other begins, for drainTimeout at
// most. It returns the number of taken slots, including those that were taken before.
func (l *link) drain(taken int) int {
	late := time.NewTimer(drainTimeout)
	defer late.Stop()
	for ; taken < cap(l.slots); taken++ {
		select {
		case l.slots <- struct{}{}:
		case <-late.C:
			return taken
		}
	}
	return taken
}

// do makes one request. The library's calls have no context, so they run in their own goroutine.
// An abandoned call keeps its slot until it is answered or the connection closes. A request that
// was not made returns [notSent].
func do[T any](ctx context.Context, l *link, request func(*zk.Conn) (T, error)) (T, error) {
	var none T
	if err := l.enter(ctx); err != nil {
		return none, &notSent{err}
	}
	type answer struct {
		value T
		err   error
	}
	answers := make(chan answer, 1)
	go func() { // ends with the answer, or with the link, whose close waits for it
		defer func() { <-l.slots }()
		value, err := request(l.conn)
		answers <- answer{value, err}
	}()
	timer := time.NewTimer(attemptTimeout - secondLook)
	defer timer.Stop()
	for looks := 1; ; looks++ {
		select {
		case a := <-answers:
			return a.value, a.err
		case <-ctx.Done():
			return none, ctx.Err()
		case <-timer.C:
		}
		if looks == 2 {
			l.fail(errSilent)
			return none, errSilent
		}
		timer.Reset(secondLook)
	}
}

// enter takes a slot.
func (l *link) enter(ctx context.Context) error {
	select {
	case <-l.broken:
		return l.why
	default:
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	select {
	case l.slots <- struct{}{}:
		return nil
	case <-l.broken:
		return l.why
	case <-ctx.Done():
		return ctx.Err()
	}
}

// dial resolves the server's name each time, so that a server that returns with another address
// is found.
func (a access) dial(ctx context.Context, server string) (net.Conn, error) {
	plain := &net.Dialer{}
	if a.tls == nil {
		return plain.DialContext(ctx, "tcp", server)
	}
	return (&tls.Dialer{NetDialer: plain, Config: a.tls}).DialContext(ctx, "tcp", server)
}

// buffered reads everything that has arrived at once. The library reads each answer in two parts,
// and a busy server sends many together.
type buffered struct {
	net.Conn
	in *bufio.Reader
}

func (b *buffered) Read(p []byte) (int, error) { return b.in.Read(p) }

// oneHost is a zk.HostProvider for the existing connection.
type oneHost struct {
	server string
	asked  bool
}

func (h *oneHost) Init(servers []string) error { h.server = servers[0]; return nil }
func (h *oneHost) Len() int                    { return 1 }
func (h *oneHost) Connected()                  {}

// Next reports from the second call on that all servers were tried. The library then fails what
// it has not sent, and waits.
func (h *oneHost) Next() (server string, retryStart bool) {
	retryStart, h.asked = h.asked, true
	return h.server, retryStart
}

// silence discards the library's log: this package logs broken connections itself.
type silence struct{}

func (silence) Printf(string, ...any) {}
