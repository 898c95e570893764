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
	resumed  sync.Cond // signaled when held changes
	held     direction
	target   string
	conns    map[net.Conn]bool
	losing   int // the answer that is lost, counted from now: 1 is the next
	closed   bool
	messages [2]int // reads, by direction
	bytes    [2]int
}

type direction int

const (
	up      direction = 1 // from the client to the server
	down    direction = 2
	nothing direction = 0
)

func newProxy(target string) (*proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &proxy{listener: l, target: target, conns: make(map[net.Conn]bool)}
	p.resumed.L = &p.mu
	go p.serve()
	return p, nil
}

func (p *proxy) address() string { return p.listener.Addr().String() }

func (p *proxy) port() int { return p.listener.Addr().(*net.TCPAddr).Port }

func (p *proxy) serve() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return // close was called
		}
		go p.join(client)
	}
}

// join connects a client with the server, as the kernel would refuse it if there is none.
func (p *proxy) join(client net.Conn) {
	p.mu.Lock()
	target := p.target
	p.mu.Unlock()
	server, err := net.Dial("tcp", target)
	if err != nil {
		client.Close()
		return
	}
	p.mu.Lock()
	p.conns[client], p.conns[server] = true, true
	closed := p.closed
	p.mu.Unlock()
	if closed {
		p.drop(client, server)
		return
	}
	asked := make(chan struct{}, 1) // has an item once the client sent something since p.lose
	go p.copy(server, client, up, asked)
	p.copy(client, server, down, asked)
}

func (p *proxy) copy(to, from net.Conn, d direction, asked chan struct{}) {
	defer p.drop(to, from)
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			if !p.pass(d, n, asked) {
				return
			}
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// pass counts a message, and waits while its direction is held. It returns false for the answer
// that must be lost, which takes the connection with it.
func (p *proxy) pass(d direction, n int, asked chan struct{}) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.messages[d-1]++
	p.bytes[d-1] += n
	for p.held&d != 0 && !p.closed {
		p.resumed.Wait()
	}
	if p.losing == 0 {
		return !p.closed
	}
	if d == up {
		select {
		case asked <- struct{}{}:
		default:
		}
		return !p.closed
	}
	select {
	case <-asked:
		p.losing--
		return p.losing > 0 && !p.closed
	default: // sent without a request, such as an event
		return !p.closed
	}
}

func (p *proxy) drop(conns ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		c.Close()
		delete(p.conns, c)
	}
}

// lose lets the server's nth next answer get lost, and cuts the connection that it is on. The
// request has reached the server by then.
func (p *proxy) lose(nth int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.losing = nth
}

// unlost returns how many answers are still to come until the one that gets lost.
func (p *proxy) unlost() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.losing
}

// hold delays what is sent in the directions d until the next call.
func (p *proxy) hold(d direction) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held = d
	p.resumed.Broadcast()
}

// lead cuts all connections, and leads new ones to the address.
func (p *proxy) lead(address string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.target = address
	for c := range p.conns {
		c.Close()
	}
}

// count returns how many messages and bytes have passed in both directions.
func (p *proxy) count() (messages, bytes int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.messages[0] + p.messages[1], p.bytes[0] + p.bytes[1]
}

// sent returns how many messages the client has sent.
func (p *proxy) sent() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.messages[0]
}

func (p *proxy) close() {
	p.listener.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	p.resumed.Broadcast()
	for c := range p.conns {
		c.Close()
	}
}
