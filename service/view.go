package service

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/lock/deadlock"
	"github.com/fencepost/fencepost/lock/order"
	"github.com/fencepost/fencepost/store"
)

// view is the replica's picture of the store: the table of all queues, why
// entries ended, and who waits for what. It implements [store.Follower].
//
// Grants wait for its lock. So nothing is logged, measured or asked while it is
// held: what happens is handed on by events.
type view struct {
	events *events
	wall   func() time.Time // the clock by which entries say when they were asked for
	trust  func() error     // why nothing may be granted, or nil; it does not block

	mu          sync.RWMutex
	table       *deadlock.Table
	number      uint64                    // everything up to it is in the table
	told        uint64                    // the number up to which the feed tells at the moment
	begun       bool                      // there was a first Reset
	current     bool                      // the feed is up
	lostAt      time.Time                 // when it was not any more; before the first Reset, when we began to wait for it
	since       map[lock.ID]time.Time     // when an entry was seen to hold
	waited      map[lock.ID]time.Duration // for how long, by those that hold and did not at once
	doubtful    map[lock.ID]struct{}      // those that came to hold while nothing might be granted
	ended       endings
	unexplained map[lock.ID]string // the tenants of those that left while the feed was interrupted; why is yet to be told
	recalled    chan struct{}      // closed when the reasons from before the last list are known; nil if they are
	accounts    accounts
	most        int // places in queues for each tenant
	figures     figures
	rejections  rejections
	orders      *order.Graph
	watchers    map[lock.ID][]chan struct{}
	announced   map[lock.ID]bool // those with a watcher whose turn is soon
	waiters     numberWaiters
}

func newView(e *events, classes order.Classes) *view {
	all := accounts{}
	return &view{
		events: e, wall: time.Now, trust: func() error { return nil }, lostAt: time.Now(), doubtful: map[lock.ID]struct{}{},
		table: deadlock.NewTable(), unexplained: map[lock.ID]string{}, since: map[lock.ID]time.Time{}, waited: map[lock.ID]time.Duration{},
		accounts: all, most: maxPlaces, ended: newEndings(all), figures: newFigures(all), rejections: newRejections(), orders: order.NewGraph(classes),
		watchers: map[lock.ID][]chan struct{}{}, announced: map[lock.ID]bool{},
	}
}

// state is where an entry stands.
type state int

// The states of an entry in the view.
const (
	unseen  state = iota // not in the view, which may be older than the entry
	waiting              // queued
	held                 // a holder
	gone                 // it was there, and is no more
)

// status is what the view knows of an entry.
type status struct {
	state  state
	entry  *lock.Entry   // waiting or held
	waited time.Duration // held: between the request and the grant, 0 if it held at once
	doubt  bool          // held: it came to hold while nothing might be granted
	reason lock.Reason   // gone

	soon    bool  // waiting: its turn was announced
	refused error // waiting: why it cannot stay in the queue, if it cannot; gone: why it could not
}

// status looks up the entry with the id, whose number is known to be number, or
// 0 if it is not known to exist. An idempotency key can have an earlier entry of the
// same id, whose end the view has not seen yet.
func (v *view) status(id lock.ID, number uint64) status {
	v.mu.RLock()
	defer v.mu.RUnlock()
	switch e, holds := v.table.Entry(id); {
	case e == nil, number != 0 && e.Number > number: // it ended, or is on its way
	case e.Number < number:
		return status{}
	case holds:
		_, doubt := v.doubtful[id]
		return status{state: held, entry: e, waited: v.waited[id], doubt: doubt}
	default:
		return status{state: waiting, entry: e, soon: v.announced[id], refused: v.refused(id)}
	}
	if number > v.number {
		return status{} // it may be on its way, even if an earlier one with the id ended
	}
	if why := v.ended.reason(id, time.Now()); why != "" {
		return status{state: gone, reason: why}
	}
	if number != 0 {
		return status{state: gone, reason: lock.Unknown, refused: v.rejections.carriedOut[id]}
	}
	return status{}
}

// reached reports whether everything up to number is in the view.
func (v *view) reached(number uint64) bool {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.number >= number
}

// missing returns an error if this replica never had a view of the store.
func (v *view) missing() error {
	v.mu.RLock()
	defer v.mu.RUnlock()
	if v.begun {
		return nil
	}
	return &lock.Error{
		Code: lock.StoreUnavailable, Detail: "this replica has not seen the store's locks yet",
		RetryAfter: time.Second,
	}
}

// lostFor returns how long the feed has been interrupted, or not come up yet, 0
// if it is there.
func (v *view) lostFor() time.Duration {
	v.mu.RLock()
	defer v.mu.RUnlock()
	if v.current {
		return 0
	}
	return max(time.Since(v.lostAt), 1)
}

// maxAttending is how many requests may wait for one entry at a time. Each renews its
// lease; a client that repeats itself has one that is alive.
const maxAttending = 100

