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

// Cleaner takes back the writes that were given up while their outcomes were unknown,
// in the background, each until it has worked.
type Cleaner[T any] struct {
	clean func(context.Context, T) error
	log   *slog.Logger
	ctx   context.Context
	stop  context.CancelFunc
	wake  chan struct{}

	mu      sync.Mutex
	queue   []cleaning[T]
	workers sync.WaitGroup
}

type cleaning[T any] struct {
	what  T
	until time.Time
}

// NewCleaner returns a cleaner that runs until it is closed. clean is repeated until
// there is no error.
func NewCleaner[T any](log *slog.Logger, clean func(context.Context, T) error) *Cleaner[T] {
	c := &Cleaner[T]{clean: clean, log: log, wake: make(chan struct{}, 1)}
	c.ctx, c.stop = context.WithCancel(context.Background())
	for range cleanWorkers {
		c.workers.Go(c.run)
	}
	return c
}

// Add hands over a write whose lease is ttl. If too many wait it is left to its lease.
func (c *Cleaner[T]) Add(what T, ttl time.Duration) {
	c.mu.Lock()
	full := len(c.queue) >= maxToClean
	if !full {
		c.queue = append(c.queue, cleaning[T]{what, time.Now().Add(ttl + cleanGrace)})
	}
	c.mu.Unlock()
	if full {
		c.log.Warn("too many writes of unknown outcome are to be taken back; one lapses by its lease", "waiting", maxToClean)
		return
	}
	c.nudge()
}

// Close ends the workers and waits for them. What is left lapses by its lease.
func (c *Cleaner[T]) Close() {
	c.stop()
	c.workers.Wait()
}

func (c *Cleaner[T]) nudge() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

func (c *Cleaner[T]) run() {
	for {
		x, ok := c.next()
		switch {
		case ok:
			c.work(x)
		case c.ctx.Err() != nil:
			return
		default:
			select {
			case <-c.wake:
			case <-c.ctx.Done():
			}
		}
	}
}

func (c *Cleaner[T]) next() (x cleaning[T], ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.queue) == 0 || c.ctx.Err() != nil {
		return x, false
	}
	x, c.queue = c.queue[0], c.queue[1:]
	if len(c.queue) > 0 {
		c.nudge() // another worker
	} else {
		c.queue = nil
	}
	return x, true
}

// work repeats an attempt until it succeeds.
func (c *Cleaner[T]) work(x cleaning[T]) {
	for {
		ctx, cancel := context.WithTimeout(c.ctx, cleanTimeout)
		err := c.clean(ctx, x.what)
		cancel()
		switch {
		case err == nil || c.ctx.Err() != nil:
			return
		case time.Now().After(x.until):
			c.log.Warn("a write of unknown outcome could not be taken back; its lease is over", "error", err)
			return
		}
		if Pause(c.ctx, cleanPause) != nil {
			return
		}
	}
}
