package zookeeper

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/lock/heap"
	"github.com/fencepost/fencepost/store"
)

const (
	// The replica that last wrote or renewed an entry knows when its lease ends, and checks it only
	// then. The others check every third of the TTL, in case that replica has died, but no more
	// often than checkInterval.
	checkInterval = 500 * time.Millisecond

	// The replica that last wrote or renewed an entry removes it first. The others wait for
	// courtesy, and up to as much again at random.
	courtesy = 150 * time.Millisecond

	// Versions of leases are 0 and more. ZooKeeper has no node with one of these, so a delete with
	// one of them fails.
	noLease        = -2 // there is none, because there was no renewal yet
	unknownVersion = -3
)

// aliveClock counts monotonic time, but only while the store answers: an outage adds maxStep at
// most. So entries do not expire because renewals could not reach the store.
type aliveClock struct {
	mu    sync.Mutex
	total time.Duration
	last  time.Time
}

const maxStep = guardInterval + 500*time.Millisecond

func (c *aliveClock) tick() {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if !c.last.IsZero() {
		c.total += min(now.Sub(c.last), maxStep)
	}
	c.last = now
}

func (c *aliveClock) now() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.last.IsZero() {
		return 0
	}
	return c.total + min(time.Since(c.last), maxStep)
}

// lease is what this replica has seen of an entry's lease.
type lease struct {
	heap.Place               // none during a check
	entry      *lock.Entry   // as it joined: it may be narrowed
	version    int32         // last seen
	since      time.Duration // when it was first seen, by the alive clock
	mine       bool          // last written or renewed here
	due        time.Duration // when to check next
}

// Before puts the lease that is due first in front.
func (l *lease) Before(other *lease) bool { return l.due < other.due }

// leases tracks the leases of all entries.
type leases struct {
	clock aliveClock

	mu   sync.Mutex
	all  map[key]*lease
	heap heap.Heap[*lease]
	wake chan struct{}
}

func newLeases() *leases {
	return &leases{all: map[key]*lease{}, wake: make(chan struct{}, 1)}
}

// reset adopts the present entries. It keeps tracking known leases, because their versions show
// what happened meanwhile.
func (ls *leases) reset(entries map[key]*lock.Entry) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	for k, l := range ls.all {
		if e := entries[k]; e == nil || e.Number != l.entry.Number || e.Handle != l.entry.Handle {
			ls.drop(k)
		}
	}
	now := ls.clock.now()
	for k, e := range entries {
		if ls.all[k] != nil {
			continue
		}
		l := &lease{entry: e, version: unknownVersion, since: now, due: now + rand.N(checkInterval)}
		ls.all[k] = l
		ls.heap.Push(l)
	}
	ls.nudge()
}

// joined starts to track an entry that was just written, here or elsewhere.
func (ls *leases) joined(e *lock.Entry, here bool) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	k := keyOf(e)
	ls.drop(k)
	l := &lease{entry: e, version: noLease, since: ls.clock.now(), mine: here}
	if !fresh(e) {
		l.version = 0
	}
	ls.plan(l, l.since)
	ls.all[k] = l
	ls.heap.Push(l)
	ls.nudge()
}

// left stops tracking an entry that has ended, even during a list.
func (ls *leases) left(k key) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ls.drop(k)
}

// drop stops tracking a lease. The caller holds mu.
func (ls *leases) drop(k key) {
	if l := ls.all[k]; l != nil {
		delete(ls.all, k)
		if l.Queued() {
			ls.heap.Remove(l)
		}
	}
}

// renewed records a renewal by this replica.
func (ls *leases) renewed(k key, handle int64, version int32) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	l := ls.all[k]
	if l == nil || l.entry.Handle != handle || version <= l.version {
		return
	}
	l.mine = true
	ls.seen(l, version, ls.clock.now())
	if l.Queued() {
		ls.heap.Fix(l)
	}
}

// made reports whether the entry's lease is known to have a node.
func (ls *leases) made(k key) bool {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	l := ls.all[k]
	return l != nil && l.version >= 0
}

// seen records a new version. The caller holds mu.
func (ls *leases) seen(l *lease, version int32, now time.Duration) {
	l.version, l.since = version, now
	ls.plan(l, now)
}

// plan schedules the next check. The caller holds mu.
func (ls *leases) plan(l *lease, now time.Duration) {
	l.due = l.since + l.entry.TTL
	if !l.mine {
		l.due = min(l.due+courtesy+rand.N(courtesy), now+max(l.entry.TTL/3, checkInterval))
	}
}

// nudge wakes the loop, which may sleep for longer than the newest lease allows.
func (ls *leases) nudge() {
	select {
	case ls.wake <- struct{}{}:
	default:
	}
}

// sleep waits until a lease can be due.
func (ls *leases) sleep(ctx context.Context, wait time.Duration) {
	store.Await(ctx, ls.wake, wait)
}

// next removes a lease that is due from the heap, or returns how long to wait.
func (ls *leases) next() (*lease, time.Duration) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if ls.heap.Len() == 0 {
		return nil, time.Minute
	}
	if wait := ls.heap.First().due - ls.clock.now(); wait > 0 {
		return nil, min(max(wait, time.Millisecond), guardInterval)
	}
	return ls.heap.Pop(), 0
}
