package engine

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/fencepost/fencepost/store"
)

const (
	// cleanWorkers bounds the concurrent clean-ups, and maxToClean the queued ones.
	cleanWorkers = 4
	maxToClean   = 10_000

	// cleanPause is the time between two attempts, and cleanTimeout bounds one.
	cleanPause   = 100 * time.Millisecond
	cleanTimeout = 4 * time.Second

	// cleanGrace is how long after the end of its lease the cleaner drops a write. Leases last
	// longer while a store has no leader.
	cleanGrace = 5 * time.Minute
)

// Cleaner removes abandoned writes with unknown outcomes in the background, oldest first. It
// repeats each until it succeeds.
type Cleaner struct {
	log     *slog.Logger
	ctx     context.Context
	stop    context.CancelFunc
	waiting chan cleaning
	workers sync.WaitGroup
}

type cleaning struct {
	do    func(context.Context) error
	until time.Time
}

// NewCleaner returns a cleaner that runs until it is closed.
func NewCleaner(log *slog.Logger) *Cleaner {
	c := &Cleaner{log: log, waiting: make(chan cleaning, maxToClean)}
	c.ctx, c.stop = context.WithCancel(context.Background())
	for range cleanWorkers {
		c.workers.Go(c.run)
	}
	return c
}

// Add queues what removes a write with the lease ttl. If too many are queued, the write is left to
// its lease.
func (c *Cleaner) Add(do func(context.Context) error, ttl time.Duration) {
	c.enter(cleaning{do, time.Now().Add(ttl + cleanGrace)})
}

func (c *Cleaner) enter(x cleaning) {
	select {
	case c.waiting <- x:
	default:
		c.log.Warn(
			"too many writes of unknown outcome wait for their removal; one lapses by its lease", "waiting",
			maxToClean,
		)
	}
}

// Close ends the workers and waits for them. The remaining writes end with their leases.
func (c *Cleaner) Close() {
	c.stop()
	c.workers.Wait()
}

func (c *Cleaner) run() {
	for {
		select {
		case <-c.ctx.Done():
			return
		case x := <-c.waiting:
			c.work(x)
		}
	}
}

// work makes one attempt. After a failure it queues the next attempt behind the others.
func (c *Cleaner) work(x cleaning) {
	ctx, cancel := context.WithTimeout(c.ctx, cleanTimeout)
	err := x.do(ctx)
	cancel()
	switch {
	case err == nil || c.ctx.Err() != nil:
	case time.Now().After(x.until):
		c.log.Warn("a write of unknown outcome could not be taken back; its lease is over", "error", err)
	case store.Pause(c.ctx, cleanPause) == nil:
		c.enter(x)
	}
}
