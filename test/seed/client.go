package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"time"
)

// client is a lock's client as anybody could write it.
type client struct {
	url, bearer string
	http        *http.Client

	granted, refused, failed atomic.Int64
	trouble                  atomic.Pointer[string] // why the last one failed that did
}

// newClient keeps as many connections as there are workers: each is at work most of the time.
func newClient(url, bearer string, workers int) *client {
	keeps := &http.Transport{MaxIdleConnsPerHost: workers, IdleConnTimeout: time.Minute}
	return &client{url: url, bearer: bearer, http: &http.Client{Transport: keeps}}
}

// fail counts a failure, if it is none of a request that was given up because the traffic ends.
func (c *client) fail(ctx context.Context, status int, answer []byte, err error) {
	if ctx.Err() != nil {
		return
	}
	why := fmt.Sprintf("%d %.300s", status, answer)
	if err != nil {
		why = err.Error()
	}
	c.failed.Add(1)
	c.trouble.Store(&why)
}

// grant is what is needed of an answer.
type grant struct {
	ID    string `json:"id"`
	Token string `json:"token"`
	State string `json:"state"`
}

func (c *client) counts() string {
	text := fmt.Sprintf(
		"%d grants, %d refused or not in time, %d failed", c.granted.Load(), c.refused.Load(),
		c.failed.Load(),
	)
	if why := c.trouble.Load(); why != nil {
		text += ", the last one: " + *why
	}
	return text
}

func (c *client) ready(ctx context.Context) error {
	status, _, err := c.do(ctx, http.MethodGet, "/readyz", "", nil)
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("/readyz answers %d", status)
	}
	return err
}

// acquire asks for a lock or, at /locksets, for several. It returns nil if it was not granted, and
// away if the server was not reached or can do nothing at the moment.
func (c *client) acquire(
	ctx context.Context,
	path string,
	body map[string]any,
) (g *grant, away bool) {
	status, text, err := c.do(ctx, http.MethodPost, path, "", body)
	g = &grant{}
	switch {
	case err != nil || status >= http.StatusInternalServerError || status == http.StatusBadRequest:
		c.fail(ctx, status, text, err)
		return nil, status != http.StatusBadRequest
	case status != http.StatusCreated || json.Unmarshal(text, g) != nil:
		c.refused.Add(1)
		return nil, false
	}
	c.granted.Add(1)
	return g, false
}

// renew keeps what is held, and release gives it back, also when the traffic ends.
func (c *client) renew(ctx context.Context, path string, g *grant) {
	if status, text, err := c.do(ctx, http.MethodPut, path+"/renew", g.Token, nil); err != nil {
		c.fail(ctx, status, text, err)
	}
}

func (c *client) release(ctx context.Context, path string, g *grant) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if status, text, err := c.do(ctx, http.MethodDelete, path, g.Token, nil); err != nil {
		c.fail(ctx, status, text, err)
	}
}

func (c *client) do(
	ctx context.Context,
	method, path, lockToken string,
	body map[string]any,
) (int, []byte, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	var content io.Reader = http.NoBody
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return 0, nil, err
		}
		content = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.url+path, content)
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Authorization", "Bearer "+c.bearer)
	if lockToken != "" {
		req.Header.Set("Lock-Token", lockToken)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	return resp.StatusCode, text, err
}
