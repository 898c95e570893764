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
	clients := b.clients("A", "B", "C", "D", "E", "F", "G", "H")
	lock, began := b.lockName(""), time.Now()
	var granted, errors atomic.Int32
	var all sync.WaitGroup
	for _, c := range clients {
		all.Go(func() {
			for granted.Load() < grants && time.Since(began) < limit && !c.over() {
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
	facts := fmt.Sprintf("%d grants in %s, %d times two holders at once, %d errors", granted.Load(),
		seconds(time.Since(began)), twice, errors.Load())
	if granted.Load() == 0 {
		b.giveUp("no client was granted the lock: %s", facts)
	}
	return b.verdict(facts, shown{"exclusion", twice == 0})
}

// order lets clients queue one after the other, and compares arrivals with grants.
func order(b *bench) result {
	names := []string{"1", "2", "3", "4", "5", "6"}
	lock := b.lockName("")
	holder := b.clients("A")[0]
	holder.hold(lock)
	var all sync.WaitGroup
	for _, c := range b.clients(names...) {
		got := c.queue(lock, time.Minute)
		all.Go(func() {
			if (<-got).Event == "held" {
				pause(50 * time.Millisecond)
				c.release()
			}
		})
	}
	holder.release()
	all.Wait()
	var granted []string
	reversed := 0
	for _, s := range spans(b.all())[1:] {
		for _, earlier := range granted {
			if slices.Index(names, earlier) > slices.Index(names, s.who) {
				reversed++
			}
		}
		granted = append(granted, s.who)
	}
	facts := fmt.Sprintf("granted as %v, %d of 15 pairs reversed", granted, reversed)
	return b.verdict(facts, shown{"order", reversed == 0 && len(granted) == len(names)})
}
