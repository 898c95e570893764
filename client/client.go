package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Config says how to reach a deployment of Fencepost.
type Config struct {
	// URLs are the base addresses of replicas, or of what balances requests over them. The
	// client uses one of them until it fails, then the next.
	URLs []string
	// Token returns the bearer token of the next request, see [Bearer]. Its error is a request
	// without an answer: the client tries again.
	Token func(context.Context) (string, error)
	// HTTP sends requests. Its Timeout has to be 0: a request that waits is open for 50 s. By
	// default the client has its own, which uses the proxy of the environment. Redirects are not
	// followed.
	HTTP *http.Client
	// Propagate adds headers to a request, such as the traceparent of the caller's context.
	Propagate func(context.Context, http.Header)
	// RetryFor is how long a call repeats a request that the servers do not answer, or answer
	// with 503 or 429, beyond the time that it waits for a lock. 30 s by default. It does not
	// apply to a held lock, whose limit is its deadline.
	RetryFor time.Duration
	// Logger receives a line for each lost lock and each failed release; [slog.Default] if nil.
	Logger *slog.Logger

	clock clock
}

// Bearer is a [Config.Token] that does not change.
func Bearer(token string) func(context.Context) (string, error) {
	return func(context.Context) (string, error) { return token, nil }
}

// Client acquires locks. Its methods may be called by many goroutines at once.
type Client struct {
	config  Config
	current atomic.Int64 // index of the URL in use

	tasks sync.WaitGroup // renewals, and requests that leave a queue after a cancelled call

	leaving context.Context // ends some time after Close
	stop    context.CancelFunc

	mu     sync.Mutex
	closed bool
	held   map[*Held]bool
	watch  *time.Timer // nil while no lock is held
	last   reading     // of the watch
}

// closeTimeout is how long Close lets calls that were cancelled leave their queues.
const closeTimeout = 2 * time.Second

// New returns a client. It sends no request.
func New(config Config) (*Client, error) {
	if len(config.URLs) == 0 || config.Token == nil {
		return nil, errors.New("client: URLs and Token are required")
	}
	config.URLs = slices.Clone(config.URLs)
	for i, text := range config.URLs {
		u, err := url.Parse(text)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" {
			return nil, fmt.Errorf("client: %q is no base URL", text)
		}
		config.URLs[i] = strings.TrimRight(text, "/")
	}
	if config.HTTP == nil {
		config.HTTP = newHTTP()
	}
	config.HTTP = withoutRedirects(config.HTTP)
	config.RetryFor = cmp.Or(config.RetryFor, defaultRetryFor)
	config.Logger = cmp.Or(config.Logger, slog.Default())
	if config.clock == nil {
		config.clock = readClocks(time.Now())
	}
	c := &Client{config: config, held: map[*Held]bool{}}
	c.leaving, c.stop = context.WithCancel(context.Background())
	return c, nil
}

// newHTTP returns a client that notices connections whose other end is gone.
func newHTTP() *http.Client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = 100
	transport.HTTP2 = &http.HTTP2Config{
		SendPingTimeout: 10 * time.Second, PingTimeout: 5 * time.Second,
	}
	return &http.Client{Transport: transport}
}

// withoutRedirects returns the client as it is, but that it follows no redirects: they would carry
// the token of a lock to another server.
func withoutRedirects(client *http.Client) *http.Client {
	stays := *client
	stays.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &stays
}

// Close stops the renewal of all locks that the client still holds, and ends their contexts.
// It does not release them: they expire with their TTL. It waits up to 2 s for calls that were
// cancelled to leave their queues.
func (c *Client) Close() error {
	c.mu.Lock()
	c.closed = true
	held := c.held
	c.held = map[*Held]bool{}
	c.mu.Unlock()
	for h := range held {
		h.end(&LostError{Name: h.Name(), Reason: ReasonClosed})
	}
	timer := time.AfterFunc(closeTimeout, c.stop)
	defer timer.Stop()
	c.tasks.Wait()
	c.stop()
	return nil
}

// begin counts a task that Close waits for. It reports false after Close.
func (c *Client) begin() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.tasks.Add(1)
	}
	return !c.closed
}

// isClosed reports whether Close was called.
func (c *Client) isClosed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed
}

// keep watches the clocks for a held lock. It reports false after Close.
func (c *Client) keep(h *Held) bool {
	now := c.config.clock()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	if c.held[h] = true; c.watch == nil {
		c.last = now
		c.watch = time.AfterFunc(watchEvery, c.look)
	}
	return true
}

// drop removes a lock that is no longer held.
func (c *Client) drop(h *Held) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.held, h)
	if len(c.held) == 0 && c.watch != nil {
		c.watch.Stop()
		c.watch = nil
	}
}

// A timer stands still while the machine is suspended, so the client looks at the other clocks
// once a second. Where they passed more time, the deadlines of its locks are nearer.
const (
	watchEvery = time.Second
	watchSlack = 50 * time.Millisecond
)

func (c *Client) look() {
	now := c.config.clock()
	c.mu.Lock()
	if c.watch == nil {
		c.mu.Unlock()
		return
	}
	slept := now.since(c.last) - (now.monotonic - c.last.monotonic)
	c.last = now
	c.watch.Reset(watchEvery)
	var all []*Held
	if slept > watchSlack {
		for h := range c.held {
			all = append(all, h)
		}
	}
	c.mu.Unlock()
	for _, h := range all {
		h.look()
	}
}
