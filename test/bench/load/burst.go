package load

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// ErrRefused is wrapped by the error of a request that a service was too busy for and
// said so: it had no effect.
var ErrRefused = errors.New("refused")

// Burst is requests that are sent at once. A client that is granted a lock keeps it until
// [Burst.Release].
type Burst struct {
	workers []Worker
	name    func(i int) string
	start   time.Time
	release chan struct{}
	running sync.WaitGroup

	mu   sync.Mutex
	seen BurstResult
}

// BurstResult is what became of the requests of a burst, as far as it is known. Times
// count from its start.
type BurstResult struct {
	// Granted is how many requests were granted, the last at LastGrant.
	Granted   int
	LastGrant time.Duration
	// Refused holds how long each refusal took, from when the request was sent.
	Refused []time.Duration
	// Failed is how many requests ended in another way, and Failure how one of them did.
	Failed  int
	Failure error
	// History is the grants that were released.
	History History
}

// StartBurst has every worker ask for the lock that name gives it, all at once. The end
// of ctx ends the requests.
func StartBurst(ctx context.Context, workers []Worker, name func(i int) string) *Burst {
	b := &Burst{workers: workers, name: name, release: make(chan struct{})}
	begin := make(chan struct{})
	for i := range workers {
		b.running.Go(func() {
			<-begin
			b.cycle(ctx, i)
		})
	}
	b.start = time.Now()
	close(begin)
	return b
}

func (b *Burst) cycle(ctx context.Context, i int) {
	g := Grant{Worker: i, Sent: time.Since(b.start)}
	var err error
	g.Fence, err = b.workers[i].Acquire(ctx, b.name(i))
	g.Granted = time.Since(b.start)
	if b.note(g, err); err != nil {
		return
	}
	<-b.release
	g.Released = time.Since(b.start)
	err = b.workers[i].Release(ctx)
	b.mu.Lock()
	defer b.mu.Unlock()
	if err != nil {
		b.fail(fmt.Errorf("release by client %d of the burst: %w", i, err))
		return
	}
	b.seen.History = append(b.seen.History, g)
}

// note keeps how a request to acquire was answered.
func (b *Burst) note(g Grant, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case err == nil:
		b.seen.Granted++
		b.seen.LastGrant = g.Granted
	case errors.Is(err, ErrRefused):
		b.seen.Refused = append(b.seen.Refused, g.Granted-g.Sent)
	default:
		b.fail(fmt.Errorf("client %d of the burst, after %v: %w", g.Worker, g.Granted-g.Sent, err))
	}
}

func (b *Burst) fail(err error) {
	b.seen.Failed++
	if b.seen.Failure == nil {
		b.seen.Failure = err
	}
}

// Seen returns what became of the requests so far.
func (b *Burst) Seen() BurstResult {
	b.mu.Lock()
	defer b.mu.Unlock()
	seen := b.seen
	seen.Refused, seen.History = slices.Clone(seen.Refused), slices.Clone(seen.History)
	return seen
}

// Since returns how long ago the burst began.
func (b *Burst) Since() time.Duration { return time.Since(b.start) }

// Release makes every holder, now or later, release its lock. It is called once.
func (b *Burst) Release() { close(b.release) }

// Wait returns when all requests are answered and all grants released.
func (b *Burst) Wait() BurstResult {
	b.running.Wait()
	return b.Seen()
}
