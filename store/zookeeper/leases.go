package zookeeper

import (
	"container/heap"
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/fencepost/fencepost/lock"
)

const (
	// parallelChecks bounds the reads and removals of leases that are under way.
	parallelChecks = 32

	// A lease is looked at every third of its TTL, so that a renewal through
	// another replica, of which this one does not learn otherwise, delays the end
	// by no more than that. Never more often than checkInterval.
	checkInterval = 500 * time.Millisecond

	// The replica that wrote or renewed an entry removes it first; the others
	// leave it this much time, and as much again by chance.
	courtesy = 150 * time.Millisecond

	// Versions of leases are 0 and more. No node has one of these, to ZooKeeper
	// neither, so that a delete which asks for one fails.
	noLease        = -2 // there is none, as nobody has renewed yet
	unknownVersion = -3
)

// aliveClock counts time by the monotonic clock, but only while the store
// answers: an outage costs it no more than maxStep. So entries do not expire
// because nobody could renew them.
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
	entry   *lock.Entry
	version int32         // seen last
	since   time.Duration // when it was first seen, by the alive clock
	mine    bool          // written or renewed here
	missing bool          // the node was not there, since that time
	due     time.Duration // when to look next
	index   int           // in the heap; -1 while it is being looked at
}

// leases watches over the leases of all entries.
type leases struct {
	store *Store
	clock aliveClock

	mu   sync.Mutex
	all  map[key]*lease
	heap leaseHeap
	wake chan struct{}
}

func newLeases(s *Store) *leases {
	return &leases{store: s, all: map[key]*lease{}, wake: make(chan struct{}, 1)}
}

// reset begins anew: nothing is known of any version, and every TTL starts over,
// as nobody can tell what happened meanwhile.
func (ls *leases) reset(entries map[key]*lock.Entry) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ls.all, ls.heap = make(map[key]*lease, len(entries)), nil
	now := ls.clock.now()
	for k, e := range entries {
		l := &lease{entry: e, version: unknownVersion, since: now, due: now + rand.N(checkInterval)}
		ls.all[k] = l
		heap.Push(&ls.heap, l)
	}
	ls.nudge()
}

// joined begins to watch an entry that was just written, here or elsewhere.
func (ls *leases) joined(e *lock.Entry, here bool) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	l := &lease{entry: e, version: noLease, since: ls.clock.now(), mine: here}
	if !fresh(e) {
		l.version = 0
	}
	l.plan(l.since)
	ls.all[keyOf(e)] = l
	heap.Push(&ls.heap, l)
	ls.nudge()
}

func (ls *leases) left(k key) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if l := ls.all[k]; l != nil {
		delete(ls.all, k)
		if l.index >= 0 {
			heap.Remove(&ls.heap, l.index)
		}
	}
}

// renewed notes a renewal by this replica.
func (ls *leases) renewed(k key, handle int64, version int32) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	l := ls.all[k]
	if l == nil || l.entry.Handle != handle || version <= l.version {
		return
	}
	l.mine = true
	l.seen(version, ls.clock.now())
	if l.index >= 0 {
		heap.Fix(&ls.heap, l.index)
	}
}

// made reports whether the entry's lease is known to have a node.
func (ls *leases) made(k key) bool {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	l := ls.all[k]
	return l != nil && l.version >= 0
}

// seen notes a version that was not seen before.
func (l *lease) seen(version int32, now time.Duration) {
	l.version, l.since, l.missing = version, now, false
	l.plan(now)
}

// plan sets when to look next.
func (l *lease) plan(now time.Duration) {
	end := l.since + l.entry.TTL
	if !l.mine {
		end += courtesy + rand.N(courtesy)
	}
	l.due = min(end, now+max(l.entry.TTL/3, checkInterval))
}

// nudge wakes the loop, which may sleep for longer than the newest lease allows.
func (ls *leases) nudge() {
	select {
	case ls.wake <- struct{}{}:
	default:
	}
}

