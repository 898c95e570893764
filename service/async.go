package service

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/lock/heap"
	"github.com/fencepost/fencepost/service/replicas"
	"github.com/fencepost/fencepost/service/view"
)

// MinAsyncTTL is the shortest lease of an async entry. Replicas notice within 5 s that one of
// them has stopped, and they renew leases after a third of the TTL. So the replicas that take
// over its entries find the leases alive.
const MinAsyncTTL = 15 * time.Second

// asyncAtOnce bounds how many async entries this replica handles at the same time. Each takes one
// store call, so 64 allow thousands of renewals a second.
const asyncAtOnce = 64

// asyncOfOne bounds the same for one tenant. However slow the store is and however many entries a
// tenant has, another tenant's grant need not wait for them.
const asyncOfOne = 48

// renewTimeout bounds one renewal for which no request waits.
const renewTimeout = 2 * time.Second

// asyncKeeper keeps this replica's share of the waiting async entries. It renews their leases,
// ends waits that are over, removes entries that cannot stay, and starts a full lease at the
// grant. From the grant on the client renews.
//
// Every replica knows all async entries from its view, and which replicas run. So all replicas
// agree on the owner of each entry without talking. While two of them disagree, both may keep an
// entry, or neither. Everything they do to it is safe to do twice.
type asyncKeeper struct {
	s       *Service
	sharing replicas.Sharing
	// all waiting entries, and those holders that this replica saw waiting
	kept     map[lock.ID]*asyncEntry
	due      heap.Heap[*asyncEntry]  // entries of this replica that are neither due nor being handled
	tenants  map[string]*asyncTenant // tenants with entries that are due or being handled
	turns    []*asyncTenant          // tenants that may start another entry, in round-robin order
	attended int
	done     chan *asyncEntry
	given    given
	unseen   map[lock.ID]struct{} // kept entries that the view has not shown yet
	workers  sync.WaitGroup
}

// asyncEntry is the keeper's record of one async entry. While a worker handles the entry, only
// that worker writes at, over and the fields of keeper.
type asyncEntry struct {
	keeper
	heap.Place
	mine bool
	// when this replica last had it in its share; zero if it has it now, or never had
	left time.Time
	// when this replica saw it hold; zero if it waits, or its client must not learn of the grant
	granted  time.Time
	begun    bool // it holds and its full lease has begun: its client renews from there
	attended bool
	changed  bool      // while a worker handled it
	ended    bool      // the keeper no longer keeps it
	over     bool      // as of the last handling: nothing is left to do
	at       time.Time // when the keeper next handles it
	late     bool      // it is due, and in its tenant's queue
}

func newAsyncKeeper(s *Service) *asyncKeeper {
	return &asyncKeeper{
		s: s, sharing: s.Sharing(), kept: map[lock.ID]*asyncEntry{}, tenants: map[string]*asyncTenant{},
		done: make(chan *asyncEntry, asyncAtOnce), given: newGiven(), unseen: map[lock.ID]struct{}{},
	}
}

// run keeps entries until ctx ends.
func (a *asyncKeeper) run(ctx context.Context) {
	defer a.workers.Wait()
	for ctx.Err() == nil {
		a.attend(ctx)
		a.take(a.await(ctx))
	}
}

// news is what has happened since the keeper's last look.
type news struct {
	attended []*asyncEntry
	given    bool
	seen     bool // in the view
	sharing  bool // the share of this replica changed
}

// take handles the news, always in the same order, so that a replica's actions depend on what
// happened and not on the scheduler.
func (a *asyncKeeper) take(n news) {
	slices.SortFunc(n.attended, func(x, y *asyncEntry) int { return inOrder(x.entry, y.entry) })
	for _, e := range n.attended {
		a.settle(e)
	}
	if n.sharing {
		a.share()
	}
	if n.given {
		a.takeGiven()
	}
	if n.seen {
		a.look()
	}
}

