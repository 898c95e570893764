package storetest

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
)

// feed is a follower that folds its changes into a table, and reports every
// call that a feed must not make.
type feed struct {
	t    testing.TB
	busy atomic.Bool // a call is running
	over atomic.Bool // the trial is, so that nothing can be reported any more

	mu       sync.Mutex
	told     chan struct{} // closed and replaced by every call
	table    *lock.Table
	upTo     uint64
	current  bool // a Reset came, and no Lost since
	goesBack bool // the store loses its past
	resets   int
	losses   int
	joined   map[lock.ID]int // how often
	left     []departure
	all      []change // since the first Reset
	gaps     int      // Resets at which it was not before
	changes  []change // since the last Reset, which was at
	since    uint64
	newest   uint64        // of the store then, where that was in the past
	first    []*lock.Entry // of the last Reset
	ended    []store.Ended // recalled since the last Reset, each once
	endedIDs map[lock.ID]bool
	recalled bool // all of them
}

// departure is an entry that went, and when the feed said so.
type departure struct {
	ID     lock.ID
	Reason lock.Reason
	number uint64
	note   *lock.Note
	at     time.Time
}

// change is what a feed told, without what replicas may see in different ways.
type change struct {
	Number   uint64
	Joined   bool
	Narrowed bool
	ID       lock.ID
	Reason   lock.Reason
}

// follow starts a feed that ends with the trial.
func (t *trial) follow(s store.Store) *feed {
	f, stop := t.followUntil(s)
	t.Cleanup(stop)
	return f
}

// followUntil starts a feed and returns when it has its first view. stop ends it
// and checks that Watch returns.
func (t *trial) followUntil(s store.Store) (f *feed, stop func()) {
	t.Helper()
	f = &feed{
		t: t, told: make(chan struct{}), table: lock.NewTable(), joined: map[lock.ID]int{},
		endedIDs: map[lock.ID]bool{},
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.Watch(ctx, f)
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		select {
		case <-done:
		case <-time.After(4 * t.CallLimit): // it may first have much to tell
			f.over.Store(true)
			t.Errorf("Watch has not returned %v after its context ended", 4*t.CallLimit)
		}
	})
	if !f.await(4*t.CallLimit, func() bool { return f.current && f.recalled }) {
		stop()
		t.Fatalf("no view within %v", 4*t.CallLimit)
	}
	return f, stop
}

// await returns true when cond is true after a call, or false after the time.
// cond may read the feed's fields.
func (f *feed) await(within time.Duration, cond func() bool) bool {
	end := time.NewTimer(within)
	defer end.Stop()
	for {
		f.mu.Lock()
		ok, told := cond(), f.told
		f.mu.Unlock()
		if ok {
			return true
		}
		select {
		case <-told:
		case <-end.C:
			return false
		}
	}
}

func (f *feed) errorf(format string, args ...any) {
	f.t.Helper()
	if !f.over.Load() {
		f.t.Errorf(format, args...)
	}
}

// enter reports calls that overlap.
func (f *feed) enter() (leave func()) {
	if !f.busy.CompareAndSwap(false, true) {
		f.errorf("the feed called its follower from two goroutines at once")
	}
	f.mu.Lock()
	return func() {
		close(f.told)
		f.told = make(chan struct{})
		f.mu.Unlock()
		f.busy.Store(false)
	}
}

// Reset implements store.Watcher.
func (f *feed) Reset(s store.Snapshot) {
	defer f.enter()()
	if s.Number < f.upTo && !f.goesBack {
		f.errorf("Reset at %d, the feed was at %d already", s.Number, f.upTo)
	}
	if f.resets > 0 && s.Number != f.upTo {
		f.gaps++
	}
	f.table, f.upTo, f.current, f.recalled = lock.NewTable(), s.Number, true, false
	f.ended, f.endedIDs = nil, map[lock.ID]bool{}
	f.changes, f.since, f.first = nil, s.Number, slices.Clone(s.Entries)
	f.newest = s.Newest
	f.resets++
	if !slices.IsSortedFunc(
		s.Entries, func(a, b *lock.Entry) int { return cmp.Compare(a.Number, b.Number) },
	) {
		f.errorf("the entries of a Reset are not in the order of their numbers")
	}
	for _, e := range s.Entries {
		if e.Number > s.Number {
			f.errorf("Reset at %d has %s at %d", s.Number, e.ID, e.Number)
		}
		f.insert(e)
	}
}

// Recall implements store.Watcher. The feed reports a withdrawal only so that it is not taken for
// an expiry; the store does not keep it.
func (f *feed) Recall(ends []store.Ended, complete bool) {
	defer f.enter()()
	if !f.current {
		f.errorf("Recall before a Reset")
	}
	for _, e := range ends {
		if !f.endedIDs[e.ID] && e.Reason != lock.Withdrawn {
			f.ended, f.endedIDs[e.ID] = append(f.ended, e), true
		}
	}
	f.recalled = f.recalled || complete
}

// Apply implements store.Watcher.
func (f *feed) Apply(upTo uint64, changes []store.Change) {
	now := time.Now()
	defer f.enter()()
	if !f.current {
		f.errorf("Apply before a Reset")
	}
	if upTo < f.upTo || upTo == f.upTo && len(changes) > 0 {
		f.errorf("Apply up to %d with %d changes, the feed was at %d already", upTo, len(changes), f.upTo)
	}
	last := f.upTo + 1
	for _, c := range changes {
		if c.Number < last || c.Number > upTo {
			f.errorf(
				"Apply from %d up to %d told of a change at %d, the one before was at %d or later", f.upTo,
				upTo, c.Number, last,
			)
		}
		last = c.Number
		f.note(c, now)
	}
	f.upTo = upTo
}

