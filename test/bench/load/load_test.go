package load_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencepost/fencepost/test/bench/load"
)

// locks is a lock service in memory whose queues are first in, first out.
type locks struct {
	mu      sync.Mutex
	queues  map[string][]chan int64
	fence   int64
	waiting atomic.Int64
	grants  atomic.Int64
	delay   func(grant int64) time.Duration // before the answer, may be nil
	fail    func(grant int64) error         // may be nil
}

func newLocks() *locks { return &locks{queues: map[string][]chan int64{}} }

func (l *locks) workers(n int) []load.Worker {
	ws := make([]load.Worker, n)
	for i := range ws {
		ws[i] = &client{locks: l}
	}
	return ws
}

type client struct {
	*locks
	name string
}

func (c *client) Acquire(ctx context.Context, name string) (int64, error) {
	c.name = name
	granted := c.enqueue(name)
	c.waiting.Add(1)
	defer c.waiting.Add(-1)
	select {
	case fence := <-granted:
		return fence, c.answer(c.grants.Add(1))
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

func (c *client) answer(grant int64) error {
	if c.delay != nil {
		<-time.After(c.delay(grant))
	}
	if c.fail != nil {
		return c.fail(grant)
	}
	return nil
}

func (c *client) enqueue(name string) chan int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	granted := make(chan int64, 1)
	c.queues[name] = append(c.queues[name], granted)
	if len(c.queues[name]) == 1 {
		c.grant(name)
	}
	return granted
}

func (c *client) grant(name string) {
	c.fence++
	c.queues[name][0] <- c.fence
}

func (c *client) Release(context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.queues[c.name] = c.queues[c.name][1:]
	if len(c.queues[c.name]) > 0 {
		c.grant(c.name)
	}
	return nil
}

func TestClosedCountsOnlyAfterWarmup(t *testing.T) {
	l := newLocks()
	l.delay = func(int64) time.Duration { return time.Millisecond }
	r, err := load.Closed{
		Workers: l.workers(4), Warmup: 100 * time.Millisecond, Duration: 200 * time.Millisecond,
		Name: func(worker, cycle int) string { return fmt.Sprint(worker) },
	}.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if r.Cycles == 0 || r.Cycles != r.Acquire.Count() || r.Cycles >= l.grants.Load() {
		t.Errorf("%d cycles, %d latencies, %d grants: the warm-up counts or a latency is missing", r.Cycles, r.Acquire.Count(), l.grants.Load())
	}
	if r.Acquire.Percentile(1) < time.Millisecond {
		t.Errorf("p1 is %v although an answer takes a millisecond", r.Acquire.Percentile(1))
	}
	if got := r.PerSecond() * 0.2; int64(got+0.5) != r.Cycles {
		t.Errorf("%v cycles per second, want %d in 0.2 s", r.PerSecond(), r.Cycles)
	}
	if len(r.History) != 0 {
		t.Errorf("%d grants recorded although none were asked for", len(r.History))
	}
}

func TestClosedHistoryOfAContendedLock(t *testing.T) {
	r, err := load.Closed{
		Workers: newLocks().workers(8), Duration: 100 * time.Millisecond, Record: true,
		Name: func(int, int) string { return "one" },
	}.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	h := r.History
	if err := errors.Join(h.CheckExclusion(), h.CheckFences()); err != nil || int64(len(h)) < r.Cycles {
		t.Errorf("%d grants of %d cycles: %v", len(h), r.Cycles, err)
	}
}

func TestOneFailedRequestFailsTheRun(t *testing.T) {
	broken := errors.New("broken")
	fail := func(grant int64) error {
		if grant == 50 {
			return broken
		}
		return nil
	}
	runs := map[string]func(context.Context, []load.Worker) error{
		"closed": func(ctx context.Context, ws []load.Worker) error {
			_, err := load.Closed{Workers: ws, Duration: time.Minute, Name: func(w, _ int) string { return fmt.Sprint(w) }}.Run(ctx)
			return err
		},
		"open": func(ctx context.Context, ws []load.Worker) error {
			_, err := load.Open{Workers: ws, Rate: 1000, Duration: time.Minute, Name: func(c int) string { return fmt.Sprint(c) }}.Run(ctx)
			return err
		},
		"hold": func(ctx context.Context, ws []load.Worker) error {
			return load.Hold(ctx, ws, 100, func(i int) string { return fmt.Sprint(i) })
		},
	}
	for name, run := range runs {
		l := newLocks()
		l.fail = fail
		if err := run(t.Context(), l.workers(4)); !errors.Is(err, broken) {
			t.Errorf("%s: %v, want %v", name, err, broken)
		}
	}
}

// The server stalls once for 100 ms. Cycles that were due meanwhile must show it,
// though only four requests were under way.
func TestOpenCountsFromTheIntendedStart(t *testing.T) {
	l := newLocks()
	var stall sync.Mutex
	l.delay = func(grant int64) time.Duration {
		stall.Lock()
		defer stall.Unlock()
		if grant == 100 {
			<-time.After(100 * time.Millisecond)
		}
		return 0
	}
	r, err := load.Open{
		Workers: l.workers(4), Rate: 1000, Warmup: 50 * time.Millisecond, Duration: 250 * time.Millisecond,
		Name: func(cycle int) string { return fmt.Sprint(cycle) },
	}.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if r.Cycles != 250 || r.Acquire.Count() != 250 {
		t.Errorf("%d cycles, %d latencies, want 250", r.Cycles, r.Acquire.Count())
	}
	if p := r.Acquire.Percentile(75); p < 25*time.Millisecond {
		t.Errorf("p75 is %v: the stall is hidden", p)
	}
	if p := r.Acquire.Percentile(25); p > 25*time.Millisecond {
		t.Errorf("p25 is %v, far above what the server needs", p)
	}
}

func TestHoldTakesEachOnce(t *testing.T) {
	l := newLocks()
	if err := load.Hold(t.Context(), l.workers(3), 50, func(i int) string { return fmt.Sprint(i) }); err != nil {
		t.Fatal(err)
	}
	if len(l.queues) != 50 || l.grants.Load() != 50 {
		t.Errorf("%d locks with %d grants, want 50 and 50", len(l.queues), l.grants.Load())
	}
}

func TestQueue(t *testing.T) {
	l := newLocks()
	l.delay = func(int64) time.Duration { return 100 * time.Microsecond }
	waiting := func(context.Context) (int, error) { return int(l.waiting.Load()), nil }
	q, err := load.FillQueue(t.Context(), "one", l.workers(21), 8, waiting)
	if err != nil {
		t.Fatal(err)
	}
	if n := l.waiting.Load(); n != 20 {
		t.Errorf("%d wait, want 20", n)
	}
	h, err := q.Handovers(t.Context(), 100)
	if err != nil || h.Count() < 100 {
		t.Errorf("%d handovers, %v; want 100", h.Count(), err)
	}
	if h.Percentile(1) < 100*time.Microsecond {
		t.Errorf("p1 of a handover is %v, below what the grant takes", h.Percentile(1))
	}
	if err := q.Close(); err != nil || l.waiting.Load() != 0 {
		t.Errorf("after Close %d wait, error %v", l.waiting.Load(), err)
	}
}

func TestQueueReportsAFailedClient(t *testing.T) {
	broken := errors.New("broken")
	l := newLocks()
	l.fail = func(grant int64) error {
		if grant == 30 {
			return broken
		}
		return nil
	}
	waiting := func(context.Context) (int, error) { return int(l.waiting.Load()), nil }
	q, err := load.FillQueue(t.Context(), "one", l.workers(11), 100, waiting)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := q.Handovers(t.Context(), 100); !errors.Is(err, broken) {
		t.Errorf("Handovers: %v, want %v", err, broken)
	}
	if err := q.Close(); !errors.Is(err, broken) {
		t.Errorf("Close: %v, want %v", err, broken)
	}
}

// TestBurst: all requests are sent before any is released; refusals and failures are
// told apart, and whoever was granted releases.
func TestBurst(t *testing.T) {
	broken := errors.New("broken")
	l := newLocks()
	l.fail = func(grant int64) error {
		switch grant {
		case 3, 4:
			return fmt.Errorf("busy: %w", load.ErrRefused)
		case 5:
			return broken
		}
		return nil
	}
	b := load.StartBurst(t.Context(), l.workers(20), func(i int) string { return fmt.Sprint(i) })
	for seen := b.Seen(); seen.Granted+len(seen.Refused)+seen.Failed < 20; seen = b.Seen() {
		if len(seen.History) > 0 {
			t.Fatal("a lock was given back before Release")
		}
		<-time.After(time.Millisecond)
	}
	b.Release()
	seen := b.Wait()
	if seen.Granted != 17 || len(seen.Refused) != 2 || seen.Failed != 1 || !errors.Is(seen.Failure, broken) {
		t.Errorf("%d granted, %d refused, %d failed: %v; want 17, 2, 1", seen.Granted, len(seen.Refused), seen.Failed, seen.Failure)
	}
	if len(seen.History) != 17 || seen.LastGrant <= 0 {
		t.Errorf("%d were released, the last granted after %v", len(seen.History), seen.LastGrant)
	}
}

func TestOpenEndsEarly(t *testing.T) {
	l := newLocks()
	until := make(chan struct{})
	timer := time.AfterFunc(50*time.Millisecond, func() { close(until) })
	defer timer.Stop()
	r, err := load.Open{
		Workers: l.workers(4), Rate: 1000, Duration: time.Hour, Until: until, Name: func(cycle int) string { return fmt.Sprint(cycle) },
	}.Run(t.Context())
	if err != nil || r.Cycles == 0 {
		t.Errorf("%v, %v", r, err)
	}
}