// run looks at the leases that are due.
func (ls *leases) run() {
	var checks sync.WaitGroup
	defer checks.Wait()
	slots := make(chan struct{}, parallelChecks)
	ctx := ls.store.closing
	for ctx.Err() == nil {
		l, wait := ls.next()
		if l == nil {
			ls.sleep(ctx, wait)
			continue
		}
		slots <- struct{}{}
		checks.Go(func() {
			defer func() { <-slots }()
			ls.check(ctx, l)
		})
	}
}

func (ls *leases) sleep(ctx context.Context, wait time.Duration) {
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ls.wake:
	case <-ctx.Done():
	}
}

// next takes a lease that is due out of the heap, or says how long to wait.
func (ls *leases) next() (*lease, time.Duration) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if len(ls.heap) == 0 {
		return nil, time.Minute
	}
	if wait := ls.heap[0].due - ls.clock.now(); wait > 0 {
		return nil, min(max(wait, time.Millisecond), guardInterval)
	}
	return heap.Pop(&ls.heap).(*lease), 0
}

// check reads a lease, or removes its entry if the lease is over.
func (ls *leases) check(ctx context.Context, l *lease) {
	ls.mu.Lock()
	version, missing, over := l.version, l.missing, ls.clock.now() >= l.since+l.entry.TTL
	ls.mu.Unlock()
	again := checkInterval
	if version != unknownVersion && over && !missing {
		ls.expire(ctx, l, version)
	} else {
		again = ls.look(ctx, l)
	}
	if over && missing && ls.isMissing(l) {
		ls.store.sweep(ctx, l.entry)
	}
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if ls.all[keyOf(l.entry)] != l {
		return // it left meanwhile
	}
	if again > 0 {
		l.due = ls.clock.now() + again
	}
	heap.Push(&ls.heap, l)
	ls.nudge()
}

func (ls *leases) isMissing(l *lease) bool {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	return l.missing
}

// look reads the version. It returns after how long to look again, 0 as planned.
func (ls *leases) look(ctx context.Context, l *lease) time.Duration {
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	path := ls.store.root.lease(keyOf(l.entry), l.entry.Handle)
	ls.mu.Lock()
	before := l.version
	ls.mu.Unlock()
	n, err := onLink(ctx, ls.store.calls, get(path))
	ls.mu.Lock()
	defer ls.mu.Unlock()
	now := ls.clock.now()
	switch {
	case l.version != before:
		l.plan(now) // it was renewed here meanwhile, and what was read may be older
	case errors.Is(err, zk.ErrNoNode) && fresh(l.entry) && l.version < 0 && !l.missing:
		l.version = noLease
		l.plan(now)
	case errors.Is(err, zk.ErrNoNode):
		if !l.missing {
			l.missing, l.since = true, now
		}
		return checkInterval
	case err != nil:
		return checkInterval
	case n.stat.Version != l.version || l.missing: // a lower one is of a lease made again
		l.mine = false
		l.seen(n.stat.Version, now)
	default:
		l.plan(now)
	}
	return 0
}

// expire removes the entry, unless its lease was renewed. The feed tells that it
// left.
func (ls *leases) expire(ctx context.Context, l *lease, version int32) {
	ctx, cancel := context.WithTimeout(ctx, operationTimeout)
	defer cancel()
	out := ls.store.attempt(ctx, ls.store.newRemoval(l.entry, version != noLease, version, lock.Expired))
	switch {
	case errors.Is(out.err, zk.ErrNoNode) && out.op == 0:
		ls.mu.Lock()
		defer ls.mu.Unlock()
		l.missing, l.since = true, ls.clock.now()
	case out.err != nil && answered(out.err):
		ls.look(ctx, l) // it was renewed
	}
}

// leaseHeap is ordered by when a lease is due.
type leaseHeap []*lease

func (h leaseHeap) Len() int           { return len(h) }
func (h leaseHeap) Less(i, j int) bool { return h[i].due < h[j].due }
func (h leaseHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

func (h *leaseHeap) Push(x any) {
	l := x.(*lease)
	l.index = len(*h)
	*h = append(*h, l)
}

func (h *leaseHeap) Pop() any {
	old := *h
	l := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	l.index = -1
	return l
}
