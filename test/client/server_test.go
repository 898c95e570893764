package client_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencepost/fencepost/api"
	"github.com/fencepost/fencepost/client"
	"github.com/fencepost/fencepost/test/rig"
)

const secret = "client: thirty-two bytes or more, and never used elsewhere"

var binary = sync.OnceValues(func() (string, error) {
	return rig.BuildAPI(context.Background(), os.Getenv("CLIENT_BINARIES"))
})

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "fencepost-client-")
	if err == nil {
		err = os.Setenv("CLIENT_BINARIES", dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// server starts a server process with a store of its own.
func server(t *testing.T) *rig.Replica {
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	r, err := rig.StartReplica(t.Context(), rig.ReplicaConfig{
		Binary: path, DataDir: filepath.Join(t.TempDir(), "a"), Secret: secret,
		Args: []string{"--webhook-allow", "127.0.0.0/8", "--webhook-allow-http", "--webhook-ports", "*"},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}

func connect(t *testing.T, r *rig.Replica, urls ...string) *client.Client {
	t.Helper()
	token, err := r.Token("acme", "locks:read locks:write webhooks:write", "worker")
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(client.Config{ // it retries while a busy machine restarts a server
		URLs: append(urls, r.URL()), Token: client.Bearer(token), RetryFor: 30 * time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

const brief = 6 * time.Second // a busy machine renews in time

func TestHeldLockIsRenewedAndReleased(t *testing.T) {
	t.Parallel()
	c := connect(t, server(t), "http://127.0.0.1:1") // nothing listens there
	options := client.Options{TTL: brief, Holder: "w1", Metadata: map[string]string{"job": "1"}}
	held, err := c.TryLock(t.Context(), "orders:42", options)
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.TryLock(t.Context(), "orders:42", client.Options{TTL: brief})
	var busy *client.Error
	if !errors.As(err, &busy) || busy.Code != api.Held || busy.Holders[0].Holder != "w1" {
		t.Errorf("a held lock is acquired: %v", err)
	}
	next := make(chan *client.Held)
	go func() {
		h, err := c.Lock(t.Context(), "orders:42", client.Options{TTL: brief})
		if err != nil {
			t.Error(err)
		}
		next <- h
	}()
	select {
	case <-time.After(brief * 4 / 3):
	case <-held.Context().Done():
		t.Fatalf("lost after some time: %v", context.Cause(held.Context()))
	case <-next:
		t.Fatal("another call acquired the lock meanwhile")
	}
	if err := held.Check(); err != nil {
		t.Error(err)
	}
	if err := held.Release(t.Context()); err != nil {
		t.Error(err)
	}
	if held.Context().Err() == nil {
		t.Error("the context of a released lock is alive")
	}
	after := <-next
	if after.Fence() <= held.Fence() {
		t.Errorf("the fence %d comes after %d", after.Fence(), held.Fence())
	}
	if err := after.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestHeldLockIsLostWhenTheServerIsKilled(t *testing.T) {
	t.Parallel()
	r := server(t)
	c := connect(t, r)
	const ttl = 10 * time.Second // the margin is a tenth
	sent := time.Now()
	held, err := c.TryLock(t.Context(), "orders:42", client.Options{TTL: ttl})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Kill(); err != nil {
		t.Fatal(err)
	}
	<-held.Context().Done()
	var lost *client.LostError
	if !errors.As(context.Cause(held.Context()), &lost) || lost.Reason != client.ReasonDeadline {
		t.Errorf("lost because of %v", context.Cause(held.Context()))
	}
	if after := time.Since(sent); after > ttl {
		t.Errorf("lost %v after the request, with a TTL of %v", after, ttl)
	}
	if err := held.Release(t.Context()); !errors.As(err, &lost) {
		t.Errorf("the release of a lost lock returns %v", err)
	}
}

func TestHeldLockOutlivesARestartOfTheServer(t *testing.T) {
	t.Parallel()
	r := server(t)
	c := connect(t, r)
	held, err := c.TryLock(t.Context(), "orders:42", client.Options{TTL: 20 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	waited := make(chan error)
	go func() {
		second, err := c.Lock(t.Context(), "orders:42", client.Options{TTL: 20 * time.Second})
		if err == nil && second.Fence() <= held.Fence() {
			err = fmt.Errorf("the fence %d comes after %d", second.Fence(), held.Fence())
		}
		waited <- err
	}()
	await(t, func() bool {
		l, err := c.Look(t.Context(), "orders:42")
		return err == nil && l.Waiting == 1
	})
	if err := r.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := held.Release(t.Context()); err != nil {
		t.Error(err)
	}
	if err := <-waited; err != nil {
		t.Errorf("the wait over the restart: %v", err)
	}
}

func TestCancelledWaitLeavesTheQueue(t *testing.T) {
	t.Parallel()
	c := connect(t, server(t))
	held, err := c.TryLock(t.Context(), "orders:42", client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	waiting := func(n int) func() bool {
		return func() bool {
			l, err := c.Look(t.Context(), "orders:42")
			return err == nil && l.Waiting == n
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		_, err := c.Lock(ctx, "orders:42", client.Options{})
		ended <- err
	}()
	await(t, waiting(1))
	cancel()
	if err := <-ended; client.CodeOf(err) != client.Cancelled || !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	// The lock is still held: only a request that is not held open can tell the entry's token.
	await(t, waiting(0))
	_ = held.Release(t.Context())
}

func TestSetsSharedLocksAndSemaphores(t *testing.T) {
	t.Parallel()
	c, ctx := connect(t, server(t)), t.Context()
	claims := []client.Claim{{Name: "b", Mode: client.Shared}, {Name: "a"}}
	set, err := c.LockSet(ctx, claims, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if f := set.Fences(); f["a"] == 0 || f["a"] != f["b"] || set.Name() != "a,b" {
		t.Errorf("the set %s has the fences %v", set.Name(), f)
	}
	reader, err := c.TryLock(ctx, "b", client.Options{Mode: client.Shared})
	if err != nil {
		t.Fatalf("a second reader: %v", err)
	}
	if _, err := c.TryLock(ctx, "a", client.Options{}); client.CodeOf(err) != api.Held {
		t.Errorf("a lock of the set: %v", err)
	}
	if err := errors.Join(set.Release(t.Context()), reader.Release(t.Context())); err != nil {
		t.Error(err)
	}
	for i, want := range []api.Code{"", "", api.Held} {
		_, err := c.TryLock(ctx, "s", client.Options{Mode: client.Semaphore, Limit: 2})
		if client.CodeOf(err) != want {
			t.Errorf("holder %d of a semaphore: %v", i+1, err)
		}
	}
}

func TestHolderIsAskedToFinish(t *testing.T) {
	t.Parallel()
	c, ctx := connect(t, server(t)), t.Context()
	asked := make(chan string, 1)
	held, err := c.TryLock(ctx, "orders:42", client.Options{
		TTL: brief, OnReleaseRequested: func(r api.ReleaseRequested) { asked <- r.By },
	})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() {
		done <- c.Do(ctx, "orders:42", client.Options{Holder: "w2", RequestRelease: time.Second},
			func(context.Context, *client.Held) error { return nil })
	}()
	if by := <-asked; by != "w2" {
		t.Errorf("%s asks", by)
	}
	if err := errors.Join(held.Release(t.Context()), <-done); err != nil {
		t.Error(err)
	}
}

func TestCallbackIsVerifiedAndClaimed(t *testing.T) {
	t.Parallel()
	r := server(t)
	c, ctx := connect(t, r), t.Context()
	key := rotate(t, r)
	events := make(chan *api.Event, 10)
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		event, err := client.VerifyWebhook(r.Header, body, key)
		if err != nil {
			t.Error(err)
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		events <- event
	}))
	defer receiver.Close()
	first, err := c.TryLock(ctx, "orders:42", client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	options := client.Options{TTL: 15 * time.Second, Wait: time.Hour}
	pending, err := c.AsyncAcquire(ctx, "orders:42", receiver.URL, options)
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	event := <-events
	held, err := c.Claim(ctx, event, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if held.ID() != pending.ID() || held.Fence() <= first.Fence() {
		t.Errorf("claimed %s with the fence %d", held.ID(), held.Fence())
	}
	if err := held.Release(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := c.Claim(ctx, event, client.Options{}); client.CodeOf(err) != api.Lost {
		t.Errorf("claimed after its release: %v", err)
	}
}

func rotate(t *testing.T, r *rig.Replica) string {
	t.Helper()
	token, err := r.Token("acme", "webhooks:write", "worker")
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(
		t.Context(), http.MethodPost, r.URL()+"/webhooks/callback-secret/rotate", http.NoBody,
	)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	response, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, _ := io.ReadAll(response.Body)
	_, rest, _ := strings.Cut(string(text), `"secret":"`)
	key, _, found := strings.Cut(rest, `"`)
	if !found {
		t.Fatalf("no secret: %s", text)
	}
	return key
}

func TestEventsResumeOverARestart(t *testing.T) {
	t.Parallel()
	r := server(t)
	c := connect(t, r)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	seen := make(chan string, 10)
	following := make(chan error)
	go func() {
		for event, err := range c.Events(ctx, client.EventFilter{Types: []string{"lock.released"}}) {
			if err != nil {
				following <- err
				return
			}
			seen <- event.Data.Lock
		}
	}()
	// The stream begins some time after the call: the first event that it shows says so.
	cycle := func(name string) {
		held, err := c.Lock(ctx, name, client.Options{})
		if err == nil {
			err = held.Release(t.Context())
		}
		if err != nil {
			t.Error(err)
		}
	}
	begun := false
	await(t, func() bool {
		cycle("begin")
		select {
		case <-seen:
			begun = true
		case <-time.After(100 * time.Millisecond):
		}
		return begun
	})
	if err := r.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	cycle("after")
	for name := ""; name != "after"; {
		select {
		case name = <-seen:
		case <-ctx.Done():
			t.Fatal("the event after the restart does not come")
		}
	}
	cancel()
	if err := <-following; client.CodeOf(err) != client.Cancelled {
		t.Errorf("events end with %v", err)
	}
}

func TestLooksListsAndReports(t *testing.T) {
	t.Parallel()
	c, ctx := connect(t, server(t)), t.Context()
	var last *client.Held
	for i := range 3 {
		held, err := c.TryLock(ctx, fmt.Sprintf("orders:%d", i), client.Options{})
		if err != nil {
			t.Fatal(err)
		}
		last = held
	}
	names := []string{}
	await(t, func() bool {
		names = names[:0]
		for lock, err := range c.List(ctx, "orders:", "held") {
			if err != nil {
				t.Error(err)
			}
			names = append(names, lock.Name)
		}
		return len(names) == 3
	})
	fence := last.Fence()
	if err := c.StaleWrite(ctx, "orders:2", fence-1, fence, "db"); err != nil {
		t.Error(err)
	}
	if _, err := c.Look(ctx, "no/name"); client.CodeOf(err) != api.InvalidName {
		t.Errorf("a name with a slash: %v", err)
	}
}

func TestLeadersTakeTurns(t *testing.T) {
	t.Parallel()
	r := server(t)
	var leaders atomic.Int32
	var mu sync.Mutex
	var terms []uint64
	var all sync.WaitGroup
	for range 3 {
		c := connect(t, r)
		all.Go(func() {
			var options client.Options
			err := c.Lead(t.Context(), "leader", options, func(_ context.Context, held *client.Held) error {
				if leaders.Add(1) > 1 {
					t.Error("two leaders")
				}
				mu.Lock()
				terms = append(terms, held.Fence())
				mu.Unlock()
				leaders.Add(-1)
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if len(terms) != 3 || terms[0] >= terms[1] || terms[1] >= terms[2] {
		t.Errorf("the terms are %v", terms)
	}
}

// TestManyClients: 300 clients at once queue for one lock. Each holds it alone, with a greater
// fence.
func TestManyClients(t *testing.T) {
	t.Parallel()
	r := server(t)
	var holders atomic.Int32
	var fence atomic.Uint64
	var all sync.WaitGroup
	for range 300 {
		c := connect(t, r)
		all.Go(func() {
			options := client.Options{TTL: 10 * time.Second, Wait: 2 * time.Minute}
			err := c.Do(t.Context(), "orders:42", options, func(_ context.Context, h *client.Held) error {
				if holders.Add(1) > 1 {
					t.Error("two holders")
				}
				if before := fence.Swap(h.Fence()); before >= h.Fence() {
					t.Errorf("the fence %d comes after %d", h.Fence(), before)
				}
				holders.Add(-1)
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

// TestReadme: in an empty project the program of the README holds a lock, and stops when the server
// is killed.
func TestReadme(t *testing.T) {
	t.Parallel()
	r := server(t)
	text, err := os.ReadFile(filepath.Join("..", "..", "client", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, program, _ := strings.Cut(string(text), "```go\n")
	program, _, _ = strings.Cut(program, "```\n")
	project := t.TempDir()
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"main.go": program,
		"go.mod": "module first\n\ngo 1.26.0\n\nrequire github.com/fencepost/fencepost/client v0.0.0\n\n" +
			"require github.com/fencepost/fencepost/api v0.0.0 // indirect\n\n" +
			"replace github.com/fencepost/fencepost/api => " + root + "/api\n\n" +
			"replace github.com/fencepost/fencepost/client => " + root + "/client\n",
	} {
		if err := os.WriteFile(filepath.Join(project, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	token, err := r.Token("acme", "locks:read locks:write", "worker")
	if err != nil {
		t.Fatal(err)
	}
	run := exec.CommandContext(t.Context(), "go", "run", ".")
	run.Dir = project
	run.Env = append(os.Environ(), "FENCEPOST_URL="+r.URL(), "FENCEPOST_TOKEN="+token)
	out, err := run.StderrPipe()
	if err == nil {
		err = run.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for scan := bufio.NewScanner(out); scan.Scan(); {
		if lines = append(lines, scan.Text()); strings.Contains(scan.Text(), "held with the fence") {
			if err := r.Kill(); err != nil {
				t.Error(err)
			}
		}
	}
	output := strings.Join(lines, "\n")
	if err := run.Wait(); err != nil || !strings.Contains(output, "orders:42 is lost: deadline") {
		t.Errorf("it ends with %v: %s", err, output)
	}
}

// await polls until something is so.
func await(t *testing.T, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !is(); {
		if time.Now().After(deadline) {
			t.Fatal("it does not become so")
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-t.Context().Done():
		}
	}
}
