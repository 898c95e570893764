package rig

import (
	"net"
	"sync"
	"time"
)

// chunk is what one read returned; without data it is the end of input.
type chunk struct {
	data []byte
	at   time.Time
}

// verdict says what becomes of a chunk.
type verdict struct {
	hold  <-chan struct{} // not nil: ask again when this is closed
	wait  time.Duration   // hold it this long first
	bytes int             // how much of it passes
	cut   bool            // reset the connection afterwards
}

// link is one connection through a Proxy: a client's side and a server's side.
type link struct {
	proxy  *Proxy
	client *net.TCPConn
	budget int64 // bytes that may still reach the client, -1 is no limit; guarded by proxy.mu
	muted  bool  // no answer may reach the client any more; guarded by proxy.mu
	marked bool  // see Proxy.BlackholeSome; guarded by proxy.mu

	mu     sync.Mutex
	server *net.TCPConn
	gone   chan struct{} // closed by reset
}

// awaitServer holds a new connection back while nothing may reach the server.
func (l *link) awaitServer() bool {
	for {
		v := l.proxy.judge(l, ToServer, chunk{})
		if v.hold == nil {
			return true
		}
		select {
		case <-v.hold:
		case <-l.gone:
			return false
		}
	}
}

// connect adds the server's side. It fails when the link was reset meanwhile.
func (l *link) connect(server *net.TCPConn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cut() {
		_ = server.Close() // a connection without data has nothing to lose
		return false
	}
	l.server = server
	return true
}

func (l *link) cut() bool {
	select {
	case <-l.gone:
		return true
	default:
		return false
	}
}

// reset cuts both sides with RST, so that neither takes it for a regular end.
// Errors say only that a side is closed already.
func (l *link) reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cut() {
		return
	}
	close(l.gone)
	for _, c := range []*net.TCPConn{l.client, l.server} {
		if c != nil {
			_ = c.SetLinger(0)
			_ = c.Close()
		}
	}
}

// run forwards both ways and returns when both have ended.
func (l *link) run() {
	var pumps sync.WaitGroup
	pumps.Go(func() { l.pump(ToServer, l.client, l.server) })
	pumps.Go(func() { l.pump(ToClient, l.server, l.client) })
	pumps.Wait()
	_ = l.client.Close()
	_ = l.server.Close()
}

// pump forwards one way. Reading and writing are apart, so that a delay makes
// answers late but not rare.
func (l *link) pump(d Direction, from, to *net.TCPConn) {
	queue := make(chan chunk, 64)
	stop := make(chan struct{})
	var reader sync.WaitGroup
	reader.Go(func() { read(from, queue, stop) })
	for c := range queue {
		if !l.deliver(d, to, c) {
			l.reset()
			break
		}
	}
	close(stop)
	l.deliver(d, to, chunk{at: time.Now()}) // the end of input is late and lost like data
	_ = to.CloseWrite()                     // a side that is broken ends by itself
	reader.Wait()
}

func read(from *net.TCPConn, queue chan<- chunk, stop <-chan struct{}) {
	defer close(queue)
	for {
		buffer := make([]byte, 16<<10)
		n, err := from.Read(buffer)
		if n > 0 {
			select {
			case queue <- chunk{buffer[:n], time.Now()}:
			case <-stop:
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// deliver writes a chunk as far as the faults allow. False ends the connection.
func (l *link) deliver(d Direction, to *net.TCPConn, c chunk) bool {
	for {
		v := l.proxy.judge(l, d, c)
		var later <-chan time.Time
		if v.wait > 0 {
			later = time.After(v.wait)
		}
		if v.hold == nil && later == nil {
			_, err := to.Write(c.data[:v.bytes])
			return err == nil && !v.cut
		}
		select {
		case <-v.hold:
		case <-later:
		case <-l.gone:
			return false
		}
	}
}

// judge decides about one chunk, and counts it when it may go.
func (p *Proxy) judge(l *link, d Direction, c chunk) verdict {
	p.mu.Lock()
	defer p.mu.Unlock()
	if d == ToServer && p.faults.marks != nil && !l.marked {
		l.marked = p.faults.marks(c.data)
	}
	if p.faults.blackhole&d != 0 || l.marked && p.faults.some&d != 0 {
		return verdict{hold: p.changed}
	}
	if wait := time.Until(c.at.Add(p.faults.delay[d])); wait > 0 {
		return verdict{wait: wait}
	}
	switch {
	case len(c.data) == 0:
		return verdict{}
	case d == ToServer:
		return p.judgeRequest(l, c)
	default:
		return p.judgeAnswer(l, c)
	}
}

func (p *Proxy) judgeRequest(l *link, c chunk) verdict {
	v := verdict{bytes: len(c.data)}
	p.stats.BytesToServer += int64(v.bytes)
	if p.faults.cutRequests > 0 {
		p.faults.cutRequests--
		p.stats.RequestsCut++
		p.stats.Resets++
		v.cut, l.muted = true, true // a quick answer must not come before the reset
	}
	return v
}

func (p *Proxy) judgeAnswer(l *link, c chunk) verdict {
	if l.muted {
		return verdict{cut: true}
	}
	if p.faults.dropAnswers > 0 {
		p.faults.dropAnswers--
		p.stats.AnswersDropped++
		p.stats.Resets++
		p.dropped = c.data
		return verdict{cut: true}
	}
	v := verdict{bytes: len(c.data)}
	if l.budget >= 0 {
		v.bytes = int(min(l.budget, int64(v.bytes)))
		l.budget -= int64(v.bytes)
		v.cut = l.budget == 0
	}
	if v.cut {
		p.stats.Resets++
	}
	p.stats.BytesToClient += int64(v.bytes)
	return v
}