// attend is watch for a request that is going to wait for the entry. It is refused if
// too many do.
func (v *view) attend(id lock.ID) (<-chan struct{}, func(), error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.watchers[id]) >= maxAttending {
		return nil, nil, &lock.Error{
			Code: lock.Overloaded, RetryAfter: time.Second,
			Detail: fmt.Sprintf("%d requests wait for this entry already", maxAttending),
		}
	}
	changed, unwatch := v.addWatcher(id)
	return changed, unwatch, nil
}

// watch returns a channel that is sent to whenever something happens to the
// entry, and a func that ends it.
func (v *view) watch(id lock.ID) (<-chan struct{}, func()) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.addWatcher(id)
}

func (v *view) addWatcher(id lock.ID) (<-chan struct{}, func()) {
	c := make(chan struct{}, 1)
	v.watchers[id] = append(v.watchers[id], c)
	return c, func() { v.unwatch(id, c) }
}

func (v *view) unwatch(id lock.ID, c chan struct{}) {
	v.mu.Lock()
	defer v.mu.Unlock()
	left := v.watchers[id]
	if i := slices.Index(left, c); i >= 0 {
		last := len(left) - 1
		left[i], left[last] = left[last], nil
		left = left[:last]
	}
	if v.watchers[id] = left; len(left) == 0 {
		delete(v.watchers, id)
		delete(v.rejections.carriedOut, id)
		delete(v.announced, id)
	}
}

// Apply implements [store.Follower].
func (v *view) Apply(upTo uint64, changes []store.Change) {
	now := time.Now()
	v.mu.Lock()
	defer v.mu.Unlock()
	v.told = upTo
	for _, c := range changes {
		if c.Joined != nil {
			v.join(c.Joined, now)
		} else {
			v.leave(c.Left, c.Reason, now)
		}
	}
	v.reach(upTo)
}

// Lost implements [store.Follower].
func (v *view) Lost(error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.current {
		v.current, v.lostAt = false, time.Now()
	}
	for id := range v.watchers {
		v.notify(id)
	}
}

// Reset implements [store.Follower]. What is no longer there left without our
// seeing it: [view.Recall] will tell why.
func (v *view) Reset(s store.Snapshot) {
	now := time.Now()
	v.mu.Lock()
	defer v.mu.Unlock()
	v.told = s.Number
	if v.recalled == nil {
		v.recalled = make(chan struct{})
	}
	there := make(map[lock.ID]struct{}, len(s.Entries))
	for _, e := range s.Entries {
		there[e.ID] = struct{}{}
	}
	for e := range v.table.Entries() {
		if _, ok := there[e.ID]; !ok && len(v.unexplained) < maxTenantEnds {
			v.unexplained[e.ID] = e.Tenant
		}
	}
	v.rebuild(s.Entries, now)
	v.begun, v.current = true, true
	v.number = s.Number
	v.reach(s.Number)
	for id := range v.watchers {
		v.notify(id)
	}
}

// Recall implements [store.Follower]. Entries that left while the feed was
// interrupted, and of which no reason is remembered, expired.
func (v *view) Recall(ends []store.Ended, complete bool) {
	now := time.Now()
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, e := range ends {
		v.ended.recall(cmp.Or(e.Tenant, v.unexplained[e.ID]), e.ID, e.Reason, now)
		delete(v.unexplained, e.ID)
	}
	if !complete {
		return
	}
	for id, tenant := range v.unexplained {
		v.ended.recall(tenant, id, lock.Expired, now)
	}
	clear(v.unexplained)
	if v.recalled != nil {
		close(v.recalled)
		v.recalled = nil
	}
}

// awaitReasons waits until the reasons from before the last list are known.
func (v *view) awaitReasons(ctx context.Context) {
	v.mu.RLock()
	recalled := v.recalled
	v.mu.RUnlock()
	if recalled == nil {
		return
	}
	select {
	case <-recalled:
	case <-ctx.Done():
	}
}

func (v *view) rebuild(entries []*lock.Entry, now time.Time) {
	since, waited := v.since, v.waited
	before := v.table
	known := func(id lock.ID) bool { return before.Rejection(id) != nil }
	v.table = deadlock.NewTable()
	v.accounts.empty()
	v.since, v.waited = make(map[lock.ID]time.Time, len(entries)), map[lock.ID]time.Duration{}
	for _, e := range entries {
		v.insert(e)
		v.detect(known, now)
	}
	for e, holds := range v.table.Entries() {
		if !holds {
			continue
		}
		if at, ok := since[e.ID]; ok {
			v.since[e.ID] = at
			if w, ok := waited[e.ID]; ok {
				v.waited[e.ID] = w
			}
		} else if len(since) == 0 {
			v.since[e.ID] = e.EnqueuedAt // a replica that just started: the best guess
		} else {
			v.since[e.ID], v.waited[e.ID] = now, v.waitedFor(e)
		}
	}
	v.doubtNew(since)
}

