package figures

import (
	"context"
	"sync"
	"time"

	"github.com/fencepost/fencepost/lock"
)

const (
	maxNotes = 1 << 13               // above it the view that leaves a note counts them, 2 MB
	fewNotes = 64                    // are counted before a renewal or a reader may have its turn
	pace     = 20 * time.Millisecond // between two rounds of counting
)

// note is what a view saw and is not counted yet: an event, or without an entry a level.
type note struct {
	lock.Event
	waited  time.Duration // how long ago the client requested the grant
	free    uint32        // by the claims of the entry: their locks that no entry holds now
	of      lock.Ref      // of a level; without a name it is the tenant's
	waiting int
	holding int
	also    []*lock.Entry // what else a named holder has, of a grant for the orders
}

// notes are left under one lock and counted under that of the figures.
type notes struct {
	mu      sync.Mutex
	left    []note
	ready   chan struct{} // holds a value after left became non-empty
	batch   []note        // being counted; guarded by the figures' mutex
	counted int           // of the batch
}

// Happened leaves an event. waited is how long ago the client requested a grant. free reports, at
// the end of a hold, whether the lock is now free.
func (f *Figures) Happened(what *lock.Event, waited time.Duration, free func(lock.Ref) bool) {
	n := note{Event: *what, waited: waited}
	if what.Held && what.Kind != lock.EventAcquired {
		for i, c := range what.Entry.Claims {
			if free(lock.Ref{Tenant: what.Entry.Tenant, Name: c.Name}) {
				n.free |= 1 << i
			}
		}
	}
	f.leave(&n)
}

// Waiting leaves how many entries wait for a lock from now on.
func (f *Figures) Waiting(r lock.Ref, n int, now time.Time) {
	f.leave(&note{Event: lock.Event{At: now}, of: r, waiting: n})
}

// Level leaves how many entries of a tenant wait, and how many claims hold, from now on.
func (f *Figures) Level(tenant string, waiting, holding int, now time.Time) {
	f.leave(&note{
		Event: lock.Event{At: now}, of: lock.Ref{Tenant: tenant}, waiting: waiting, holding: holding,
	})
}

func (f *Figures) leave(n *note) {
	f.notes.mu.Lock()
	f.notes.left = append(f.notes.left, *n)
	left := len(f.notes.left)
	f.notes.mu.Unlock()
	switch {
	case left > maxNotes:
		f.Settle()
	case left == 1:
		select {
		case f.notes.ready <- struct{}{}:
		default:
		}
	}
}

// Run counts what views leave, until ctx ends.
func (f *Figures) Run(ctx context.Context) {
	for {
		select {
		case <-f.notes.ready:
		case <-ctx.Done():
			return
		}
		for f.countFew() {
		}
		select {
		case <-time.After(pace):
		case <-ctx.Done():
			return
		}
	}
}

// Settle counts what views have left by now.
func (f *Figures) Settle() {
	f.lock()
	f.mu.Unlock()
}

// lock locks the figures and counts what views have left by now.
func (f *Figures) lock() {
	f.mu.Lock()
	for f.count(maxNotes) {
	}
}

func (f *Figures) countFew() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.count(fewNotes)
}

// count counts up to so many notes, and reports whether there were any.
func (f *Figures) count(most int) bool {
	n := &f.notes
	if n.counted == len(n.batch) {
		n.mu.Lock()
		n.batch, n.left = n.left, n.batch[:0]
		n.mu.Unlock()
		n.counted = 0
	}
	some := n.batch[n.counted:min(n.counted+most, len(n.batch))]
	for i := range some {
		f.apply(&some[i])
	}
	clear(some) // an entry may have ended
	n.counted += len(some)
	return len(some) > 0
}

func (f *Figures) apply(n *note) {
	switch {
	case n.also != nil:
		f.learn(n)
	case n.Entry != nil:
		f.happened(n)
	case n.of.Name != "":
		f.waiting(n.of, n.waiting, n.At)
	default:
		f.tenants.level(n.of.Tenant, level{n.waiting, n.holding}, n.At)
	}
}
