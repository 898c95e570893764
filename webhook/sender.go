package webhook

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"math"
	"net"
	"time"
)

// Timeout is how long an attempt may take in all: resolving the name, connecting, TLS,
// sending, the answer and what is read of its body.
const Timeout = 15 * time.Second

// SenderConfig is what a [Sender] needs.
type SenderConfig struct {
	Policy *Policy // required

	// Timeout is another than [Timeout], if it is not 0.
	Timeout time.Duration

	// Now is the clock that timestamps come from; nil is time.Now.
	Now func() time.Time

	// DialNameServer connects to the name servers that the system names; nil is as
	// package net does.
	DialNameServer func(ctx context.Context, network, address string) (net.Conn, error)

	// RootCAs may sign receivers' certificates; nil means the system's authorities.
	RootCAs *x509.CertPool
}

// Sender makes attempts. It may be used by several goroutines, and keeps nothing between
// two attempts: each has a connection of its own, for one request and one answer over
// HTTP/1.1. So the address is checked each time, nothing of one tenant is left for
// another, and idle connections need no bound. There are no redirects, cookies,
// proxies or compressed answers, because nothing here knows of them.
type Sender struct {
	policy  *Policy
	timeout time.Duration
	now     func() time.Time
	roots   *x509.CertPool
	dial    func(ctx context.Context, network, address string) (net.Conn, error)
}

// NewSender returns a sender. There is nothing to close.
func NewSender(c SenderConfig) *Sender {
	s := &Sender{policy: c.Policy, timeout: c.Timeout, now: c.Now, roots: c.RootCAs}
	if s.timeout == 0 {
		s.timeout = Timeout
	}
	if s.now == nil {
		s.now = time.Now
	}
	nameServer := c.DialNameServer
	if nameServer == nil {
		nameServer = (&net.Dialer{}).DialContext
	}
	s.dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		dialer := net.Dialer{
			Resolver: newResolver(nameServer), ControlContext: c.Policy.Control, KeepAlive: -1,
		}
		return dialer.DialContext(ctx, network, address)
	}
	return s
}

// Send makes one attempt and says what came of it. It returns within the timeout, or when
// ctx ends. Whether there is another attempt is for [Progress.After] to say.
func (s *Sender) Send(ctx context.Context, t Target, m Message) Result {
	began := s.now()
	r := s.send(ctx, t, m, began)
	r.Took = s.now().Sub(began)
	return r
}

func (s *Sender) send(ctx context.Context, t Target, m Message, now time.Time) Result {
	e, fault := s.policy.parse(t.URL)
	if fault != "" {
		return Result{Outcome: Rejected, Err: "the URL " + fault}
	}
	if err := m.Check(); err != nil {
		return Result{Outcome: Rejected, Err: "the message is not one that can be sent", Cause: err}
	}
	headers, err := Sign(m.ID, now, m.Payload, t.Secrets...)
	if err != nil {
		return Result{Outcome: Rejected, Err: "the message cannot be signed", Cause: err}
	}
	if m.Expired(now) {
		return tooLate()
	}
	attemptCtx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	conn, err := s.connect(attemptCtx, e)
	if err != nil {
		return s.failed(ctx, attemptCtx, err)
	}
	// To say goodbye over TLS may take seconds, which this bounds as well.
	defer context.AfterFunc(attemptCtx, func() { hangUp(conn) })()
	defer func() { _ = conn.Close() }()
	if m.Expired(s.now()) { // connecting may have taken most of the time
		return tooLate()
	}
	answer, err := exchange(conn, e, headers, m.Payload)
	if err != nil {
		return s.failed(ctx, attemptCtx, err)
	}
	return answer.result(s.now())
}

func tooLate() Result {
	return Result{Outcome: Expired, Err: "not sent: it was too late to be of use"}
}

// connect returns a connection over which nothing of the message has been sent.
func (s *Sender) connect(ctx context.Context, e *endpoint) (net.Conn, error) {
	conn, err := s.dial(ctx, "tcp", e.address())
	if err != nil {
		return nil, &stepError{connecting, err}
	}
	if !e.secure {
		return conn, nil
	}
	handshake := &handshakeConn{
		Conn: conn,
		bounded: boundedReader{
			from: conn, bytes: maxHandshake, lines: math.MaxInt, beyond: errLongHandshake,
		},
	}
	secured := tls.Client(handshake, &tls.Config{
		ServerName: e.host, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"},
		RootCAs: s.roots, Time: s.now,
	})
	if err := secured.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		return nil, &stepError{securing, err}
	}
	handshake.done = true
	return secured, nil
}

// maxHandshake is how much is read for a TLS handshake, in bytes. Package tls would keep
// 256 KiB of certificates, of each of a thousand receivers.
const maxHandshake = 64 << 10

// handshakeConn bounds what is read until the handshake is done. What is read then
// has bounds of its own.
type handshakeConn struct {
	net.Conn
	bounded boundedReader
	done    bool
}

func (c *handshakeConn) Read(b []byte) (int, error) {
	if c.done {
		return c.Conn.Read(b)
	}
	return c.bounded.Read(b)
}

// hangUp closes the connection without a word to the other end; what waits for it ends.
func hangUp(conn net.Conn) {
	if secured, ok := conn.(*tls.Conn); ok {
		conn = secured.NetConn()
	}
	_ = conn.Close()
}
