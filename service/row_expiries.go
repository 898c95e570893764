package service

import (
	"context"
	"sync"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service/board"
)

// How often the store is asked until when the leases of the rows last that somebody sees: one
// after the other, whoever looks at how many.
const (
	endsPause   = 25 * time.Millisecond // between two questions
	endAskedFor = 2 * time.Second       // an answer is good for so long, and then asked for again
	endWanted   = 5 * time.Second       // since a row was shown last; then it is forgotten
	maxEnds     = 2000                  // rows whose leases are known, of all tenants; of others nothing is told
	endsDiffer  = time.Second           // by as much as a store that counts seconds is wrong
)

// rowExpiries are until when the leases last of those who hold the locks of lists. No list waits
// for the store: what is not known yet is told the next time. Where there are too many rows, the
// tenant who has most gives way.
type rowExpiries struct {
	mu    sync.Mutex
	known map[expiryKey]*rowExpiry
	share tenantLists[*rowExpiry] // of these, the one that was shown last first
	wake  chan struct{}           // holds a value after the first row was shown
}

type rowExpiry struct {
	entry  *lock.Entry
	listed *listed[*rowExpiry]
	wanted time.Time
	told   time.Time // until when, by the wall clock, as it was told last
	expiry
}

func newRowExpiries() *rowExpiries {
	return &rowExpiries{known: map[expiryKey]*rowExpiry{}, share: newTenantLists[*rowExpiry](), wake: make(chan struct{}, 1)}
}

// mark adds to lines until when the lease of the first holder lasts. wall says what the wall clock
// shows at an instant.
func (x *rowExpiries) mark(lines []board.Line, now time.Time, wall func(time.Time) time.Time) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for i := range lines {
		if l := &lines[i]; len(l.Holders) > 0 {
			l.ExpiresAt = x.of(l.Holders[0].Entry, now, wall)
		}
	}
	select {
	case x.wake <- struct{}{}:
	default:
	}
}

// of returns until when a lease lasts, zero if that is not known, or may have become longer.
func (x *rowExpiries) of(e *lock.Entry, now time.Time, wall func(time.Time) time.Time) time.Time {
	one := x.known[expiryKey{e.ID, e.Number}]
	if one == nil {
		if len(x.known) >= maxEnds && !x.drop(e.Tenant) {
			return time.Time{}
		}
		one = x.add(e)
	}
	x.share.touch(one.listed)
	if one.wanted = now; one.until.Before(now) {
		return time.Time{}
	}
	return one.tell(wall)
}

// add takes up an entry that is not known.
func (x *rowExpiries) add(e *lock.Entry) *rowExpiry {
	one := &rowExpiry{entry: e}
	one.listed = x.share.add(e.Tenant, one)
	x.known[expiryKey{e.ID, e.Number}] = one
	return one
}

// drop forgets the row of the tenant with most that was shown longest ago, if these are more than
// the tenant for whom there is to be room would have with one more.
func (x *rowExpiries) drop(tenant string) bool {
	oldest, most := x.share.last()
	if most <= x.share.len(tenant)+1 {
		return false
	}
	x.remove(oldest)
	return true
}

func (x *rowExpiries) remove(one *rowExpiry) {
	delete(x.known, expiryKey{one.entry.ID, one.entry.Number})
	x.share.remove(one.listed)
}

// tell returns until when by the wall clock, which may have been set meanwhile. A row is told anew if it
// has changed: it has not if the store has counted its seconds otherwise, or a clock is read a moment later.
func (one *rowExpiry) tell(wall func(time.Time) time.Time) time.Time {
	if at := wall(one.until).Round(0); at.Sub(one.told).Abs() > endsDiffer {
		one.told = at
	}
	return one.told
}

// run asks the store, until ctx ends.
func (x *rowExpiries) run(ctx context.Context, remaining func(context.Context, *lock.Entry) (time.Duration, error)) {
	pause := time.NewTicker(endsPause)
	defer pause.Stop()
	for {
		next, more := x.due(time.Now())
		switch {
		case next != nil:
			x.ask(ctx, next, remaining)
		case !more:
			select {
			case <-x.wake:
			case <-ctx.Done():
				return
			}
		}
		select {
		case <-pause.C:
		case <-ctx.Done():
			return
		}
	}
}

// due forgets what nobody sees any more. It returns of whom to ask now, of those the one who was asked of
// longest ago, and whether there is anybody at all.
func (x *rowExpiries) due(now time.Time) (next *rowExpiry, more bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, one := range x.known {
		switch {
		case now.Sub(one.wanted) >= endWanted:
			x.remove(one)
		case now.Sub(one.asked) >= endAskedFor && (next == nil || one.asked.Before(next.asked)):
			next = one
		}
	}
	return next, len(x.known) > 0
}

func (x *rowExpiries) ask(ctx context.Context, one *rowExpiry, remaining func(context.Context, *lock.Entry) (time.Duration, error)) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	asked := time.Now()
	left, err := remaining(ctx, one.entry)
	x.mu.Lock()
	defer x.mu.Unlock()
	one.asked = asked
	if err == nil {
		one.until = asked.Add(left)
	}
}