// await waits for news, or until an entry is due.
func (a *asyncKeeper) await(ctx context.Context) (n news) {
	due, stop := a.whenDue()
	defer stop()
	select {
	case <-ctx.Done():
	case <-a.s.view.Waits.AsyncChanges():
		n.seen = true
	case <-a.given.ready:
		n.given = true
	case <-a.sharing.Changed:
		n.sharing = true
	case e := <-a.done:
		n.attended = append(n.attended, e)
	case <-due:
	}
	for more := true; more; {
		select {
		case <-a.s.view.Waits.AsyncChanges():
			n.seen = true
		case <-a.given.ready:
			n.given = true
		case e := <-a.done:
			n.attended = append(n.attended, e)
		default:
			more = false
		}
	}
	select {
	case <-a.sharing.Changed:
		n.sharing = true
	default:
	}
	return n
}

// whenDue returns a channel that receives when the next entry is due. It is nil if none is due or
// all workers are busy.
func (a *asyncKeeper) whenDue() (due <-chan time.Time, stop func() bool) {
	if a.due.Len() == 0 || a.attended == asyncAtOnce {
		return nil, func() bool { return true }
	}
	timer := time.NewTimer(time.Until(a.due.First().at))
	return timer.C, timer.Stop
}

// look updates the kept entries from the view.
func (a *asyncKeeper) look() {
	changed, listed := a.s.view.Waits.TakeAsync()
	if listed {
		a.forgetUnseen()
	}
	for _, id := range changed {
		delete(a.unseen, id)
		st := a.s.view.Status(id, 0)
		e := a.known(a.kept[id], st, listed)
		switch {
		case e == nil, e.begun:
		case st.State == view.Held:
			a.hold(e, st)
		case !e.mine:
		case st.Refused != nil, st.Choice != nil, listed:
			a.dueAt(e, time.Now())
		case !e.Queued() && !e.attended:
			a.dueAt(e, e.next())
		}
	}
}

// known returns the kept entry that was known as e, or nil. The keeper leaves an entry to its
// client if it held from the start, or before this replica did.
func (a *asyncKeeper) known(e *asyncEntry, st view.Status, listed bool) *asyncEntry {
	begun := false
	if e != nil {
		inACopy := e.begun && st.State == view.Waiting // a backup has replaced the store
		if st.Entry != nil && st.Entry.Number == e.entry.Number && !inACopy {
			return e
		}
		a.drop(e)
		// It may be the same entry with another number, from a fence floor.
		begun = e.begun && st.State == view.Held && st.Entry.EnqueuedAt.Equal(e.entry.EnqueuedAt)
	}
	if st.State != view.Waiting && (st.State != view.Held || !st.Queued) {
		return nil
	}
	again := a.add(st.Entry, listed)
	again.begun = begun
	return again
}

// add starts to keep a waiting entry. For an entry from a list, the start of its lease is
// unknown. For another entry, the lease began no earlier than the request, which is long ago if
// the feed lags.
func (a *asyncKeeper) add(entry *lock.Entry, listed bool) *asyncEntry {
	e := &asyncEntry{keeper: keeper{s: a.s, entry: entry}, mine: a.sharing.Does(string(entry.ID))}
	if !listed {
		e.refreshed = time.Now().Add(-a.s.view.Queues.WaitedFor(entry))
	}
	a.kept[entry.ID] = e
	return e
}

func (a *asyncKeeper) drop(e *asyncEntry) {
	delete(a.unseen, e.entry.ID)
	delete(a.kept, e.entry.ID)
	e.ended = true
	a.unqueue(e)
}

// share computes again which entries are this replica's.
func (a *asyncKeeper) share() {
	a.sharing = a.s.Sharing()
	for id, e := range a.kept {
		was := e.mine
		switch e.mine = a.sharing.Does(string(id)); {
		case e.mine && !was:
			e.left = time.Time{}
			a.takeOver(e)
		case !e.mine && was:
			e.left = time.Now()
			a.unqueue(e)
		}
	}
}

// dueAt schedules the entry for an instant, or for the end of its present handling.
func (a *asyncKeeper) dueAt(e *asyncEntry, at time.Time) {
	if e.attended {
		e.changed = true
		return
	}
	a.unqueue(e)
	e.at = at
	a.due.Push(e)
}

func (a *asyncKeeper) unqueue(e *asyncEntry) {
	switch {
	case !e.Queued():
	case e.late:
		a.tenant(e).late.Remove(e)
	default:
		a.due.Remove(e)
	}
	e.late = false
}

