package handlers

import "time"

const (
	// smallHead is how many bytes of a request every connection has buffers for anyway.
	smallHead = 4 << 10

	// maxUnfinished is how many bytes of requests beyond that are kept of all connections, before
	// the requests have come so far that they can be authenticated. They take about 2.5 times as
	// much memory.
	maxUnfinished = 16 << 20

	// readPause is for each byte beyond the first few that a connection sends before it is
	// authenticated once: 33 ms for 16 KiB.
	readPause = 2 * time.Microsecond
)

// Read implements net.Conn. It counts what is read while no request of the connection is
// authenticated. Over the bound the server closes the connection that has been reading a large
// request for longest: a client that sends one at once needs milliseconds.
//
// It pauses while the connection is not authenticated: over HTTP/2 net/http reads frames without
// end, even of a connection that it has given up, and each takes time.
func (c *connection) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if c.unfinished.Add(int64(n)) > smallHead {
		c.of.grow(c, n)
	}
	if !c.known.Load() && c.received.Add(int64(n)) > smallHead {
		<-time.After(time.Duration(n) * readPause)
	}
	return n, err
}

// grow counts n bytes more of a large request.
func (c *Connections) grow(conn *connection, n int) {
	c.mu.Lock()
	if conn.busy == 0 && !conn.closed {
		if conn.large == nil {
			conn.large = c.large.PushBack(conn)
		}
		conn.counted += n
		c.counted += n
	}
	var out *connection
	if c.counted > c.mostCounted {
		out = c.large.Front().Value.(*connection)
		c.forget(out)
	}
	c.mu.Unlock()
	if out != nil {
		_ = out.Conn.Close() // its reader sees that
	}
}

// settle ends the count of what was read: a request has arrived, or has ended.
func (c *connection) settle() {
	if c.unfinished.Swap(0) > smallHead {
		c.of.mu.Lock()
		defer c.of.mu.Unlock()
		c.of.uncount(c)
	}
}

// uncount takes back what grow has counted. The caller holds mu.
func (c *Connections) uncount(conn *connection) {
	if conn.large != nil {
		c.large.Remove(conn.large)
		conn.large = nil
	}
	c.counted -= conn.counted
	conn.counted = 0
}
