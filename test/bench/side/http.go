package side

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"
)

// NewTransport returns the HTTP transport that all workers of a side share:
// keep-alive with a connection for each of n workers.
func NewTransport(n int) *http.Transport {
	return &http.Transport{
		MaxIdleConns:          n,
		MaxIdleConnsPerHost:   n,
		DisableCompression:    true,
		DialContext:           (&net.Dialer{Timeout: 30 * time.Second}).DialContext,
		ResponseHeaderTimeout: 2 * time.Minute,
	}
}

// caller makes one request after the other and reuses what they need.
type caller struct {
	transport *http.Transport
	header    http.Header
	url       url.URL
	body      bytes.Reader
	answer    bytes.Buffer
}

func newCaller(t *http.Transport, base *url.URL, header http.Header) *caller {
	return &caller{transport: t, header: header, url: *base}
}

// expect sends a request and returns the body of the answer, which is valid
// until the next call. Another status than want is an error. A nil header
// stands for the caller's own.
func (c *caller) expect(ctx context.Context, want int, method, path string, header http.Header, body []byte) ([]byte, error) {
	resp, err := c.transport.RoundTrip(c.request(method, path, header, body).WithContext(ctx))
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	c.answer.Reset()
	if _, err := c.answer.ReadFrom(resp.Body); err != nil {
		return nil, fmt.Errorf("read the answer: %w", err)
	}
	if resp.StatusCode != want {
		return nil, unexpected(method, resp.StatusCode, c.answer.Bytes())
	}
	return c.answer.Bytes(), nil
}

func (c *caller) request(method, path string, header http.Header, body []byte) *http.Request {
	if header == nil {
		header = c.header
	}
	c.url.Path = path
	req := &http.Request{
		Method: method, URL: &c.url, Host: c.url.Host, Header: header,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, ContentLength: int64(len(body)),
	}
	if len(body) > 0 {
		c.body.Reset(body)
		req.Body = io.NopCloser(&c.body)
	}
	return req
}

// unexpected does not quote good answers: they hold lock tokens.
func unexpected(method string, status int, answer []byte) error {
	if status < http.StatusBadRequest {
		answer = nil
	}
	return fmt.Errorf("%s answers %d %.500s", method, status, answer)
}
