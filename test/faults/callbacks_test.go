package faults_test

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/fencepost/fencepost/test/faults/drive"
	"github.com/fencepost/fencepost/test/rig"
)

const (
	callers = 300

	// calledWithin is for how long a callback may take, also where its sender is killed.
	calledWithin = time.Minute
)

// TestEachCallerIsCalledBack acquires many locks at once, each with a callback. Entries of
// different locks are written together then, and share their number. Each entry gets its
// callback, under an id of its own, also if the servers are killed meanwhile.
func TestEachCallerIsCalledBack(t *testing.T) {
	c := newCalled(t)
	c.run("free", func() { c.acquire() })
	c.run("held", func() {
		held := c.hold()
		c.acquire()
		c.release(held)
	})
	c.run("killed", func() { // while they wait, and after their grants
		held := c.hold()
		c.acquire()
		c.kill()
		c.release(held)
		c.kill()
	})
	c.readLogs()
}

// called is a stand with a receiver of callbacks.
type called struct {
	*stand
	bearer  string
	url     string // of the receiver
	changed chan struct{}

	mu    sync.Mutex
	round string            // what locks are named after now
	ids   map[string]string // its entries, by the ids of their callbacks
}

func newCalled(t *testing.T) *called {
	t.Helper()
	c := &called{stand: newStand(t, 5*time.Minute, toLoopback...), changed: make(chan struct{}, 1)}
	receiver := httptest.NewServer(c)
	t.Cleanup(receiver.Close)
	c.url = receiver.URL + "/"
	var err error
	c.bearer, err = rig.SignToken(secret, tenant, "locks:read locks:write webhooks:write", "caller")
	c.must(err)
	if a := c.ask(http.MethodPost, "/webhooks/callback-secret/rotate", "", nil); a.Status/100 != 2 {
		t.Fatalf("there is no callback secret: %v", a)
	}
	return c
}

// run has all locks of a round acquired with a callback, and waits for the callbacks.
func (c *called) run(round string, acquire func()) {
	c.t.Helper()
	c.mu.Lock()
	c.round, c.ids = round, map[string]string{}
	c.mu.Unlock()
	acquire()
	c.await()
}

// ServeHTTP takes a callback.
func (c *called) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var e event
	if err != nil || json.Unmarshal(body, &e) != nil || e.Type != "lock.acquired" {
		c.t.Errorf("%s: %s (%v)", r.Header.Get("webhook-id"), body, err)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.URL.Path != "/"+c.round { // a repeated one, of the round before
		return
	}
	id := r.Header.Get("webhook-id")
	if known := c.ids[id]; known != "" && known != e.Data.Entry.ID {
		c.t.Errorf("the callbacks of the entries %s and %s have the id %s", known, e.Data.Entry.ID, id)
	}
	c.ids[id] = e.Data.Entry.ID
	select {
	case c.changed <- struct{}{}:
	default:
	}
}

// await waits until each entry has had its callback.
func (c *called) await() {
	c.t.Helper()
	began, late := time.Now(), time.NewTimer(calledWithin)
	defer late.Stop()
	for {
		c.mu.Lock()
		n := len(c.ids)
		entries := len(slices.Compact(slices.Sorted(maps.Values(c.ids))))
		c.mu.Unlock()
		switch {
		case n > callers || entries < n:
			c.t.Fatalf("%d ids for %d entries", n, entries)
		case n == callers:
			c.t.Logf(
				"%s: all were called back within %v", c.round, time.Since(began).Round(time.Millisecond),
			)
			return
		}
		select {
		case <-c.changed:
		case <-late.C:
			c.t.Fatalf("%s: %d of %d were called back within %v", c.round, n, callers, calledWithin)
		}
	}
}

// hold acquires all locks, and returns their tokens by name.
func (c *called) hold() (tokens map[string]string) {
	c.t.Helper()
	var mu sync.Mutex
	tokens = map[string]string{}
	c.eachLock(func(name string) {
		a := c.ask(http.MethodPost, "/locks/"+name, "", map[string]any{"ttl_seconds": 300})
		if a.Status != http.StatusCreated {
			c.t.Errorf("%s is not held: %v", name, a)
		}
		mu.Lock()
		defer mu.Unlock()
		tokens[name] = a.Entry.Token
	})
	return tokens
}

// acquire acquires all locks with a callback.
func (c *called) acquire() {
	c.t.Helper()
	c.eachLock(func(name string) {
		body := map[string]any{
			"async":        true,
			"wait_seconds": 3600,
			"ttl_seconds":  300,
			"callback_url": c.url + c.round,
		}
		a := c.ask(http.MethodPost, "/locks/"+name, "", body)
		if a.Status != http.StatusCreated && a.Status != http.StatusAccepted {
			c.t.Errorf("%s: %v", name, a)
		}
	})
}

func (c *called) release(tokens map[string]string) {
	c.t.Helper()
	c.eachLock(func(name string) {
		if a := c.ask(
			http.MethodDelete, "/locks/"+name, tokens[name], nil,
		); a.Status != http.StatusNoContent && a.Status != http.StatusGone { // of a repeated one
			c.t.Errorf("%s is not released: %v", name, a)
		}
	})
}

func (c *called) kill() {
	c.t.Helper()
	for _, r := range c.replicas {
		c.must(r.Kill())
	}
	for _, r := range c.replicas {
		c.must(r.Restart(c.ctx))
	}
}

// eachLock does something with all locks at once.
func (c *called) eachLock(do func(name string)) {
	var all sync.WaitGroup
	for i := range callers {
		all.Go(func() { do(fmt.Sprint(c.round, ":", i)) })
	}
	all.Wait()
}

// ask makes a request, again while the store is too slow: an acquire has a key, so it stays
// one entry.
func (c *called) ask(method, path, token string, body map[string]any) drive.Answer {
	header := map[string]string{"Authorization": "Bearer " + c.bearer}
	if token != "" {
		header["Lock-Token"] = token
	}
	if body != nil {
		header["Idempotency-Key"] = fmt.Sprint(path, ":", len(body))
	}
	var content any // nil is no body, which a nil map would not be
	if body != nil {
		content = body
	}
	a := c.clients[0].Ask(c.ctx, 0, method, path, header, content, 0)
	for ; a.Status == http.StatusServiceUnavailable; a = c.clients[0].Ask(
		c.ctx, 0, method, path, header, content, 0,
	) {
		pause(c.ctx, 100*time.Millisecond)
	}
	return a
}
