package store

import (
	"context"
	"log/slog"
	"slices"
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
	waiting map[string][]cleaning[T] // by tenant, the first first
	turns   []string                 // of those that have something waiting
	all     int                      // that wait
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
	c := &Cleaner[T]{clean: clean, log: log, wake: make(chan struct{}, 1), waiting: map[string][]cleaning[T]{}}
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
	if len(c.waiting[x.tenant]) == 0 {
		c.turns = append(c.turns, x.tenant)
	}
	c.waiting[x.tenant] = append(c.waiting[x.tenant], x)
	c.all++
	if room = c.all <= maxToClean; !room {
		c.leaveOne()
	}
	return room
}

// leaveOne forgets the newest of the tenant that has most. The caller holds mu.
func (c *Cleaner[T]) leaveOne() {
	most := c.turns[0]
	for _, tenant := range c.turns {
		if len(c.waiting[tenant]) > len(c.waiting[most]) {
			most = tenant
		}
	}
	last := len(c.waiting[most]) - 1
	clear(c.waiting[most][last:])
	c.waiting[most] = c.waiting[most][:last]
	c.all--
	if last == 0 {
		delete(c.waiting, most)
		c.turns = slices.DeleteFunc(c.turns, func(tenant string) bool { return tenant == most })
	}
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
	if len(c.turns) == 0 || c.ctx.Err() != nil {
		return x, false
	}
	tenant := c.turns[0]
	c.turns = c.turns[1:]
	x = c.waiting[tenant][0]
	if rest := c.waiting[tenant][1:]; len(rest) > 0 {
		c.waiting[tenant], c.turns = rest, append(c.turns, tenant)
	} else {
		delete(c.waiting, tenant)
	}
	if c.all--; c.all > 0 {
		c.nudge() // another worker
	}
	return x, true
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
