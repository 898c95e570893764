package main

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// together has clients take one lock by turns, and looks for two that held it at once.
func together(b *bench) result {
	const grants, limit = 40, 30 * time.Second
	lock, deadline := b.lockName(""), time.Now().Add(limit)
	var granted, errors atomic.Int32
	var all sync.WaitGroup
	for _, c := range b.clients("A", "B", "C", "D", "E", "F", "G", "H") {
		all.Go(func() {
			for granted.Load() < grants && time.Now().Before(deadline) && !c.over() {
				switch c.acquire(lock, 10*time.Second).Event {
				case "held":
					granted.Add(1)
					c.write()
					pause(50 * time.Millisecond)
					c.release()
				case "not_held":
				default:
					errors.Add(1)
					pause(200 * time.Millisecond)
				}
			}
		})
	}
	all.Wait()
	twice := overlaps(spans(b.all()))
	facts := fmt.Sprintf("%d grants in %s, %d times two holders at once", granted.Load(),
		seconds(time.Since(b.began)), len(twice))
	if n := errors.Load(); n > 0 {
		facts += fmt.Sprintf(", %d errors", n)
	}
	if granted.Load() == 0 {
		b.giveUp("no client was granted the lock: %s", facts)
	}
	return b.verdict(facts, shown{"exclusion", len(twice) == 0})
}

// order lets clients queue one after the other, and compares arrivals with grants.
func order(b *bench) result {
	names := []string{"1", "2", "3", "4", "5", "6"}
	lock := b.lockName("")
	holder := b.clients("A")[0]
	holder.hold(lock)
	var all sync.WaitGroup
	for _, c := range b.clients(names...) {
		sent := c.sent()
		got := c.begin(lock, time.Minute)
		all.Go(func() {
			if (<-got).Event == "held" {
				pause(50 * time.Millisecond)
				c.release()
			}
		})
		c.queued(sent)
	}
	holder.release()
	all.Wait()
	var granted []string
	for _, s := range spans(b.all())[1:] {
		granted = append(granted, s.who)
	}
	inversions := 0
	for i, first := range granted {
		for _, later := range granted[i+1:] {
			if slices.Index(names, first) > slices.Index(names, later) {
				inversions++
			}
		}
	}
	facts := fmt.Sprintf("granted as %v, %d of 15 pairs reversed", granted, inversions)
	return b.verdict(facts, shown{"order", inversions == 0 && len(granted) == len(names)})
}

func (c *client) sent() int {
	if c.proxy == nil {
		return 0
	}
	return c.proxy.sent()
}

// queued waits until the client has surely joined the queue: its request was sent a second ago.
func (c *client) queued(sentBefore int) {
	deadline := time.Now().Add(5 * time.Second)
	for c.proxy != nil && c.sent() == sentBefore && time.Now().Before(deadline) {
		pause(20 * time.Millisecond)
	}
	pause(time.Second)
}
