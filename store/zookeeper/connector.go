package zookeeper

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/fencepost/fencepost/store"
)

// connector keeps one connection open. When it breaks, the connector opens the next one, to
// another server if there is one. A random delay keeps many replicas from returning together.
type connector struct {
	name    string
	servers []string // in a random order
	access  access
	log     *slog.Logger

	// prepare sets a connection up before its use.
	prepare func(context.Context, *link) error

	ctx  context.Context
	stop context.CancelFunc
	done chan struct{}

	mu      sync.Mutex
	current *link
	err     error         // of the last attempt
	changed chan struct{} // closed and replaced when either changes
}

const (
	firstPause   = 10 * time.Millisecond
	longestPause = time.Second
)

func newConnector(
	name string, servers []string, a access, log *slog.Logger,
	prepare func(context.Context, *link) error,
) *connector {
	c := &connector{
		name: name, servers: slices.Clone(servers), access: a, log: log, prepare: prepare,
		done: make(chan struct{}), changed: make(chan struct{}),
	}
	swap := func(i, j int) { c.servers[i], c.servers[j] = c.servers[j], c.servers[i] }
	rand.Shuffle(len(c.servers), swap)
	c.ctx, c.stop = context.WithCancel(context.Background())
	go c.run() // ends with close
	return c
}

func (c *connector) close() {
	c.stop()
	<-c.done
}

func (c *connector) run() {
	defer close(c.done)
	var closing sync.WaitGroup // of a broken connection; the next one does not wait for it
	defer closing.Wait()
	wait := firstPause
	for i := 0; c.ctx.Err() == nil; i++ {
		server := c.servers[i%len(c.servers)]
		l, err := c.open(server)
		c.set(l, err)
		if err != nil {
			c.log.Warn("no connection to ZooKeeper", "use", c.name, "server", server, "error", err)
			if store.Pause(c.ctx, wait/2+rand.N(wait)) != nil {
				return
			}
			wait = min(2*wait, longestPause)
			continue
		}
		wait = firstPause
		select {
		case <-l.broken:
			c.set(nil, l.why)
			c.log.Warn("a connection to ZooKeeper broke", "use", c.name, "server", server, "error", l.why)
			_ = l.raw.Close() // nothing more is sent over it, whatever the next one does
			closing.Wait()
			closing.Go(l.close)
		case <-c.ctx.Done():
			c.set(nil, errClosed)
			l.close()
		}
	}
}

func (c *connector) open(server string) (*link, error) {
	l, err := openLink(c.ctx, server, c.access)
	if err != nil || c.prepare == nil {
		return l, err
	}
	ctx, cancel := context.WithTimeout(c.ctx, openTimeout)
	defer cancel()
	if err := c.prepare(ctx, l); err != nil {
		l.close()
		return nil, err
	}
	return l, nil
}

func (c *connector) set(l *link, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.current, c.err = l, err
	close(c.changed)
	c.changed = make(chan struct{})
}

// get returns the connection, or waits for one.
func (c *connector) get(ctx context.Context) (*link, error) {
	if ctx.Err() != nil {
		return nil, &notSent{ctx.Err()}
	}
	for {
		c.mu.Lock()
		l, err, changed := c.current, c.err, c.changed
		c.mu.Unlock()
		if l != nil {
			select {
			case <-l.broken:
			default:
				return l, nil
			}
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, &notSent{errors.Join(ctx.Err(), err)}
		case <-c.ctx.Done():
			return nil, &notSent{errClosed}
		}
	}
}

// isOpen reports whether get returns a connection at once.
func (c *connector) isOpen() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.current != nil
}

// onLink makes a request on the present connection, and repeats it on the next one until there is
// an answer or ctx ends. The request must be safe to run more than once.
func onLink[T any](
	ctx context.Context, c *connector, request func(*zk.Conn) (T, error),
) (T, error) {
	for {
		l, err := c.get(ctx)
		if err != nil {
			var none T
			return none, err
		}
		value, err := do(ctx, l, request)
		if err == nil || answered(err) || store.Pause(ctx, firstPause) != nil {
			return value, err
		}
	}
}
