package load

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// Open is a load in which cycles start at a fixed rate.
type Open struct {
	// Workers take turns. When all of them are busy a cycle starts late, and its
	// latency still counts from when it should have started.
	Workers []Worker
	// Rate is cycles per second.
	Rate float64
	// Warmup comes before Duration and is not counted.
	Warmup, Duration time.Duration
	// Until ends the load early when it is closed; nil does not. Elapsed is of no
	// meaning then.
	Until <-chan struct{}
	// Name gives the lock of a cycle, counted from 0 over all workers.
	Name func(cycle int) string
}

// backlog is how many cycles may be due and not started before the pacer waits;
// nothing is lost then, as a cycle's intended start does not depend on it.
const backlog = 1 << 16

// Run returns when every cycle that was due has ended. Result.Acquire counts
// from intended starts. One failed request ends the run with its error.
func (o Open) Run(ctx context.Context) (*Result, error) {
	if len(o.Workers) == 0 || o.Rate <= 0 {
		return nil, errors.New("open load without workers or rate")
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r := &openRun{
		Open: o, start: time.Now(), due: make(chan int, backlog), parts: make([]part, len(o.Workers)),
	}
	var wg sync.WaitGroup
	wg.Go(func() { r.pace(ctx) })
	for i := range o.Workers {
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

type openRun struct {
	Open
	start  time.Time
	due    chan int // cycles to start, in order
	failed atomic.Bool
	parts  []part
}

// intended returns when a cycle should start, counted from the start of the run.
func (r *openRun) intended(cycle int) time.Duration {
	return time.Duration(float64(cycle) / r.Rate * float64(time.Second))
}

// pace hands out the cycles that are due. It keeps a thread for itself: the
// runtime's timers can be a millisecond late, which is more than what is measured.
func (r *openRun) pace(ctx context.Context) {
	defer close(r.due)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for cycle := 0; r.intended(cycle) < r.Warmup+r.Duration; cycle++ {
		if wait := r.intended(cycle) - time.Since(r.start); wait > 0 {
			preciseSleep(wait)
		}
		select {
		case r.due <- cycle:
		case <-ctx.Done():
			return
		case <-r.Until:
			return
		}
	}
}

func (r *openRun) work(ctx context.Context, i int) error {
	p := &r.parts[i]
	p.acquire, p.release = NewHistogram(), NewHistogram()
	for cycle := range r.due {
		g, err := takeAndGive(ctx, r.Workers[i], i, r.Name(cycle), r.start)
		if err != nil {
			return err
		}
		if intended := r.intended(cycle); intended >= r.Warmup {
			p.cycles++
			p.acquire.Record(g.Granted - intended)
			p.release.Record(time.Since(r.start) - g.Released)
		}
	}
	return ctx.Err()
}

func (r *openRun) result() *Result {
	out := &Result{Elapsed: r.Duration, Acquire: NewHistogram(), Release: NewHistogram()}
	for _, p := range r.parts {
		out.Cycles += p.cycles
		out.Acquire.Merge(p.acquire)
		out.Release.Merge(p.release)
	}
	return out
}