// settle takes the entry back from its worker.
func (a *asyncKeeper) settle(e *asyncEntry) {
	a.leave(e)
	e.attended = false
	again := e.changed
	e.changed = false
	switch {
	case e.ended:
	case e.over && e.began.IsZero():
		a.drop(e)
	case e.over:
		e.begun = true
	case !e.mine:
	case again:
		a.dueAt(e, time.Now())
	default:
		a.dueAt(e, e.at)
	}
}

// attend does what the entry needs now. over reports that nothing is left to do; otherwise the
// keeper handles it again at the returned instant.
func (e *asyncEntry) attend(ctx context.Context) (over bool, at time.Time) {
	ctx, cancel := context.WithTimeout(ctx, removalTimeout)
	defer cancel()
	over, err := e.serve(ctx)
	switch {
	case over, errors.Is(err, lock.Lost):
		return true, at
	case err != nil:
		// thousands may fail together
		return false, time.Now().Add(e.s.spread(max(recheck, e.entry.TTL/16)))
	}
	return false, e.next()
}

// serve does the most urgent thing for the entry.
func (e *asyncEntry) serve(ctx context.Context) (over bool, err error) {
	st := e.s.view.Status(e.entry.ID, e.entry.Number)
	decides := (st.State == view.Waiting || st.State == view.Unseen) && e.s.outdated() == nil
	switch {
	case st.State == view.Gone:
		return true, nil
	case st.State == view.Held && e.s.mayGrant(st):
		return e.begin(ctx, st.Waited)
	case decides && st.Refused == nil && st.Choice != nil:
		return e.choose(ctx, st.Choice)
	case decides && (st.Refused != nil || !e.s.Now().Before(e.entry.WaitUntil)):
		return e.endWait(ctx, st.Refused)
	}
	return false, e.renew(ctx)
}

// choose takes a choosing entry out of all queues but those of kept; then it holds.
func (e *asyncEntry) choose(ctx context.Context, kept []lock.Claim) (over bool, err error) {
	if _, err := e.s.Store.Narrow(ctx, e.entry, kept); err != nil {
		return false, err
	}
	return e.begin(ctx, e.s.view.Queues.WaitedFor(e.entry))
}

func (e *asyncEntry) renew(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, renewTimeout)
	defer cancel()
	return e.refresh(ctx)
}

// endWait removes an entry that cannot stay in its queues, or whose wait is over. The store keeps
// the reason, because the client may not be connected now.
func (e *asyncEntry) endWait(ctx context.Context, refused error) (over bool, err error) {
	held, ended, err := e.s.withdrawals.endWait(ctx, e.entry, refused)
	waited := e.s.view.Queues.WaitedFor(e.entry)
	switch {
	case held != nil:
		return e.begin(ctx, waited)
	case err != nil, !ended:
		return false, err
	case refused != nil:
		e.s.Metrics.Waited(ctx, "refused", true, waited)
	default:
		e.s.Metrics.Waited(ctx, "timeout", true, waited)
	}
	return true, nil
}

// next returns when the entry is due if nothing happens to it. The lease is due after somewhat
// less than a third of the TTL, spread, so that entries that joined together are not always
// renewed together.
func (e *asyncEntry) next() time.Time {
	third := e.entry.TTL / 3
	at := e.refreshed.Add(third*3/4 + e.s.spread(third/8))
	over := time.Now().Add(e.entry.WaitUntil.Sub(e.s.Now()))
	st := e.s.view.Status(e.entry.ID, e.entry.Number)
	if over.After(at) || e.s.outdated() != nil || st.State == view.Held {
		return at
	}
	return later(over, time.Now().Add(recheck))
}

// Before puts the entry that is due first in front, and of equal ones the one that joined
// first.
func (e *asyncEntry) Before(other *asyncEntry) bool {
	if e.at.Equal(other.at) {
		return inOrder(e.entry, other.entry) < 0
	}
	return e.at.Before(other.at)
}

// inOrder compares entries by number, and by id where they were written together.
func inOrder(a, b *lock.Entry) int {
	return cmp.Or(cmp.Compare(a.Number, b.Number), cmp.Compare(a.ID, b.ID))
}
