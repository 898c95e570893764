package client_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/fencepost/fencepost/api"
	"github.com/fencepost/fencepost/client"
)

// queued waits until so many entries wait for the lock.
func queued(t *testing.T, c *client.Client, lock string, n int) {
	t.Helper()
	await(t, func() bool {
		l, err := c.Look(t.Context(), lock)
		return err == nil && l.Waiting == n
	})
}

// TestAnyTakesAFreeLock: of several locks the first free one is acquired and the others are left,
// at once or after a wait.
func TestAnyTakesAFreeLock(t *testing.T) {
	t.Parallel()
	c := connect(t, server(t))
	pool := []client.Claim{{Name: "gpu:2"}, {Name: "gpu:0"}, {Name: "gpu:1"}}
	busy, err := c.TryLock(t.Context(), "gpu:2", client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	first, err := c.TryLockAny(t.Context(), pool, 0, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	fences := first.Fences()
	if len(fences) != 1 || fences["gpu:0"] == 0 || first.Name() != "gpu:0" {
		t.Errorf("it holds %s: %v", first, fences)
	}
	if _, err := c.TryLock(t.Context(), "gpu:1", client.Options{}); err != nil {
		t.Fatalf("the lock that it left is not free: %v", err)
	}
	if _, err := c.TryLockAny(t.Context(), pool, 1, client.Options{}); client.CodeOf(err) != api.Held {
		t.Errorf("none is free: %v", err)
	}
	waits := make(chan *client.Held)
	go func() {
		h, err := c.LockAny(t.Context(), pool, 2, client.Options{})
		if err != nil {
			t.Error(err)
		}
		waits <- h
	}()
	for _, claim := range pool {
		queued(t, c, claim.Name, 1)
	}
	for _, held := range []*client.Held{busy, first} {
		if err := held.Release(t.Context()); err != nil {
			t.Error(err)
		}
	}
	second := <-waits
	later := second.Fences()
	names := slices.Sorted(maps.Keys(later))
	if !slices.Equal(names, []string{"gpu:0", "gpu:2"}) || later["gpu:0"] <= fences["gpu:0"] {
		t.Errorf("after the releases it holds %v, after %v", later, fences)
	}
	queued(t, c, "gpu:1", 0)
	if err := second.Release(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := c.TryLock(t.Context(), "gpu:2", client.Options{}); err != nil {
		t.Errorf("a released member is not free: %v", err)
	}
}

// TestOlderWaiterIsSuperseded: of the waiters that want only the newest, the older one gets an
// error of its own.
func TestOlderWaiterIsSuperseded(t *testing.T) {
	t.Parallel()
	c := connect(t, server(t))
	held, err := c.TryLock(t.Context(), "deploy", client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	wait := func() chan error {
		ended := make(chan error, 1)
		go func() {
			_, err := c.Lock(t.Context(), "deploy", client.Options{OnlyNewest: true})
			ended <- err
		}()
		return ended
	}
	older := wait()
	queued(t, c, "deploy", 1)
	newer := wait()
	if err := <-older; client.CodeOf(err) != api.Superseded {
		t.Errorf("the older waiter ends with %v", err)
	}
	if err := held.Release(t.Context()); err != nil {
		t.Error(err)
	}
	if err := <-newer; err != nil {
		t.Errorf("the newer waiter ends with %v", err)
	}
}

// TestPermitsOfASemaphore: entries hold while their permits fit into their own limits.
func TestPermitsOfASemaphore(t *testing.T) {
	t.Parallel()
	c := connect(t, server(t))
	for _, want := range []struct {
		permits, limit int
		code           api.Code
	}{{2, 3, ""}, {2, 3, api.Held}, {0, 3, ""}, {3, 5, api.Held}, {2, 5, ""}} {
		_, err := c.TryLock(t.Context(), "builds", client.Options{
			Mode: client.Semaphore, Limit: want.limit, Permits: want.permits,
		})
		if client.CodeOf(err) != want.code {
			t.Errorf("%+v: %v", want, err)
		}
	}
}
