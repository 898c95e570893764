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

// MinAsyncTTL is the shortest lease of an async entry. Replicas know within 5 s that one
// of them has stopped, and leases are renewed after a third: so those who take over its
// entries find them alive.
const MinAsyncTTL = 15 * time.Second

// asyncAtOnce is how many async entries are attended at the same time. Each takes one
// call of the store, so that 64 come to thousands of renewals a second.
const asyncAtOnce = 64

// asyncOfOne is how many of one tenant's are: however slow the store is, and however many
// a tenant has, a grant of another's need not wait for one of them.
const asyncOfOne = 48

// renewTimeout is for how long a renewal that nobody waits for is tried.
const renewTimeout = 2 * time.Second

// asyncKeeper keeps the async entries that are this replica's share of all that wait: it
// renews their leases, ends waits that are over, takes back what cannot stay, and starts
// a full lease when an entry comes to hold. From then on its client renews it.
//
// Every replica knows all async entries from its view, and which replicas run, so that
// all agree whose each of them is without talking. Two replicas that do not agree for a
// moment both keep an entry, or none does for as long as it takes them to agree; what
// they do to it is safe to be done twice.
type asyncKeeper struct {
	s       *Service
	sharing replicas.Sharing
	// all that wait, and of those that hold the ones that were seen to wait
	kept     map[lock.ID]*asyncEntry
	due      heap.Heap[*asyncEntry]  // those of this replica that are neither late nor attended
	tenants  map[string]*asyncTenant // of those that are either
	turns    []*asyncTenant          // who may have another attended, in the order of their turns
	attended int
	done     chan *asyncEntry
	given    given
	unseen   map[lock.ID]struct{} // those that are kept and that the view did not show yet
	workers  sync.WaitGroup
}

