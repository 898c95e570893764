package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Config says how to reach a deployment of Fencepost.
type Config struct {
	// URLs are the base addresses of replicas, or of what balances requests over them. The
	// client uses one of them until it fails, then the next. One text may name several, with commas
	// in between.
	URLs []string
	// Token is a [Bearer] token, or a [TokenFunc].
	Token TokenSource
	// HTTP sends requests. Its Timeout has to be 0: a request that waits is open for 50 s. By
	// default the client has its own, which uses the proxy of the environment, but not for
	// loopback. Redirects are not followed. If its Transport is a [http.Transport], requests that
	// wait use a copy: renewals do not queue behind them. Another one may not bound connections.
	HTTP *http.Client
	// Propagate adds headers to a request, such as the traceparent of the caller's context.
	Propagate func(context.Context, http.Header)
	// RetryFor is how long a call repeats a request that the servers do not answer, or answer
	// with 503 or 429, beyond the time that it waits for a lock. 30 s by default. It does not
	// apply to a held lock, whose limit is its deadline.
	RetryFor time.Duration
	// Logger receives a line for each lost lock and each failed release, and for the first request
	// that fails; [slog.Default] if nil.
	Logger *slog.Logger

	clock clock
}

// Client acquires locks. Its methods may be called by many goroutines at once.
type Client struct {
	config  Config
	waits   *http.Client // sends requests that wait, on connections of their own
	current atomic.Int64 // index of the URL in use
	failing atomic.Bool  // a failure was logged, and no server has answered since

	tasks sync.WaitGroup // acquires with what they take back, renewals and releases

	calls    context.Context // ends with Close
	endCalls context.CancelCauseFunc
	leaving  context.Context // ends some time after Close
	stop     context.CancelFunc

	mu     sync.Mutex
	closed bool
	held   map[*Held]bool
	watch  *time.Timer // nil while no lock is held
	last   reading     // of the watch
}

// closeTimeout is how long Close waits for what leaves its queue, and for releases.
const closeTimeout = 2 * time.Second

var errClosed = errors.New("the client is closed")

// New returns a client. It sends no request.
func New(config Config) (*Client, error) {
	var err error
	if config.URLs, err = baseURLs(config.URLs); err != nil {
		return nil, err
	}
	if config.Token == nil {
		return nil, errors.New("client: Token is required")
	}
	if token, ok := config.Token.(fixed); ok {
		if _, err := tokenOf(token()); err != nil {
			return nil, fmt.Errorf("client: %w", err)
		}
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
	c := &Client{config: config, waits: withOwnPool(config.HTTP), held: map[*Held]bool{}}
	c.calls, c.endCalls = context.WithCancelCause(context.Background())
	c.leaving, c.stop = context.WithCancel(context.Background())
	return c, nil
}

// baseURLs checks addresses. Its errors have their positions: they may have a password.
func baseURLs(texts []string) ([]string, error) {
	var bases []string
	for i, text := range strings.Split(strings.Join(texts, ","), ",") {
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		u, err := url.Parse(text)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" ||
			u.User != nil || strings.ContainsAny(text, "?#") {
			return nil, fmt.Errorf(
				"client: URL %d is no base URL: http or https, a host and perhaps a path", i+1)
		}
		bases = append(bases, strings.TrimRight(text, "/"))
	}
	if len(bases) == 0 {
		return nil, errors.New("client: URLs has no URL")
	}
	return bases, nil
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

// withOwnPool returns the client with connections of its own, as far as its Transport is known.
func withOwnPool(client *http.Client) *http.Client {
	own := *client
	if own.Transport == nil {
		own.Transport = http.DefaultTransport
	}
	if transport, ok := own.Transport.(*http.Transport); ok {
		own.Transport = transport.Clone()
	}
	return &own
}

// Close stops the renewal of all locks that the client still holds, and ends their contexts.
// It does not release them: they expire with their TTL. Calls under way end with the code
// [Cancelled], and acquires take back what they may have left. Close waits up to 2 s for that, and
// for releases under way.
func (c *Client) Close() error {
	c.mu.Lock()
	c.closed = true
	held := c.held
	c.held = map[*Held]bool{}
	c.mu.Unlock()
	for h := range held {
		h.end(&LostError{Name: h.Name(), Reason: ReasonClosed})
	}
	c.endCalls(errClosed)
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.tasks.Wait()
	}()
	timer := time.NewTimer(closeTimeout)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	}
	c.stop()
	c.waits.CloseIdleConnections()
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
