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
// in the background, each until it has worked. Tenants take turns: one that has many waits for
// itself.
type Cleaner[T any] struct {
	clean func(context.Context, T) error
	log   *slog.Logger
	ctx   context.Context
	stop  context.CancelFunc
	wake  chan struct{}

	mu      sync.Mutex
	waiting Turns[cleaning[T]]
	workers sync.WaitGroup
}

type cleaning[T any] struct {
	tenant string
	what   T
	until  time.Time
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

// Add hands over a tenant's write whose lease is ttl. If too many wait, one of the tenant that
// has most is left to its lease.
func (c *Cleaner[T]) Add(tenant string, what T, ttl time.Duration) {
	if !c.enter(cleaning[T]{tenant, what, time.Now().Add(ttl + cleanGrace)}) {
		c.log.Warn("too many writes of unknown outcome are to be taken back; one lapses by its lease", "waiting", maxToClean)
	}
	c.nudge()
}

// enter puts a write at the end of its tenant's, and reports whether that took no other's place.
func (c *Cleaner[T]) enter(x cleaning[T]) (room bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting.Add(x.tenant, x)
	if room = c.waiting.Len() <= maxToClean; !room {
		c.waiting.Drop(0)
	}
	return room
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

// next takes the first of the tenant whose turn it is.
func (c *Cleaner[T]) next() (x cleaning[T], ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctx.Err() != nil {
		return x, false
	}
	x, ok = c.waiting.Next()
	if c.waiting.Len() > 0 {
		c.nudge() // another worker
	}
	return x, ok
}

// work makes one attempt. If it fails there is another when the tenant has its turn again.
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
