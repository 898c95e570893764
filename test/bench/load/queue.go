package load

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Queue is one lock on which a fixed number of clients wait behind a holder. A client that is
// granted the lock releases it at once and queues again.
type Queue struct {
	name    string
	workers []Worker
	start   time.Time
	cancel  context.CancelFunc
	running sync.WaitGroup

	mu      sync.Mutex
	history History
	failed  error
	changed chan struct{} // closed and replaced when history or failed changes
}

// FillQueue lets the first worker take the lock and the others ask for it, at
// most burst of them on their way into the queue at a time. waiting tells how
// many of the server's requests wait. It returns when all of them do, or ctx ends.
func FillQueue(ctx context.Context, name string, workers []Worker, burst int,
	waiting func(context.Context) (int, error),
) (*Queue, error) {
	q := &Queue{name: name, workers: workers, start: time.Now(), changed: make(chan struct{})}
	if _, err := workers[0].Acquire(ctx, name); err != nil {
		return nil, fmt.Errorf("take the lock first: %w", err)
	}
	var run context.Context
	run, q.cancel = context.WithCancel(context.WithoutCancel(ctx))
	if err := q.fill(ctx, run, burst, waiting); err != nil {
		return nil, errors.Join(err, q.Close())
	}
	return q, nil
}

func (q *Queue) fill(
	ctx, run context.Context,
	burst int,
	waiting func(context.Context) (int, error),
) error {
	for started := 1; ; {
		n, err := waiting(ctx)
		if err != nil {
			return err
		}
		if err := q.failure(); err != nil || n == len(q.workers)-1 {
			return err
		}
		for ; started < len(q.workers) && started-1-n < burst; started++ {
			i := started
			q.running.Go(func() { q.wait(run, i) })
		}
		if err := sleep(ctx, 20*time.Millisecond); err != nil {
			return fmt.Errorf("%d of %d requests wait: %w", n, len(q.workers)-1, err)
		}
	}
}

// Handovers lets the holder release, and returns how long the next n handovers
// took, from a release being sent to the next client having its grant.
func (q *Queue) Handovers(ctx context.Context, n int) (*Histogram, error) {
	first := Grant{Granted: time.Since(q.start), Fence: -1}
	first.Released = first.Granted
	q.record(first)
	if err := q.workers[0].Release(ctx); err != nil {
		return nil, fmt.Errorf("release the lock first: %w", err)
	}
	for {
		history, changed, err := q.state()
		if err != nil {
			return nil, err
		}
		if len(history) > n {
			return history.Handovers(0), errors.Join(history.CheckExclusion(), history.CheckFences())
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, fmt.Errorf("%d of %d handovers: %w", len(history)-1, n, ctx.Err())
		}
	}
}

// Close gives up all waiting requests and waits for their goroutines. The
// server may need a moment longer to forget them.
func (q *Queue) Close() error {
	q.cancel()
	q.running.Wait()
	return q.failure()
}

// wait is one client: it acquires and releases the lock until it is stopped.
func (q *Queue) wait(ctx context.Context, i int) {
	var err error
	for err == nil {
		g := Grant{Worker: i, Sent: time.Since(q.start)}
		if g.Fence, err = q.workers[i].Acquire(ctx, q.name); err != nil {
			break
		}
		g.Granted = time.Since(q.start)
		g.Released = g.Granted
		q.record(g)
		err = q.workers[i].Release(ctx)
	}
	if ctx.Err() == nil {
		q.fail(fmt.Errorf("client %d of the queue: %w", i, err))
	}
}

func (q *Queue) record(g Grant) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.history = append(q.history, g)
	q.signal()
}

func (q *Queue) fail(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.failed == nil {
		q.failed = err
	}
	q.signal()
}

func (q *Queue) signal() {
	close(q.changed)
	q.changed = make(chan struct{})
}

func (q *Queue) failure() error {
	_, _, err := q.state()
	return err
}

func (q *Queue) state() (History, <-chan struct{}, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.history[:len(q.history):len(q.history)], q.changed, q.failed
}
