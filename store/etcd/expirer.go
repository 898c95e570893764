package etcd

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/fencepost/fencepost/lock"
)

const (
	// expiryTick is how often is looked for entries that are over.
	expiryTick = 20 * time.Millisecond

	// maxExpiring are removed at once: they share transactions.
	maxExpiring = 256

	// localSlack is how much later than its entry a lease ends that is in this process. Where thousands of entries are
	// over and processors are short of time, to remove them can take many seconds, and etcd, which would begin to end them
	// too and proposes that again every 3 s, would make it take longer.
	localSlack = time.Minute

	// expiryPause is how long one is left alone that could not be removed.
	expiryPause = time.Second
)

// expirer removes a store's entries that nobody renewed in time from an etcd in this process, long before their
// leases end, which then carry other entries. etcd flushes its data file for each lease that it ends itself, which takes
// half a millisecond; it ends up to 500 in one go, no more than 1 000 a second, and all writes wait behind these. What is
// not known here, it still ends. docs/adr/0021 has the reasons.
type expirer struct {
	times  *lifetimes
	prefix string // of the store's keys
	remove func(ctx context.Context, e *lock.Entry, why lock.Reason, while ...*lock.Entry) error
	ctx    context.Context //nolint:containedctx // of all removals: ends when the store is closed
	room   chan struct{}

	ends sync.WaitGroup // of those that are being removed
	gone bool           // the store is closed; guarded by the lifetimes' lock
}

func newExpirer(times *lifetimes, s *Store) *expirer {
	x := &expirer{times: times, prefix: s.prefix, remove: s.Remove, ctx: s.closing, room: make(chan struct{}, maxExpiring)}
	if times != nil {
		times.enter(x)
	}
	return x
}

// watch has an entry removed when it is over: it was written or renewed for its whole TTL, under a lease that has lasted
// since some time, by a call that is over. It reports whether the entry goes on, and is not being removed. One that cannot
// be read goes with its lease: what its TTL is only its holder knows.
func (x *expirer) watch(e *lock.Entry, since time.Time) bool {
	return x.times == nil || e.Opaque || x.times.begin(e, x, since, time.Now())
}

// watchListed has entries removed when they are over that the store has, which may be from before a restart: nobody was promised
// more than their TTL from now on.
func (x *expirer) watchListed(all []*lock.Entry) {
	for _, e := range all {
		x.watch(e, time.Time{})
	}
}

// left returns how long an entry lasts at most, and whether its lease is known to last for so long.
func (x *expirer) left(e *lock.Entry) (left time.Duration, known bool) {
	if x.times == nil {
		return e.TTL, false
	}
	return x.times.left(e, time.Now())
}

// close leaves the rest to another store on the connection, or to etcd, also what could not be removed yet, and waits for
// what is being removed.
func (x *expirer) close() {
	if x.times != nil {
		x.times.leave(x)
	}
	x.ends.Wait()
}

// expire removes one that is over. It waits while many are being removed, and not for that.
func (x *expirer) expire(l *lifetime) {
	select {
	case x.room <- struct{}{}:
	case <-x.ctx.Done():
		x.times.again(l, time.Now())
		x.ends.Done()
		return
	}
	go func() {
		defer x.ends.Done()
		defer func() { <-x.room }()
		switch err := x.remove(x.ctx, l.entry, lock.Expired); {
		case err == nil, errors.Is(err, lock.Lost):
			x.times.forgetEntry(l)
		default:
			x.times.again(l, time.Now().Add(expiryPause))
		}
	}()
}

// expireAll has all stores on the connection remove what is over, until ctx ends.
func (x *lifetimes) expireAll(ctx context.Context) {
	tick := time.NewTicker(expiryTick)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		x.expireDue(ctx)
	}
}

// expireDue has what is over removed. Where that takes long, what is over by then is among it: others' do not wait behind
// all of a tenant that has many.
func (x *lifetimes) expireDue(ctx context.Context) {
	for ctx.Err() == nil {
		l, of := x.next(time.Now())
		if l == nil {
			return
		}
		of.expire(l)
	}
}