// asyncEntry is what the keeper knows of an async entry. While that is attended, the worker
// who does it may write at, over and the fields of keeper, and nobody else.
type asyncEntry struct {
	keeper
	heap.Place
	mine     bool
	left     time.Time // when it was this replica's last; zero if it is now, or never was
	granted  time.Time // when it was seen to hold; zero if it waits, or must not be told so
	begun    bool      // it holds, and its lease began: its client goes on from there
	attended bool
	changed  bool      // while it was attended
	ended    bool      // it is kept no more
	over     bool      // as of when it was attended: there is nothing left to do for it
	at       time.Time // when it is to be attended
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

// news is what has happened since the keeper looked last.
type news struct {
	attended []*asyncEntry
	given    bool
	seen     bool // by the view
	sharing  bool // changed
}

// take takes up the news. Their order is always the same, so that what a replica does is
// a function of what happened and not of the scheduler.
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

// await waits for news, or until something is due.
func (a *asyncKeeper) await(ctx context.Context) (n news) {
	due, stop := a.whenDue()
	defer stop()
	select {
	case <-ctx.Done():
	case <-a.s.view.AsyncChanges():
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
		case <-a.s.view.AsyncChanges():
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

// whenDue returns a channel that is sent to when the next entry is due, nil if none is or
// no more can be attended.
func (a *asyncKeeper) whenDue() (due <-chan time.Time, stop func() bool) {
	if a.due.Len() == 0 || a.attended == asyncAtOnce {
		return nil, func() bool { return true }
	}
	timer := time.NewTimer(time.Until(a.due.First().at))
	return timer.C, timer.Stop
}

// look brings what is kept up to date with the view.
func (a *asyncKeeper) look() {
	changed, listed := a.s.view.TakeAsync()
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
		case st.Refused != nil, listed:
			a.dueAt(e, time.Now())
		case !e.Queued() && !e.attended:
			a.dueAt(e, e.next())
		}
	}
}

// known returns what is kept of the entry that was known as e, nil if it is not kept. What
// held from the start, or before this replica did, is left to its client.
func (a *asyncKeeper) known(e *asyncEntry, st view.Status, listed bool) *asyncEntry {
	begun := false
	if e != nil {
		inACopy := e.begun && st.State == view.Waiting // a backup has taken the place of the store
		if st.Entry != nil && st.Entry.Number == e.entry.Number && !inACopy {
			return e
		}
		a.drop(e)
		// It may be the same by another number, which a fence floor gave it.
		begun = e.begun && st.State == view.Held && st.Entry.EnqueuedAt.Equal(e.entry.EnqueuedAt)
	}
	if st.State != view.Waiting && (st.State != view.Held || !st.Queued) {
		return nil
	}
	again := a.add(st.Entry, listed)
	again.begun = begun
	return again
}

// add takes an entry that waits. Of one that was listed nobody knows when its lease began;
// that of another no earlier than it was asked for, which is long ago if the feed is late.
func (a *asyncKeeper) add(entry *lock.Entry, listed bool) *asyncEntry {
	e := &asyncEntry{keeper: keeper{s: a.s, entry: entry}, mine: a.sharing.Does(string(entry.ID))}
	if !listed {
		e.refreshed = time.Now().Add(-a.s.view.WaitedFor(entry))
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

// share finds out again which entries are this replica's.
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

// dueAt has the entry attended at an instant, or as soon as it is not any more.
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

// settle takes an entry back that was attended.
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

// attend does what the entry needs now. over says that it needs nothing more; otherwise it
// is to be attended again at the instant.
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

// serve does one thing for the entry: what is most urgent.
func (e *asyncEntry) serve(ctx context.Context) (over bool, err error) {
	st := e.s.view.Status(e.entry.ID, e.entry.Number)
	decides := (st.State == view.Waiting || st.State == view.Unseen) && e.s.outdated() == nil
	switch {
	case st.State == view.Gone:
		return true, nil
	case st.State == view.Held && e.s.mayBeTold(st):
		return e.begin(ctx, st.Waited)
	case decides && st.Refused != nil:
		return e.reject(ctx, st.Refused)
	case decides && !e.s.Now().Before(e.entry.WaitUntil):
		return e.timeOut(ctx)
	}
	return false, e.renew(ctx)
}

func (e *asyncEntry) renew(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, renewTimeout)
	defer cancel()
	return e.refresh(ctx)
}

// reject takes back an entry that cannot stay in its queues. The reason is remembered, as
// nobody may be connected to be told.
func (e *asyncEntry) reject(ctx context.Context, why error) (over bool, err error) {
	while, ok := e.s.view.Grounds(e.entry.ID)
	if !ok {
		return false, nil // it can stay now
	}
	if err := e.s.Store.Remove(ctx, e.entry, endOf(e.entry, why), while...); err != nil {
		return false, err
	}
	if errors.Is(why, lock.Deadlock) {
		e.s.Metrics.Deadlocked(ctx)
	}
	e.s.Metrics.Waited(ctx, "refused", true, e.s.view.WaitedFor(e.entry))
	return true, nil
}

// timeOut ends a wait that is over, unless the entry has come to hold.
func (e *asyncEntry) timeOut(ctx context.Context) (over bool, err error) {
	holds, err := e.s.giveWay(ctx, e.entry, lock.WaitTimeout)
	switch {
	case err != nil:
		return false, err
	case holds:
		return e.begin(ctx, e.s.view.WaitedFor(e.entry))
	}
	e.s.Metrics.Waited(ctx, "timeout", true, e.s.view.WaitedFor(e.entry))
	return true, nil
}

// next is when the entry is due if nothing happens to it: its lease after somewhat less
// than a third, so that entries that came together are not renewed together for ever.
func (e *asyncEntry) next() time.Time {
	third := e.entry.TTL / 3
	at := e.refreshed.Add(third*3/4 + e.s.spread(third/8))
	over := time.Now().Add(e.entry.WaitUntil.Sub(e.s.Now()))
	if over.After(at) || e.s.outdated() != nil || e.s.view.Status(
		e.entry.ID, e.entry.Number,
	).State == view.Held {
		return at
	}
	return later(over, time.Now().Add(recheck))
}

// endOf is the reason with which an entry is taken back that cannot stay in its queues. One
// whose request is answered with the error needs none.
func endOf(e *lock.Entry, why error) lock.Reason {
	switch {
	case !e.Async:
		return lock.Withdrawn
	case errors.Is(why, lock.Deadlock):
		return lock.Deadlocked
	}
	return lock.Mismatched
}

// Before has the one attended first that is due first; of those that are due together, the
// one that came first.
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
