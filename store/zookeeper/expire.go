package zookeeper

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/fencepost/fencepost/lock"
)

// parallelChecks bounds the concurrent reads of leases and removals of expired entries, because
// clients' requests wait behind them at the store.
const parallelChecks = 16

// expirer checks the leases that are due, and removes the entries whose leases are over.
type expirer struct {
	*leases
	reader  *reader
	calls   *connector
	remover *remover
}

// run checks the leases that are due, until ctx ends.
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
	version, over := l.version, x.clock.now() >= l.since+l.entry.TTL
	known := x.all[keyOf(l.entry)] == l
	x.mu.Unlock()
	if known && over && again == asPlanned && version != unknownVersion {
		x.expire(ctx, l, version)
		again = checkInterval
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.all[keyOf(l.entry)] != l {
		return // it left meanwhile
	}
	if again > 0 {
		l.due = x.clock.now() + again
	}
	x.heap.Push(l)
	x.nudge()
}

// asPlanned schedules the next check as usual, after one that was answered.
const asPlanned = 0

// look reads the version. It returns when to check again, or [asPlanned].
func (x *expirer) look(ctx context.Context, l *lease) time.Duration {
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	path := x.reader.root.lease(keyOf(l.entry), l.entry.Handle)
	x.mu.Lock()
	before := l.version
	x.mu.Unlock()
	n, err := onLink(ctx, x.calls, get(path))
	version := int32(noLease)
	switch {
	case err == nil:
		version = n.stat.Version
	case !errors.Is(err, zk.ErrNoNode):
		return checkInterval
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	now := x.clock.now()
	switch {
	case l.version != before, l.version == version: // renewed here meanwhile, or nowhere
		x.plan(l, now)
	case before == unknownVersion && version == noLease: // it is as old as it was
		l.version = version
		x.plan(l, now)
	default: // a lower one belongs to a new lease
		l.mine = false
		x.seen(l, version, now)
	}
	return asPlanned
}

// expire removes the entry, unless its lease was renewed; the feed then drops it. An entry may
// have no lease, because no client renewed it or a person deleted the lease. It is removed if
// nothing is below it: a later entry of the same key has a lease from its beginning.
func (x *expirer) expire(ctx context.Context, l *lease, version int32) {
	ctx, cancel := context.WithTimeout(ctx, x.reader.timeout)
	defer cancel()
	r := x.remover.newRemoval(l.entry, version != noLease, version, lock.Expired)
	out := x.remover.attempt(ctx, r)
	switch {
	case errors.Is(out.err, zk.ErrNoNode) && out.op == 0:
		if x.remover.stands(ctx, l.entry) {
			x.reader.report(x.reader.root.primary(keyOf(l.entry)), "an entry was deleted by hand")
			x.remover.feed.doubt()
		}
	case out.err != nil && answered(out.err):
		x.look(ctx, l) // it was renewed
	}
}
