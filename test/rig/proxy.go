package rig

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

// Direction is one way through a Proxy.
type Direction int

// The two directions, as bits: Both is their sum.
const (
	ToServer Direction = 1 << iota
	ToClient
	Both = ToServer | ToClient
)

// ProxyStats counts what a Proxy has done since it started.
type ProxyStats struct {
	Connections    int   // accepted from clients
	Resets         int   // connections that the proxy itself has cut
	AnswersDropped int   // of these, by DropAnswers, after the server had answered
	RequestsCut    int   // of these, by CutRequests, after a request was forwarded
	BytesToServer  int64 // forwarded
	BytesToClient  int64 // forwarded
}

// Proxy forwards TCP connections to one address and breaks them on demand. It
// knows nothing of the protocol inside. All methods may be called at any time.
type Proxy struct {
	target   string
	listener net.Listener
	ctx      context.Context // ends with Close
	cancel   context.CancelFunc
	work     sync.WaitGroup

	mu      sync.Mutex
	faults  faults
	changed chan struct{} // closed and replaced whenever faults changes
	links   map[*link]struct{}
	stats   ProxyStats
	dropped []byte
}

// faults is the behaviour of the proxy; the zero value forwards everything.
type faults struct {
	dropAnswers int
	cutRequests int
	cutAfter    int64 // bytes to the client, per new connection; -1 is never
	blackhole   Direction
	some        Direction // the same, of connections that are marked
	marks       func(sent []byte) bool
	delay       [Both]time.Duration // by direction
}

// StartProxy listens on a free loopback port and forwards to target (host:port).
func StartProxy(target string) (*Proxy, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("start proxy: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	p := &Proxy{
		target: target, listener: listener, ctx: ctx, cancel: cancel,
		faults: faults{cutAfter: -1}, changed: make(chan struct{}), links: map[*link]struct{}{},
	}
	p.work.Go(p.accept)
	return p, nil
}

// Address returns the host:port to which clients connect.
func (p *Proxy) Address() string { return p.listener.Addr().String() }

// URL returns the address as http://host:port.
func (p *Proxy) URL() string { return "http://" + p.Address() }

// Stats returns the figures so far.
func (p *Proxy) Stats() ProxyStats {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stats
}

// Dropped returns the bytes that DropAnswers last kept from a client: an answer,
// or its first 16 KiB.
func (p *Proxy) Dropped() []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dropped
}

// DropAnswers cuts the connections of the next n answers: the request reaches
// the server, the server answers, the client gets a reset and not one byte.
func (p *Proxy) DropAnswers(n int) { p.set(func(f *faults) { f.dropAnswers = n }) }

// CutRequests resets the connections of the next n requests as soon as their
// first bytes were forwarded, without waiting for the server to answer.
func (p *Proxy) CutRequests(n int) { p.set(func(f *faults) { f.cutRequests = n }) }

// CutAfter resets every connection accepted from now on after n bytes from the
// server have reached the client; -1 ends this.
func (p *Proxy) CutAfter(n int64) { p.set(func(f *faults) { f.cutAfter = n }) }

// Blackhole holds back what flows in direction d (0 heals), as a partition does
// to TCP: nothing is lost or closed, and what was held back arrives when it heals.
func (p *Proxy) Blackhole(d Direction) { p.set(func(f *faults) { f.blackhole = d }) }

// BlackholeSome does so with some connections only: those over which a client has sent, in one
// piece, what is marked, since the first call. The mark must not change; 0 heals.
func (p *Proxy) BlackholeSome(d Direction, marks func(sent []byte) bool) {
	p.set(func(f *faults) { f.some, f.marks = d, marks })
}

// Delay makes everything in direction d arrive after at least this time.
func (p *Proxy) Delay(d Direction, by time.Duration) {
	p.set(func(f *faults) {
		for _, one := range []Direction{ToServer, ToClient} {
			if d&one != 0 {
				f.delay[one] = by
			}
		}
	})
}

// CutAll resets all open connections on both sides and returns their number.
// New ones are accepted.
func (p *Proxy) CutAll() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		l.reset()
	}
	p.stats.Resets += len(p.links)
	return len(p.links)
}

// Close cuts everything and waits for the proxy's goroutines.
func (p *Proxy) Close() error {
	p.cancel()
	err := p.listener.Close()
	p.CutAll()
	p.work.Wait()
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

func (p *Proxy) set(change func(*faults)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change(&p.faults)
	close(p.changed)
	p.changed = make(chan struct{})
}

func (p *Proxy) accept() {
	for {
		conn, err := p.listener.Accept()
		if err != nil {
			return // only Close ends it
		}
		p.work.Go(func() { p.serve(conn) })
	}
}

// serve runs one connection until a side ends it or a fault cuts it.
func (p *Proxy) serve(conn net.Conn) {
	l := &link{proxy: p, client: conn.(*net.TCPConn), gone: make(chan struct{})}
	if !p.add(l) {
		l.reset()
		return
	}
	defer p.remove(l)
	if !l.awaitServer() {
		return
	}
	server, err := (&net.Dialer{}).DialContext(p.ctx, "tcp", p.target)
	if err != nil {
		l.reset()
		return
	}
	if !l.connect(server.(*net.TCPConn)) {
		return
	}
	l.run()
}

// add registers a connection, unless the proxy is closing.
func (p *Proxy) add(l *link) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ctx.Err() != nil {
		return false
	}
	p.stats.Connections++
	l.budget = p.faults.cutAfter
	p.links[l] = struct{}{}
	return true
}

func (p *Proxy) remove(l *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.links, l)
}
