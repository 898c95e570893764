package handlers

import (
	"container/list"
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
)

// Connections bounds the connections of a server, so that no client can take all file descriptors
// of the process: without one left it could neither accept others nor open its own files. Above the
// bound it closes the connection that has been without an authenticated request for longest.
//
// It bounds their requests too: one connection of HTTP/2 has many. Authenticated requests are at
// most as many as the bound, and those of one tenant at most three times as many as are left: of
// one alone three quarters, so that another tenant always finds a slot.
type Connections struct {
	most int

	mu        sync.Mutex
	all       int
	busy      int            // authenticated requests
	byTenant  map[string]int // of these
	anonymous int            // requests over HTTP/2 before their authentication
	spare     *list.List     // of *connection without such requests, the longest so first

	// What is read of requests that are not authenticated, beyond [smallHead].
	counted, mostCounted int        // bytes
	large                *list.List // of *connection, the longest so first
}

// NewConnections returns a bound of most connections, at least one.
func NewConnections(most int) *Connections {
	return &Connections{
		most: max(1, most), byTenant: map[string]int{}, spare: list.New(),
		mostCounted: maxUnfinished, large: list.New(),
	}
}

// Listener returns a listener that accepts the connections of l for which there is room, and closes
// the others. Over TLS, put the TLS listener around it.
func (c *Connections) Listener(l net.Listener) net.Listener { return &listener{l, c} }

type listener struct {
	net.Listener
	bound *Connections
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if counted := l.bound.enter(conn); counted != nil {
			return counted, nil
		}
		_ = conn.Close()
	}
}

// connection is one that is counted until it is closed.
type connection struct {
	net.Conn
	of        *Connections
	place     *list.Element // among the spare ones; nil while it is busy
	busy      int           // authenticated requests
	anonymous int           // requests over HTTP/2 before their authentication
	closed    bool
	open      context.Context // ends when it is closed
	shut      context.CancelFunc

	known      atomic.Bool   // a request was authenticated
	received   atomic.Int64  // bytes before that
	unfinished atomic.Int64  // bytes that were read since a request arrived or ended
	counted    int           // of these, among the large ones
	large      *list.Element // nil if there are none
}

// enter counts a connection, for which another one may have to be closed. It returns nil
// if all are busy.
func (c *Connections) enter(conn net.Conn) *connection {
	c.mu.Lock()
	var out *connection
	if first := c.spare.Front(); c.all >= c.most && first != nil {
		out = first.Value.(*connection)
		c.forget(out)
	}
	var in *connection
	if c.all < c.most {
		in = &connection{Conn: conn, of: c}
		in.open, in.shut = context.WithCancel(context.Background())
		in.place = c.spare.PushBack(in)
		c.all++
	}
	c.mu.Unlock()
	if out != nil {
		_ = out.Conn.Close() // its reader sees that
	}
	return in
}

// forget takes a connection out of the count. The caller holds mu.
func (c *Connections) forget(conn *connection) {
	if conn.closed {
		return
	}
	conn.closed = true
	conn.shut()
	c.uncount(conn)
	c.all--
	if conn.place != nil {
		c.spare.Remove(conn.place)
		conn.place = nil
	}
}

// Close implements net.Conn.
func (c *connection) Close() error {
	c.of.mu.Lock()
	c.of.forget(c)
	c.of.mu.Unlock()
	return c.Conn.Close()
}

// begin notes that the tenant asks for something. It returns false if it asks for too
// much at once; then the connection may be closed for others.
func (c *connection) begin(tenant string) bool {
	all := c.of
	all.mu.Lock()
	defer all.mu.Unlock()
	const share = 3
	if c.closed || all.byTenant[tenant] >= share*(all.most-all.busy) {
		return false
	}
	if c.place != nil {
		all.spare.Remove(c.place)
		c.place = nil
	}
	all.uncount(c)
	c.known.Store(true)
	c.busy++
	all.busy++
	all.byTenant[tenant]++
	return true
}

// end takes back a begin that was true.
func (c *connection) end(tenant string) {
	all := c.of
	all.mu.Lock()
	defer all.mu.Unlock()
	all.busy--
	if all.byTenant[tenant]--; all.byTenant[tenant] == 0 {
		delete(all.byTenant, tenant)
	}
	if c.busy--; c.busy == 0 && !c.closed {
		c.place = all.spare.PushBack(c)
	}
}

// arrive counts a request over HTTP/2 before its authentication. Each connection
// may have one, as with HTTP/1.1, and all together as many more as there may be connections.
// It returns false if there are too many.
func (c *connection) arrive() bool {
	all := c.of
	all.mu.Lock()
	defer all.mu.Unlock()
	if c.anonymous > 0 && all.anonymous >= all.most {
		return false
	}
	c.anonymous++
	all.anonymous++
	return true
}

// depart takes back an arrive that was true.
func (c *connection) depart() {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	c.anonymous--
	c.of.anonymous--
}

type connectionKey struct{}

// ConnContext is for http.Server: it lets requests find the connection that they came
// over, if that is from [Connections.Listener].
func ConnContext(ctx context.Context, conn net.Conn) context.Context {
	if secured, ok := conn.(*tls.Conn); ok {
		conn = secured.NetConn()
	}
	if counted, ok := conn.(*connection); ok {
		return context.WithValue(ctx, connectionKey{}, counted)
	}
	return ctx
}

// transport is the connection of a request, and how the request counts there.
type transport struct {
	over      *connection // over which it came, or nil
	occupied  *connection // that it occupies, or nil
	anonymous *connection // over which it came, until the caller is authenticated, or nil
	crowded   bool        // it occupies none, because there are too many
}

// enter counts the request if its connection may have others next to it. It returns false if too
// many are not yet authenticated.
func (t *transport) enter(r *http.Request) bool {
	conn, ok := r.Context().Value(connectionKey{}).(*connection)
	if !ok {
		return true
	}
	t.over = conn
	conn.settle()
	if r.ProtoMajor < 2 {
		return true
	}
	if t.crowded = !conn.arrive(); t.crowded {
		return false
	}
	t.anonymous = conn
	return true
}

// occupy has the connection stay until the request is answered, unless its tenant has too many.
func (t *transport) occupy(tenant string) {
	if t.over == nil {
		return
	}
	if t.crowded = !t.over.begin(tenant); t.crowded {
		return
	}
	t.occupied = t.over
	if t.anonymous != nil {
		t.anonymous.depart()
		t.anonymous = nil
	}
}

func (t *transport) leave(tenant string) {
	if t.occupied != nil {
		t.occupied.end(tenant)
	}
	if t.anonymous != nil {
		t.anonymous.depart()
	}
	if t.over != nil {
		t.over.settle()
	}
}

// holdLittle bounds what the system keeps of the request's answer for a client that does not
// take it: without that it may be megabytes, beside all that this process counts.
func holdLittle(r *request, bytes int) {
	if r.conn.over == nil {
		return
	}
	if tcp, ok := r.conn.over.Conn.(interface{ SetWriteBuffer(bytes int) error }); ok {
		_ = tcp.SetWriteBuffer(bytes) // fails if it is closed, as the write will
	}
}

// leave returns what the request has taken.
func (r *request) leave() {
	r.walk.leave()
	r.bytes.giveBack(r.tenant())
	r.conn.leave(r.tenant())
}