func (f *feed) note(c store.Change, now time.Time) {
	switch {
	case c.Narrowed != nil:
		f.add(change{Number: c.Number, Narrowed: true, ID: c.Narrowed.ID})
		f.narrow(c)
		return
	case c.Joined == nil:
		f.add(change{Number: c.Number, ID: c.Left, Reason: c.Reason})
		f.remove(c, now)
		return
	}
	if c.Joined.Number != c.Number {
		f.errorf("%s joined at %d, its number is %d", c.Joined.ID, c.Number, c.Joined.Number)
	}
	f.add(change{Number: c.Number, Joined: true, ID: c.Joined.ID})
	f.joined[c.Joined.ID]++
	f.insert(c.Joined)
}

func (f *feed) add(c change) {
	f.changes, f.all = append(f.changes, c), append(f.all, c)
}

// Lost implements store.Watcher.
func (f *feed) Lost(err error) {
	defer f.enter()()
	if err == nil {
		f.errorf("Lost without an error")
	}
	f.current = false
	f.losses++
}

func (f *feed) insert(e *lock.Entry) {
	if known, _ := f.table.Entry(e.ID); known != nil {
		f.errorf("the feed told of %s twice", e.ID)
	}
	if _, err := f.table.Insert(e); err != nil {
		f.errorf("the feed is out of order: %v", err)
	}
}

// narrow replaces an entry of the table, in its place.
func (f *feed) narrow(c store.Change) {
	known, _ := f.table.Entry(c.Narrowed.ID)
	if known == nil || !known.Choosing() {
		f.errorf("the feed told that %+v was narrowed, which was %+v", c.Narrowed, known)
		return
	}
	if diff := diff(known.Narrowed(c.Narrowed.Claims), c.Narrowed); diff != "" ||
		c.Left != "" || c.Joined != nil || c.Narrowed.Choosing() {
		f.errorf("the feed told of a narrowing otherwise (-want +got):\n%s", diff)
	}
	f.table.Narrow(c.Narrowed)
}

func (f *feed) remove(c store.Change, now time.Time) {
	if e, _, _ := f.table.Remove(c.Left); e == nil {
		f.errorf("the feed told that %s left, which was not there", c.Left)
	}
	f.left = append(f.left, departure{c.Left, c.Reason, c.Number, c.Note, now})
}

// view is what a feed knows at one moment.
type view struct {
	upTo    uint64
	current bool
	resets  int
	losses  int
	joined  map[lock.ID]int
	left    []departure
	all     []change // of all its life
	gaps    int
	changes []change // after the number since
	since   uint64
	ended   []store.Ended
	queues  map[lock.Ref][]place
}

// place is an entry in a queue.
type place struct {
	Entry *lock.Entry
	Holds bool
}

func (f *feed) state() view {
	f.mu.Lock()
	defer f.mu.Unlock()
	v := view{
		upTo: f.upTo, current: f.current, resets: f.resets, losses: f.losses,
		joined: maps.Clone(f.joined), left: slices.Clone(f.left), all: slices.Clone(f.all), gaps: f.gaps,
		changes: slices.Clone(f.changes), since: f.since, ended: slices.Clone(f.ended),
		queues: map[lock.Ref][]place{},
	}
	for r, q := range f.table.Queues() {
		for e, holds := range q.Entries() {
			v.queues[r] = append(v.queues[r], place{e, holds})
		}
	}
	return v
}

// changesAfter returns the changes of later writes.
func (v view) changesAfter(number uint64) []change {
	i := slices.IndexFunc(v.changes, func(c change) bool { return c.Number > number })
	if i < 0 {
		return nil
	}
	return v.changes[i:]
}

// entries returns a queue without its holders.
func (v view) entries(r lock.Ref) []*lock.Entry {
	var all []*lock.Entry
	for _, p := range v.queues[r] {
		all = append(all, p.Entry)
	}
	return all
}

// whole reports whether the feed told everything as changes. One that started
// over, because another case compacted the store that they share, told some of it
// as a new view.
func (v view) whole() bool { return v.resets == 1 }

// departures returns how often the feed told that the entry left, and the last
// time that it did.
func (v view) departures(id lock.ID) (n int, last departure) {
	for _, d := range v.left {
		if d.ID == id {
			n, last = n+1, d
		}
	}
	return n, last
}

// holds waits until the entry holds.
func (f *feed) holds(within time.Duration, id lock.ID) bool {
	return f.await(within, func() bool {
		_, holds := f.table.Entry(id)
		return holds
	})
}

// went waits until the entry has left.
func (f *feed) went(within time.Duration, id lock.ID) bool {
	return f.await(within, func() bool {
		return slices.ContainsFunc(f.left, func(d departure) bool { return d.ID == id })
	})
}

// has reports whether the entry is there. It is for conditions of await.
func (f *feed) has(id lock.ID) bool {
	e, _ := f.table.Entry(id)
	return e != nil
}

// settle writes a last entry and waits until every feed has reached it, so that
// all changes before it must have arrived too.
func (t *trial) settle(feeds ...*feed) {
	t.Helper()
	last := t.enqueue(t.A, draft("settle", "last"))
	for _, f := range feeds {
		if !f.await(t.Late, func() bool { return f.current && f.upTo >= last.Number }) {
			t.Fatalf("the feed has not reached the last write within %v", t.Late)
		}
	}
}