// doubtNew marks those that hold and are not known to have done so before a list, if
// nothing may be granted, and forgets marks that mean nothing any more.
func (v *view) doubtNew(before map[lock.ID]time.Time) {
	marked := v.doubtful
	v.doubtful = map[lock.ID]struct{}{}
	if v.trust() == nil {
		return
	}
	for id := range v.since {
		_, known := before[id]
		if _, doubt := marked[id]; doubt || !known {
			v.doubtful[id] = struct{}{}
		}
	}
}

// waitedFor returns how long ago the entry was asked for, by the replicas' clocks.
func (v *view) waitedFor(e *lock.Entry) time.Duration { return max(0, v.wall().Sub(e.EnqueuedAt)) }

// insert adds an entry without telling anyone.
func (v *view) insert(e *lock.Entry) (holds, ok bool) {
	holds, err := v.table.Insert(e)
	if err != nil {
		v.happened(event{kind: feedOutOfOrder, entry: e, err: err}, time.Now())
		return false, false
	}
	a := v.accounts.of(e.Tenant)
	a.places += len(e.Claims)
	v.reindex(a, e)
	return holds, true
}

func (v *view) join(e *lock.Entry, now time.Time) {
	if known, _ := v.table.Entry(e.ID); known != nil {
		return
	}
	holds, ok := v.insert(e)
	if !ok {
		return
	}
	if holds {
		v.grant(e, now)
	}
	v.detect(nil, now)
	v.notify(e.ID)
}

func (v *view) leave(id lock.ID, why lock.Reason, now time.Time) {
	v.carriedOut(id, why)
	e, held, granted := v.table.Remove(id)
	if e == nil {
		return
	}
	v.ended.record(e.Tenant, id, why, now)
	ended := event{kind: entryEnded, entry: e, reason: why, held: held}
	if held {
		ended.lasted = v.endHold(e, why, now)
		v.announce(e, ended.lasted)
	}
	if why == lock.Expired {
		v.events.totals.expired.Add(1)
	}
	v.happened(ended, now)
	a := v.accounts.of(e.Tenant)
	a.places -= len(e.Claims)
	v.reindex(a, append(granted, e)...)
	v.accounts.close(a)
	v.notify(id)
	for _, g := range granted {
		v.waited[g.ID] = v.waitedFor(g)
		v.grant(g, now)
		v.notify(g.ID)
	}
	v.detect(nil, now)
}

// announce wakes the one whose turn is soon, where locks change hands so fast that its
// lease is still fresh then.
func (v *view) announce(left *lock.Entry, lasted time.Duration) {
	if lasted > freshEnough/(2*aheadBy) {
		return
	}
	for _, c := range left.Claims {
		q := v.table.Queue(lock.Ref{Tenant: left.Tenant, Name: c.Name})
		if q == nil {
			continue
		}
		if e := q.Waiter(aheadBy); e != nil && v.watchers[e.ID] != nil && v.waitedFor(e) > freshEnough/2 {
			v.announced[e.ID] = true
			v.notify(e.ID)
		}
	}
}

// reindex notes how the locks of entries that changed are used now.
func (v *view) reindex(a *account, entries ...*lock.Entry) {
	for _, e := range entries {
		for _, c := range e.Claims {
			a.note(c.Name, v.table.Queue(lock.Ref{Tenant: e.Tenant, Name: c.Name}))
		}
	}
}

func (v *view) grant(e *lock.Entry, now time.Time) {
	v.since[e.ID] = now
	if v.trust() != nil {
		v.doubtful[e.ID] = struct{}{}
	}
	for _, c := range e.Claims {
		v.figures.granted(lock.Ref{Tenant: e.Tenant, Name: c.Name}, e.Number, v.waitedFor(e))
	}
	if e.Named {
		v.learn(e, now)
	}
}

// endHold returns for how long e held.
func (v *view) endHold(e *lock.Entry, why lock.Reason, now time.Time) time.Duration {
	lasted := now.Sub(v.since[e.ID])
	delete(v.since, e.ID)
	delete(v.waited, e.ID)
	delete(v.doubtful, e.ID)
	if why != lock.Withdrawn {
		for _, c := range e.Claims {
			v.figures.ended(lock.Ref{Tenant: e.Tenant, Name: c.Name}, why, lasted)
		}
	}
	return lasted
}

// happened hands an event on, with what all of them have. It never waits.
func (v *view) happened(what event, now time.Time) {
	what.number, what.at = v.told, now
	v.events.add(what)
}

// notify wakes the requests that wait for the entry. One wake-up that nobody has
// taken yet is as good as two.
func (v *view) notify(id lock.ID) {
	for _, c := range v.watchers[id] {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}

// Counts are the entries of one mode.
type Counts = lock.Counts

func (v *view) count() (byMode map[lock.Mode]Counts, oldest time.Duration) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	if !v.begun {
		return nil, 0
	}
	if first := v.table.Longest(); first != nil {
		oldest = v.waitedFor(first)
	}
	return maps.Clone(v.table.Counts()), oldest
}

// position returns the entry's place among those that wait.
func (v *view) position(id lock.ID) int {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.table.Position(id)
}
