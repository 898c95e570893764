package zookeeper

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/fencepost/fencepost/lock"
)

const (
	// parallelChecks bounds the reads of leases that are under way.
	parallelChecks = 32

	// parallelEnds bounds the removals. What many leases that end at once leave behind is no more urgent than
	// what clients ask for, which waits behind it at the store.
	parallelEnds = 8
)

// expirer looks at the leases that are due, and has the entries removed whose leases are over.
type expirer struct {
	*leases
	calls   *connector
	remover *remover
	ending  chan struct{} // a place for each removal under way
}

func newExpirer(l *leases, calls *connector, r *remover) *expirer {
	return &expirer{leases: l, calls: calls, remover: r, ending: make(chan struct{}, parallelEnds)}
}

// run looks at the leases that are due, until ctx ends.
func (x *expirer) run(ctx context.Context) {
	var checks sync.WaitGroup
	defer checks.Wait()
	slots := make(chan struct{}, parallelChecks)
	for ctx.Err() == nil {
		l, wait := x.next()
		if l == nil {
			x.sleep(ctx, wait)
			continue
		}
		slots <- struct{}{}
		checks.Go(func() {
			defer func() { <-slots }()
			x.check(ctx, l)
		})
	}
}

// check reads a lease, and removes its entry if the lease is over.
func (x *expirer) check(ctx context.Context, l *lease) {
	again := x.look(ctx, l)
	x.mu.Lock()
	version, missing, over := l.version, l.missing, x.clock.now() >= l.since+l.entry.TTL
	known := x.all[keyOf(l.entry)] == l
	x.mu.Unlock()
	switch {
	case !known: // it left meanwhile
		return
	case over && missing:
		x.remover.sweep(ctx, l.entry)
		again = checkInterval
	case over && again == asPlanned && version != unknownVersion:
		x.expire(ctx, l, version)
		again = checkInterval
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.all[keyOf(l.entry)] != l {
		return
	}
	if again > 0 {
		l.due = x.clock.now() + again
	}
	x.heap.Push(l)
	x.nudge()
}

// asPlanned is how soon to look again after one that told something.
const asPlanned = 0

// look reads the version. It returns after how long to look again, or [asPlanned].
func (x *expirer) look(ctx context.Context, l *lease) time.Duration {
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	path := x.reader.root.lease(keyOf(l.entry), l.entry.Handle)
	x.mu.Lock()
	before := l.version
	x.mu.Unlock()
	n, err := onLink(ctx, x.calls, get(path))
	x.mu.Lock()
	defer x.mu.Unlock()
	now := x.clock.now()
	switch {
	case l.version != before:
		x.plan(l, now) // it was renewed here meanwhile, and what was read may be older
	case errors.Is(err, zk.ErrNoNode) && fresh(l.entry) && l.version < 0 && !l.missing:
		l.version = noLease
		x.plan(l, now)
	case errors.Is(err, zk.ErrNoNode):
		if !l.missing {
			l.missing, l.since = true, now
		}
		return checkInterval
	case err != nil:
		return checkInterval
	case n.stat.Version != l.version || l.missing: // a lower one is of a lease made again
		l.mine = false
		x.seen(l, n.stat.Version, now)
	default:
		x.plan(l, now)
	}
	return asPlanned
}

// expire removes the entry, unless its lease was renewed. The feed tells that it
// left.
func (x *expirer) expire(ctx context.Context, l *lease, version int32) {
	select {
	case x.ending <- struct{}{}:
		defer func() { <-x.ending }()
	case <-ctx.Done():
		return
	}
	ctx, cancel := context.WithTimeout(ctx, x.reader.timeout)
	defer cancel()
	out := x.remover.attempt(ctx, x.remover.newRemoval(l.entry, version != noLease, version, lock.Expired))
	switch {
	case errors.Is(out.err, zk.ErrNoNode) && out.op == 0:
		x.mu.Lock()
		defer x.mu.Unlock()
		l.missing, l.since = true, x.clock.now()
	case out.err != nil && answered(out.err):
		x.look(ctx, l) // it was renewed
	}
}
