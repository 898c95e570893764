package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/fencepost/fencepost/store"
)

// worker takes locks again and again.
type worker struct {
	name  string
	takes func() []string // the locks of one turn, one after the other
	body  map[string]any  // of each request, besides holder
	holds func() time.Duration
	rests time.Duration
	dies  bool // keeps its lock without renewing it
}

func fixed(names ...string) func() []string { return func() []string { return names } }

func between(from, to time.Duration) func() time.Duration {
	return func() time.Duration { return from + rand.N(to-from) }
}

// workers are those of an afternoon. Each run has holders of its own: those of a run that was cut
// off may still have entries, and a name stands for one worker at a time.
func workers(crowd, quiet int, run uint16) []worker {
	var all []worker
	add := func(n int, name string, w worker) {
		for i := range n {
			w.name = fmt.Sprintf("%s-%d.%04x", name, i+1, run)
			all = append(all, w)
		}
	}
	patient := map[string]any{
		"ttl_seconds":  20,
		"wait_seconds": 45,
		"metadata":     map[string]string{"job": "nightly", "host": "worker.eu-1"},
	}
	add(crowd, "checkout", worker{
		takes: fixed("orders:checkout"), body: patient, holds: between(time.Second, 4*time.Second),
		rests: time.Second,
	})
	add(20, "packer", worker{
		takes: func() []string { return []string{fmt.Sprintf("orders:%d", rand.IntN(12)+100)} },
		body: map[string]any{
			"ttl_seconds":  15,
			"wait_seconds": 20,
		}, holds: between(200*time.Millisecond, 2*time.Second), rests: time.Second,
	})
	pool := map[string]any{"mode": "semaphore", "limit": 3, "ttl_seconds": 30, "wait_seconds": 45}
	add(8, "trainer", worker{
		takes: fixed("gpu-pool"), body: pool, holds: between(3*time.Second, 8*time.Second),
		rests: 2 * time.Second,
	})
	reads := map[string]any{"mode": "shared", "ttl_seconds": 20, "wait_seconds": 30}
	add(5, "reader", worker{
		takes: fixed("catalog"), body: reads, holds: between(time.Second, 3*time.Second),
		rests: 2 * time.Second,
	})
	add(1, "editor", worker{
		takes: fixed("catalog"), body: patient, holds: between(time.Second, 2*time.Second),
		rests: 10 * time.Second,
	})
	add(2, "report", worker{
		takes: fixed("reports:daily"), body: map[string]any{"ttl_seconds": 4, "wait_seconds": 30},
		holds: between(5*time.Second, 6*time.Second), rests: 6 * time.Second, dies: true,
	})
	crossing := map[string]any{"ttl_seconds": 15, "wait_seconds": 10}
	add(1, "picker", worker{
		takes: fixed("stock:7", "shelf:7"), body: crossing,
		holds: between(500*time.Millisecond, 2*time.Second), rests: time.Second,
	})
	add(1, "filler", worker{
		takes: fixed("shelf:7", "stock:7"), body: crossing,
		holds: between(500*time.Millisecond, 2*time.Second), rests: time.Second,
	})
	for i := range quiet {
		all = append(all, worker{
			name: fmt.Sprintf("session-%d.%04x", i+1, run), takes: fixed(fmt.Sprintf("session:%04d", i+1)),
			body: map[string]any{"ttl_seconds": 60}, holds: between(10*time.Second, 40*time.Second),
			rests: time.Second,
		})
	}
	return all
}

// work goes on until ctx ends.
func (w *worker) work(ctx context.Context, c *client) {
	pause(ctx, rand.N(2*time.Second))
	for failures := 0; ctx.Err() == nil; {
		if w.turn(ctx, c, w.takes()) {
			failures++
			pause(ctx, patience(failures))
			continue
		}
		failures = 0
		pause(ctx, w.rests/2+rand.N(w.rests))
	}
}

// patience is how long to wait after so many failures in a row: longer each time, with some chance
// in it, so that a server that comes back is not met by all at once.
func patience(failures int) time.Duration {
	d := min(30*time.Second, time.Second<<min(failures, 5))
	return d/2 + rand.N(d)
}

// turn takes the locks one within the other, and gives them back from within. It reports whether
// the server was away.
func (w *worker) turn(ctx context.Context, c *client, names []string) (away bool) {
	body := map[string]any{"holder": w.name}
	for k, v := range w.body {
		body[k] = v
	}
	path := "/locks/" + names[0]
	g, away := c.acquire(ctx, path, body)
	if g == nil {
		return away
	}
	pause(ctx, w.holds())
	if w.dies {
		return false
	}
	if len(names) > 1 {
		c.renew(ctx, path, g)
		away = w.turn(ctx, c, names[1:])
	}
	c.release(ctx, path, g)
	return away
}

// pause waits until ctx ends at most.
func pause(ctx context.Context, d time.Duration) { _ = store.Pause(ctx, d) }
