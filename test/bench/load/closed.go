package load

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// Closed is a load in which every worker does one cycle after the other.
type Closed struct {
	Workers []Worker
	// Warmup comes before Duration and is not counted.
	Warmup, Duration time.Duration
	// Name gives the lock of a worker's cycle; both count from 0.
	Name func(worker, cycle int) string
	// Record keeps every grant in Result.History, warm-up included. It is for
	// contended locks, where grants are few.
	Record bool
}

// Result is what a load measured.
type Result struct {
	// Cycles that ended within Elapsed.
	Cycles  int64
	Elapsed time.Duration
	// Acquire holds the time from a request's start, or its intended start, to
	// the grant, of the cycles counted.
	Acquire *Histogram
	// Release holds how long the releases of an open load took.
	Release *Histogram
	// History holds every grant if it was asked for, in no order.
	History History
}

// PerSecond returns cycles per second.
func (r *Result) PerSecond() float64 { return float64(r.Cycles) / r.Elapsed.Seconds() }

// Run returns when the time is over and every worker has ended its last cycle.
// One failed request ends the run with its error: figures of a run in which
// requests fail mean nothing.
func (c Closed) Run(ctx context.Context) (*Result, error) {
	if len(c.Workers) == 0 {
		return nil, errors.New("closed load without workers")
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r := &closedRun{Closed: c, start: time.Now(), parts: make([]part, len(c.Workers))}
	var wg sync.WaitGroup
	for i := range c.Workers {
		wg.Go(func() {
			if err := r.work(ctx, i); err != nil {
				r.failed.Store(true)
				cancel(fmt.Errorf("worker %d: %w", i, err))
			}
		})
	}
	wg.Wait()
	if r.failed.Load() {
		return nil, context.Cause(ctx)
	}
	return r.result(), nil
}

type closedRun struct {
	Closed
	start  time.Time
	failed atomic.Bool
	parts  []part
}

// part is what one worker saw.
type part struct {
	cycles  int64
	acquire *Histogram
	release *Histogram // nil in a closed load
	history History
}

func (r *closedRun) work(ctx context.Context, i int) error {
	p := &r.parts[i]
	p.acquire = NewHistogram()
	for cycle := 0; time.Since(r.start) < r.Warmup+r.Duration; cycle++ {
		g, err := r.cycle(ctx, i, cycle)
		if err != nil {
			return err
		}
		if end := time.Since(r.start); end >= r.Warmup && end < r.Warmup+r.Duration {
			p.cycles++
			p.acquire.Record(g.Granted - g.Sent)
		}
		if r.Record {
			p.history = append(p.history, g)
		}
	}
	return nil
}

func (r *closedRun) cycle(ctx context.Context, i, cycle int) (Grant, error) {
	return takeAndGive(ctx, r.Workers[i], i, r.Name(i, cycle), r.start)
}

// takeAndGive does one cycle. Times count from start.
func takeAndGive(
	ctx context.Context,
	w Worker,
	i int,
	name string,
	start time.Time,
) (Grant, error) {
	g := Grant{Worker: i, Sent: time.Since(start)}
	var err error
	if g.Fence, err = w.Acquire(ctx, name); err != nil {
		return g, fmt.Errorf("acquire %s: %w", name, err)
	}
	g.Granted = time.Since(start)
	g.Released = g.Granted
	if err := w.Release(ctx); err != nil {
		return g, fmt.Errorf("release %s: %w", name, err)
	}
	return g, nil
}

func (r *closedRun) result() *Result {
	out := &Result{Elapsed: r.Duration, Acquire: NewHistogram()}
	for _, p := range r.parts {
		out.Cycles += p.cycles
		out.Acquire.Merge(p.acquire)
		out.History = append(out.History, p.history...)
	}
	return out
}

func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
