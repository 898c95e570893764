package faults_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/fencepost/fencepost/test/rig"
)

const (
	callers = 300

	// calledWithin is for how long a callback may take, also where its sender is killed.
	calledWithin = 20 * time.Second
)

// TestEachCallerIsCalledBack acquires many locks at once, each with a callback. Entries of different locks
// are written together then, and share their number. Each entry gets its callback, under an id of its own,
// whatever becomes of the server meanwhile.
func TestEachCallerIsCalledBack(t *testing.T) {
	t.Run("store of the run", func(t *testing.T) {
		s := newCluster(t, 5*time.Minute)
		callAll(s.ctx, t, s.dir, s.cluster.Store())
	})
	if onZooKeeper() {
		return
	}
	t.Run("embedded store", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		t.Cleanup(cancel)
		callAll(ctx, t, t.TempDir(), "embedded")
	})
}

func callAll(ctx context.Context, t *testing.T, dir, store string) {
	t.Helper()
	c := newCalled(ctx, t, dir, store)
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
}

// called is a server with a receiver of callbacks.
type called struct {
	t       *testing.T
	ctx     context.Context
	server  *rig.Replica
	bearer  string
	url     string // of the receiver
	changed chan struct{}

	mu    sync.Mutex
	round string            // what locks are named after now
	ids   map[string]string // its entries, by the ids of their callbacks
}

func newCalled(ctx context.Context, t *testing.T, dir, store string) *called {
	t.Helper()
	c := &called{t: t, ctx: ctx, changed: make(chan struct{}, 1)}
	receiver := httptest.NewServer(c)
	t.Cleanup(receiver.Close)
	c.url = receiver.URL + "/"
	built, err := binaries()
	if err == nil {
		c.bearer, err = rig.SignToken(secret, tenant, "locks:read locks:write webhooks:write", "caller")
	}
	if err == nil {
		c.server, err = rig.StartReplica(ctx, rig.ReplicaConfig{
			Binary: built.api, Store: store, Secret: secret, DataDir: filepath.Join(dir, "called"),
			Args: []string{"--webhook-allow", "127.0.0.0/8", "--webhook-allow-http", "--webhook-ports", "*"},
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.server.Close(); err != nil {
			t.Error(err)
		}
	})
	if status, _ := c.ask(http.MethodPost, "/webhooks/callback-secret/rotate", "", nil); status/100 != 2 {
		t.Fatalf("there is no callback secret: %d", status)
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
	if r.URL.Path != "/"+c.round { // once more, of the round before
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
			c.t.Logf("%s: all were called back within %v", c.round, time.Since(began).Round(time.Millisecond))
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
	c.each(func(name string) {
		status, answer := c.ask(http.MethodPost, "/locks/"+name, "", map[string]any{"ttl_seconds": 300})
		if status != http.StatusCreated {
			c.t.Errorf("%s is not held: %d", name, status)
		}
		mu.Lock()
		defer mu.Unlock()
		tokens[name] = answer.Token
	})
	return tokens
}

// acquire acquires all locks with a callback.
func (c *called) acquire() {
	c.t.Helper()
	c.each(func(name string) {
		body := map[string]any{"async": true, "wait_seconds": 3600, "ttl_seconds": 300, "callback_url": c.url + c.round}
		status, answer := c.ask(http.MethodPost, "/locks/"+name, "", body)
		if status != http.StatusCreated && status != http.StatusAccepted {
			c.t.Errorf("%s: %d %s", name, status, answer.Detail)
		}
	})
}

func (c *called) release(tokens map[string]string) {
	c.t.Helper()
	var all sync.WaitGroup
	for name, token := range tokens {
		all.Go(func() {
			if status, _ := c.ask(http.MethodDelete, "/locks/"+name, token, nil); status != http.StatusNoContent {
				c.t.Errorf("%s is not released: %d", name, status)
			}
		})
	}
	all.Wait()
}

func (c *called) kill() {
	c.t.Helper()
	if err := c.server.Restart(c.ctx); err != nil {
		c.t.Fatal(err)
	}
}

// each does something with all locks at once.
func (c *called) each(do func(name string)) {
	var all sync.WaitGroup
	for i := range callers {
		all.Go(func() { do(fmt.Sprint(c.round, ":", i)) })
	}
	all.Wait()
}

// ask makes a request, again if the store was too slow: an acquire has a key, so it stays one entry.
func (c *called) ask(method, path, token string, body map[string]any) (status int, answer reply) {
	status, answer = c.askOnce(method, path, token, body)
	for ; status == http.StatusServiceUnavailable; status, answer = c.askOnce(method, path, token, body) {
		pause(c.ctx, 100*time.Millisecond)
	}
	return status, answer
}

type reply struct{ Token, Detail string }

func (c *called) askOnce(method, path, token string, body map[string]any) (status int, answer reply) {
	var content []byte
	if body != nil {
		content, _ = json.Marshal(body) // texts and numbers can be written
	}
	req, err := http.NewRequestWithContext(c.ctx, method, c.server.URL()+path, bytes.NewReader(content))
	if err != nil {
		c.t.Error(err)
		return 0, answer
	}
	req.Header.Set("Authorization", "Bearer "+c.bearer)
	req.Header.Set("Content-Type", "application/json")
	if token != "" {
		req.Header.Set("Lock-Token", token)
	}
	if body != nil {
		req.Header.Set("Idempotency-Key", fmt.Sprint(path, ":", len(content)))
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		c.t.Error(err)
		return 0, answer
	}
	defer resp.Body.Close()
	_ = json.NewDecoder(resp.Body).Decode(&answer) // there may be none
	return resp.StatusCode, answer
}
