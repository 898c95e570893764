package handlers

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"
)

const (
	// handshakeTimeout is for how long a client may take to agree on TLS: as long as for
	// the headers of a request.
	handshakeTimeout = 5 * time.Second

	// maxStreams is how many requests a client may have under way on one connection of
	// HTTP/2. For more it opens another one.
	maxStreams = 250

	// What a connection of HTTP/2 may have sent that nobody has read yet, in bytes. A
	// body has at most maxBody.
	connectionWindow = 64 << 10
	streamWindow     = 2 * maxBody
)

// HTTP2 is what one connection of HTTP/2 may ask for: about as much as one of HTTP/1.1.
// Resets, settings and pings without end are bounded by net/http itself.
func HTTP2() *http.HTTP2Config {
	return &http.HTTP2Config{
		MaxConcurrentStreams:          maxStreams,
		MaxReadFrameSize:              16 << 10,
		MaxReceiveBufferPerConnection: connectionWindow,
		MaxReceiveBufferPerStream:     streamWindow,
		// The deadline of an answer ends its stream, for which there has to be room on the
		// connection too.
		WriteByteTimeout: defaultAnswerTimeout,
	}
}

// SecureListener is [Listener] over TLS, with HTTP/2 for clients that ask for it. It
// negotiates with each client before it hands out the connection, and answers those that
// speak HTTP without TLS. Close ends what is being negotiated, and waits for that.
func SecureListener(l net.Listener, bound *Connections, config *tls.Config, logger *slog.Logger) net.Listener {
	ctx, cancel := context.WithCancel(context.Background())
	s := &secureListener{
		listener: listener{l, bound, newRefuser(logger)}, config: config,
		ctx: ctx, cancel: cancel, ready: make(chan accepted),
	}
	s.running.Go(s.run)
	return s
}

type secureListener struct {
	listener
	config *tls.Config

	ctx     context.Context // until Close
	cancel  context.CancelFunc
	ready   chan accepted
	running sync.WaitGroup
}

// accepted is what Accept returns.
type accepted struct {
	conn net.Conn
	err  error
}

// Accept implements net.Listener.
func (l *secureListener) Accept() (net.Conn, error) {
	select {
	case a := <-l.ready:
		return a.conn, a.err
	case <-l.ctx.Done():
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l *secureListener) Close() error {
	l.cancel()
	err := l.Listener.Close()
	l.running.Wait()
	return err
}

// run accepts connections until Close. Whether another error is for good, net/http knows.
func (l *secureListener) run() {
	for {
		conn, err := l.counted()
		if err == nil {
			l.running.Go(func() { l.negotiate(conn) })
		} else if !l.hand(accepted{err: err}) {
			return
		}
	}
}

// hand has Accept return a. It returns false if nobody asks for it any more.
func (l *secureListener) hand(a accepted) bool {
	select {
	case l.ready <- a:
		return true
	case <-l.ctx.Done():
		return false
	}
}

func (l *secureListener) negotiate(conn *connection) {
	ctx, cancel := context.WithTimeout(l.ctx, handshakeTimeout)
	defer cancel()
	secured := tls.Server(conn, l.config)
	if err := secured.HandshakeContext(ctx); err != nil {
		l.refuse(conn, err)
		return
	}
	if !l.hand(accepted{conn: l.rewritten(secured)}) {
		_ = secured.Close() // there is nobody to tell
	}
}

// rewritten looks at the answers of HTTP/1.1. For HTTP/2, net/http wants the connection as
// it is.
func (l *secureListener) rewritten(conn *tls.Conn) net.Conn {
	state := conn.ConnectionState()
	if state.NegotiatedProtocol == "h2" {
		return conn
	}
	return &securedRewriter{rewriter{Conn: conn, refuser: l.refuser}, state}
}

// securedRewriter tells net/http what was negotiated.
type securedRewriter struct {
	rewriter
	state tls.ConnectionState
}

// ConnectionState is what net/http puts into the TLS of a request.
func (c *securedRewriter) ConnectionState() tls.ConnectionState { return c.state }

// refuse closes a connection on which nothing was agreed. Scanners and checks of ports do
// that all day, so it is worth a line only to those who look for it; who speaks HTTP is told.
func (l *secureListener) refuse(conn *connection, err error) {
	var notTLS tls.RecordHeaderError
	if errors.As(err, &notTLS) && notTLS.Conn != nil && likeHTTP(notTLS.RecordHeader) {
		err = l.answer(conn, http.StatusBadRequest, "this address speaks TLS: use https")
	}
	if err != nil && l.ctx.Err() == nil {
		l.logger.Debug("no TLS was agreed on", "client", addressOf(conn.RemoteAddr().String()).String(), "error", err)
	}
	_ = conn.Close() // there is nobody to tell
}

// likeHTTP reports whether bytes that are not of TLS may begin a request: a method has
// capital letters, and a short one is followed by a space and a path.
func likeHTTP(begin [5]byte) bool {
	for _, c := range begin[:3] {
		if c < 'A' || c > 'Z' {
			return false
		}
	}
	return true
}
