// Package drive uses a lock service as its clients do, over HTTP, breaks it, and records both the
// answers to the clients and the history of the store.
package drive

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/fencepost/fencepost/test/faults/history"
)

// answerTimeout is how long a client waits for an answer beyond what it asked for.
const answerTimeout = 6 * time.Second

// Client is one client of the service. It is used by one goroutine at a time.
type Client struct {
	Number  int
	URLs    []string // of the replicas
	bearer  string
	http    *http.Client
	history *history.Recorder
	odd     *Oddities
}

// NewClient returns a client that records into h and reports answers that no
// correct server gives to odd. Close ends its connections.
func NewClient(
	number int,
	urls []string,
	bearer string,
	h *history.Recorder,
	odd *Oddities,
) *Client {
	return &Client{
		Number: number, URLs: urls, bearer: bearer, history: h, odd: odd,
		http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 8}},
	}
}

// Close ends the client's idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Now is the time on the clock of the history.
func (c *Client) Now() time.Duration { return c.history.Now() }

// With returns a client that reaches the replicas at other addresses, for
// example through proxies, over connections of its own.
func (c *Client) With(urls ...string) *Client {
	return NewClient(c.Number, urls, c.bearer, c.history, c.odd)
}

// send makes one attempt at the replica with this index. It never repeats a
// request by itself.
func (c *Client) send(
	ctx context.Context,
	replica int,
	method, path string,
	header map[string]string,
	body any,
	wait time.Duration,
) Answer {
	a := Answer{Call: c.history.Now()}
	a.Err = c.exchange(
		ctx, &a, method, c.URLs[replica%len(c.URLs)]+path, header, body, wait+answerTimeout,
	)
	a.Return = c.history.Now()
	if !a.Entry.ExpiresAt.IsZero() { // the servers run on this machine and use its clock
		a.Until = a.Return + time.Until(a.Entry.ExpiresAt)
	}
	if a.Err != nil {
		a.Status = 0
	} else if _, ok := a.outcome(); !ok {
		c.odd.add(fmt.Errorf("client %d: %s %s: %v", c.Number, method, path, a))
	}
	return a
}

func (c *Client) exchange(
	ctx context.Context,
	a *Answer,
	method, url string,
	header map[string]string,
	body any,
	limit time.Duration,
) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	req, err := c.request(ctx, method, url, header, body)
	if err != nil {
		return err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if a.Body, err = io.ReadAll(resp.Body); err != nil {
		return err
	}
	a.Status, a.Header = resp.StatusCode, resp.Header
	return a.parse()
}

func (c *Client) request(
	ctx context.Context,
	method, url string,
	header map[string]string,
	body any,
) (*http.Request, error) {
	var reader io.Reader
	if body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		reader = bytes.NewReader(data)
	}
	req, err := http.NewRequestWithContext(ctx, method, url, reader)
	if err != nil {
		return nil, err
	}
	// Go's transport repeats a request with an Idempotency-Key by itself if it can rewind the body.
	// Here every attempt must be visible.
	req.GetBody = nil
	req.Header.Set("Authorization", "Bearer "+c.bearer)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	for name, value := range header {
		req.Header.Set(name, value)
	}
	return req, nil
}

// Oddities collects what must not happen whatever breaks.
type Oddities struct {
	mu    sync.Mutex
	found []error
}

func (o *Oddities) add(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.found = append(o.found, err)
}

// Found returns all of them.
func (o *Oddities) Found() []error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]error(nil), o.found...)
}
