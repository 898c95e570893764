package store

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

const (
	// cleanWorkers clean up beside each other, and maxToClean may wait for them.
	cleanWorkers = 4
	maxToClean   = 10_000

	// cleanPause is between two attempts, and cleanTimeout the deadline of one.
	cleanPause   = 100 * time.Millisecond
	cleanTimeout = 4 * time.Second

	// cleanGrace is how long after its lease should have ended a write is given
	// up: leases last longer while a store has no leader.
	cleanGrace = 5 * time.Minute
)

// Cleaner takes back the writes that were given up while their outcomes were unknown, in the
// background, the first first, each until it has worked.
type Cleaner[T any] struct {
	clean   func(context.Context, T) error
	log     *slog.Logger
	ctx     context.Context
	stop    context.CancelFunc
	waiting chan cleaning[T]
	workers sync.WaitGroup
}

type cleaning[T any] struct {
	what  T
	until time.Time
}

// NewCleaner returns a cleaner that runs until it is closed. clean is repeated until
// there is no error.
func NewCleaner[T any](log *slog.Logger, clean func(context.Context, T) error) *Cleaner[T] {
	c := &Cleaner[T]{clean: clean, log: log, waiting: make(chan cleaning[T], maxToClean)}
	c.ctx, c.stop = context.WithCancel(context.Background())
	for range cleanWorkers {
		c.workers.Go(c.run)
	}
	return c
}

// Add hands over a write whose lease is ttl. If too many wait, it is left to its lease.
func (c *Cleaner[T]) Add(what T, ttl time.Duration) {
	c.enter(cleaning[T]{what, time.Now().Add(ttl + cleanGrace)})
}

func (c *Cleaner[T]) enter(x cleaning[T]) {
	select {
	case c.waiting <- x:
	default:
		c.log.Warn(
			"too many writes of unknown outcome are to be taken back; one lapses by its lease",
			"waiting",
			maxToClean,
		)
	}
}

// Close ends the workers and waits for them. What is left lapses by its lease.
func (c *Cleaner[T]) Close() {
	c.stop()
	c.workers.Wait()
}

func (c *Cleaner[T]) run() {
	for {
		select {
		case <-c.ctx.Done():
			return
		case x := <-c.waiting:
			c.work(x)
		}
	}
}

// work makes one attempt. If it fails there is another after those that wait.
func (c *Cleaner[T]) work(x cleaning[T]) {
	ctx, cancel := context.WithTimeout(c.ctx, cleanTimeout)
	err := c.clean(ctx, x.what)
	cancel()
	switch {
	case err == nil || c.ctx.Err() != nil:
	case time.Now().After(x.until):
		c.log.Warn("a write of unknown outcome could not be taken back; its lease is over", "error", err)
	case Pause(c.ctx, cleanPause) == nil:
		c.enter(x)
	}
}
