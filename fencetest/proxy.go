package main

import (
	"net"
	"sync"
)

// proxy is the network between one client and its server. It can lose an answer, delay what is
// sent, and lead to another server.
type proxy struct {
	listener net.Listener
	mu       sync.Mutex
	changed  sync.Cond // of held and closed
	held     direction
	target   string
	conns    map[net.Conn]bool
	losing   int // the answer that gets lost: 1 is the next
	closed   bool
	messages [3]int // reads, by direction
	bytes    [3]int
}

type direction int

const (
	nothing direction = 0
	up      direction = 1 // from the client to the server
	down    direction = 2
)

func newProxy(target string) (*proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &proxy{listener: l, target: target, conns: make(map[net.Conn]bool)}
	p.changed.L = &p.mu
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return // close was called
			}
			go p.join(client)
		}
	}()
	return p, nil
}

func (p *proxy) address() string { return p.listener.Addr().String() }

// join connects a client with the server, and closes its connection if there is none.
func (p *proxy) join(client net.Conn) {
	var target string
	p.do(func() { target = p.target })
	server, err := net.Dial("tcp", target)
	if err != nil {
		client.Close()
		return
	}
	p.do(func() { p.conns[client], p.conns[server] = true, true })
	asked := make(chan struct{}, 1) // has an item if the client sent something since lose
	go p.copy(server, client, up, asked)
	p.copy(client, server, down, asked)
}

func (p *proxy) copy(to, from net.Conn, d direction, asked chan struct{}) {
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 && !p.pass(d, n, asked) {
			break
		}
		if _, failed := to.Write(buffer[:n]); failed != nil || err != nil {
			break
		}
	}
	p.do(func() {
		for _, c := range []net.Conn{to, from} {
			c.Close()
			delete(p.conns, c)
		}
	})
}

// pass counts a message, and waits while its direction is held. It returns false for the answer
// that gets lost, which takes the connection with it.
func (p *proxy) pass(d direction, n int, asked chan struct{}) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.messages[d]++
	p.bytes[d] += n
	for p.held&d != 0 && !p.closed {
		p.changed.Wait()
	}
	switch {
	case p.closed:
		return false
	case p.losing > 0 && d == up && len(asked) == 0:
		asked <- struct{}{}
	case p.losing > 0 && d == down && len(asked) > 0: // else it is no answer, but an event
		<-asked
		p.losing--
		return p.losing > 0
	}
	return true
}

func (p *proxy) do(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f()
}

// lose lets the server's nth next answer get lost, and cuts the connection that it is on. The
// request has reached the server by then.
func (p *proxy) lose(nth int) { p.do(func() { p.losing = nth }) }

// unlost returns how many answers are still to come until the one that gets lost.
func (p *proxy) unlost() (n int) {
	p.do(func() { n = p.losing })
	return n
}

// hold delays what is sent in the directions d until the next call.
func (p *proxy) hold(d direction) {
	p.do(func() { p.held = d })
	p.changed.Broadcast()
}

// lead cuts all connections, and leads new ones to the address.
func (p *proxy) lead(address string) {
	p.do(func() { p.target = address })
	p.cut()
}

func (p *proxy) cut() {
	p.do(func() {
		for c := range p.conns {
			c.Close()
		}
	})
}

// count returns how many messages and bytes have passed in both directions, and how many messages
// the client has sent.
func (p *proxy) count() (messages, bytes, sent int) {
	p.do(func() {
		messages, bytes, sent = p.messages[up]+p.messages[down], p.bytes[up]+p.bytes[down], p.messages[up]
	})
	return messages, bytes, sent
}

func (p *proxy) close() {
	p.listener.Close()
	p.do(func() { p.closed = true })
	p.changed.Broadcast()
	p.cut()
}
