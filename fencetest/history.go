package main

import (
	"fmt"
	"math/big"
	"strings"
	"sync"
	"time"
)

// history is what happened in one run of a row, on the harness's one clock. A worker holds from
// the moment at which the harness has read "held" until just before it sends "release".
type history struct {
	began  time.Time
	mu     sync.Mutex
	events []event
}

// event is one line of a history.
type event struct {
	At    time.Duration
	Who   string // a client, or "" for a fault
	Lock  string
	What  what
	Fence string
	Text  string
}

type what string

const (
	waits    what = "waits"
	holds    what = "holds"
	gaveUp   what = "gave up"
	releases what = "releases"
	freed    what = "released"
	loses    what = "lost"
	believed what = "says it holds"
	stopped  what = "stopped"
	resumed  what = "resumed"
	killed   what = "killed"
	writes   what = "writes"
	stale    what = "late write"
	fault    what = "fault"
	failed   what = "error"
)

func (h *history) add(e event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	e.At = time.Since(h.began)
	h.events = append(h.events, e)
}

func (h *history) all() []event {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]event(nil), h.events...)
}

// span is a time for which a client held a lock, as far as the client can know.
type span struct {
	who, lock, fence string
	from, to         time.Duration
}

// spans returns who held what and when, in the order of the grants.
func spans(events []event) (all []span) {
	open := map[string]int{} // client → index of its span: one lock at a time
	for _, e := range events {
		i, holding := open[e.Who]
		switch e.What {
		case holds:
			open[e.Who] = len(all)
			all = append(all, span{e.Who, e.Lock, e.Fence, e.At, time.Hour})
		case releases, loses, killed:
			if holding {
				all[i].to = e.At
				delete(open, e.Who)
			}
		}
	}
	return all
}

// overlaps counts the pairs of spans in which two clients held one lock at once.
func overlaps(all []span) (n int) {
	for i, a := range all {
		for _, b := range all[i+1:] {
			if a.lock == b.lock && a.who != b.who && b.from < a.to && a.from < b.to {
				n++
			}
		}
	}
	return n
}

// text is the history for people to read.
func (h *history) text() string {
	var b strings.Builder
	for _, e := range h.all() {
		fence := ""
		if e.Fence != "" {
			fence = "fence " + e.Fence
		}
		parts := strings.Fields(strings.Join([]string{string(e.What), e.Lock, fence, e.Text}, " "))
		fmt.Fprintf(&b, "%8.3f s  %-4s %s\n", e.At.Seconds(), e.Who, strings.Join(parts, " "))
	}
	return b.String()
}

// register is the resource: each lock protects a register of its own, which the harness keeps. One
// copy takes all writes. The other takes a write only with a fence that is not below the highest.
type register struct {
	mu      sync.Mutex
	highest map[string]*big.Int
}

// write returns whether the copy with the check rejects the write.
func (r *register) write(lock, fence string) (rejected bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n, ok := new(big.Int).SetString(fence, 10)
	if !ok {
		return false // a lock without a fence gives it nothing to check
	}
	if r.highest == nil {
		r.highest = make(map[string]*big.Int)
	}
	if h := r.highest[lock]; h != nil && n.Cmp(h) < 0 {
		return true
	}
	r.highest[lock] = n
	return false
}
