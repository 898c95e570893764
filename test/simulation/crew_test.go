package simulation

import "sync"

// crew are goroutines that carry out one call after the other: to grow a new stack for
// each took a tenth of the time.
type crew struct {
	mu   sync.Mutex
	idle []chan func()
}

// do has one of them do something.
func (c *crew) do(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := len(c.idle); n > 0 {
		c.idle[n-1] <- f // has room
		c.idle = c.idle[:n-1]
		return
	}
	one := make(chan func(), 1)
	one <- f
	go func() {
		for f := range one {
			f()
			c.rest(one)
		}
	}()
}

func (c *crew) rest(one chan func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.idle = append(c.idle, one)
}

// dismiss ends those who have nothing to do.
func (c *crew) dismiss() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, one := range c.idle {
		close(one)
	}
	c.idle = nil
}
