package view

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/google/btree"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/lock/deadlock"
	"github.com/fencepost/fencepost/lock/heap"
	"github.com/fencepost/fencepost/lock/order"
	"github.com/fencepost/fencepost/quota"
	"github.com/fencepost/fencepost/service/figures"
	"github.com/fencepost/fencepost/store"
)

// View is the replica's picture of the store: the table of all queues, why
// entries ended, and who waits for what. It implements [store.Watcher].
//
// Grants wait for its lock. So nothing is logged, measured or asked while it is
// held: what happens is handed on as [Events].
type View struct {
	Config

	lists       sync.Mutex // lists take turns at mu: each grant would have to wait for all of them at once
	mu          sync.RWMutex
	table       *deadlock.Table
	number      uint64                    // everything up to it is in the table
	told        uint64                    // the number up to which the feed tells at the moment
	writing     writing                   // whose changes it tells
	leaving     map[lock.ID]bool          // the entries that leave in it, if it has several changes
	passing     map[lock.ID]bool          // of those, the ones that held between two changes
	begun       bool                      // there was a first Reset
	current     bool                      // the feed is up
	goal        uint64                    // it tells of the past up to this number
	whole       time.Time                 // when it was last known to have told everything
	gap         time.Time                 // since when it may not have; zero if nothing is unexplained
	lostAt      time.Time                 // when it was not any more; before the first Reset, when we began to wait for it
	lateAt      time.Time                 // the same, the first time since it had told everything
	since       map[lock.ID]time.Time     // when an entry was seen to hold
	waited      map[lock.ID]time.Duration // for how long, by those that hold and did not at once
	doubtful    map[lock.ID]struct{}      // those that came to hold while nothing might be granted
	ended       endings
	unexplained map[lock.ID]string // the tenants of those that left while the feed was interrupted; why is yet to be told
	recalled    chan struct{}      // closed when the reasons from before the last list are known; nil if they are
	accounts    accounts
	tenants     *btree.BTreeG[string] // those with entries
	depths      depths
	rejections  rejections
	orders      *order.Graph
	watchers    map[lock.ID][]chan struct{}
	announced   map[lock.ID]bool        // those with a watcher whose turn is soon
	freed       map[lock.ID]*lock.Entry // those with a watcher that came to hold: by whose end
	async       asyncIndex
	asks        asks
	asking      asking
	pending     pending
	waiters     heap.Heap[*numberWaiter]
	totals      Totals
}

// Config of a [View].
type Config struct {
	Events Events
	Wall   func() time.Time // the clock by which entries say when they were asked for

	// Refusal says why nothing may be granted, or nil. It does not block.
	Refusal func() error

	Classes order.Classes // by which the orders of locks are compared

	// Limits says how much a tenant may use; nil is [quota.Standard] for each. It does not block.
	Limits func(tenant string) *quota.Limits

	// Fresh is how old the last refresh of a lease may be for a grant to need none.
	// Where locks change hands so fast that it covers several turns, those whose turn is
	// soon are told.
	Fresh time.Duration

	// Ends is how many reasons of ends are kept, at up to 48 bytes each: 4 million if it is 0.
	// Of one tenant it is a quarter at most.
	Ends int

	Figures *figures.Figures // nil are new ones
}

// aheadBy is the position at which a request on a busy lock is told that its turn is soon,
// so that it starts its lease anew before: on ZooKeeper that is a write, which takes as
// long as a hand-over.
const aheadBy = 8

// New returns an empty view, which waits for its first [View.Reset].
func New(cfg Config) *View {
	if cfg.Limits == nil {
		standard := quota.Standard()
		cfg.Limits = func(string) *quota.Limits { return standard }
	}
	if cfg.Figures == nil {
		cfg.Figures = figures.New(0)
	}
	all := accounts{}
	now := time.Now()
	return &View{
		Config: cfg, lostAt: now, lateAt: now, doubtful: map[lock.ID]struct{}{},
		table: deadlock.NewTable(), unexplained: map[lock.ID]string{}, since: map[lock.ID]time.Time{}, waited: map[lock.ID]time.Duration{},
		accounts: all, tenants: newTenants(), depths: newDepths(), ended: newEndings(all, cmp.Or(cfg.Ends, maxEnds)), rejections: newRejections(), orders: order.NewGraph(cfg.Classes),
		passing: map[lock.ID]bool{}, watchers: map[lock.ID][]chan struct{}{}, announced: map[lock.ID]bool{}, freed: map[lock.ID]*lock.Entry{}, async: newAsyncIndex(), asks: newAsks(), asking: newAsking(), pending: newPending(),
	}
}

// Apply implements [store.Watcher].
func (v *View) Apply(upTo uint64, changes []store.Change) {
	now := time.Now()
	v.mu.Lock()
	defer v.mu.Unlock()
	v.told = upTo
	for len(changes) > 0 {
		n := 1
		for n < len(changes) && changes[n].Number == changes[0].Number {
			n++
		}
		v.write(changes[:n], now)
		changes = changes[n:]
	}
	if v.reach(upTo); v.number >= v.goal {
		v.whole = now
	}
	v.Events.Reached(upTo)
}

// write applies the changes of one write. They happened at once: an entry that leaves does not
// hold because another one leaves too, and a deadlock is one of what is there after all of them.
func (v *View) write(changes []store.Change, now time.Time) {
	v.writing.at(changes[0].Number)
	if len(changes) > 1 {
		v.leaving = map[lock.ID]bool{}
		for _, c := range changes {
			v.leaving[c.Left] = c.Left != ""
		}
		defer func() { v.leaving = nil }()
	}
	for _, c := range changes {
		switch {
		case c.Joined != nil:
			v.join(c.Joined, now)
		case c.Notice != nil:
			v.noticed(c.Notice, now)
		default:
			v.leave(c, now)
		}
	}
	v.detect(nil, now)
}

// stays returns which of the entries that came to hold do not leave in the same write.
func (v *View) stays(granted []*lock.Entry) []*lock.Entry {
	return slices.DeleteFunc(granted, func(e *lock.Entry) bool {
		if v.leaving[e.ID] {
			v.passing[e.ID] = true
		}
		return v.leaving[e.ID]
	})
}

// Lost implements [store.Watcher].
func (v *View) Lost(error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.current {
		v.current, v.lostAt = false, time.Now()
		if v.number >= v.goal {
			v.lateAt = v.lostAt
		}
	}
	if v.gap.IsZero() {
		v.gap = v.whole // a replica that stood still hears of a gap when it is over
	}
	for id := range v.watchers {
		v.notify(id)
	}
}

// Reset implements [store.Watcher]. What is no longer there left without our
// seeing it: [View.Recall] will tell why.
func (v *View) Reset(s store.Snapshot) {
	now := time.Now()
	v.mu.Lock()
	defer v.mu.Unlock()
	v.told = s.Number
	v.writing = writing{} // if numbers went back, a write that comes may have the number of an earlier one
	v.Events.Begin(s.Number)
	v.ended.listed()
	if v.recalled == nil {
		v.recalled = make(chan struct{})
	}
	there := make(map[lock.ID]struct{}, len(s.Entries))
	for _, e := range s.Entries {
		there[e.ID] = struct{}{}
	}
	for e := range v.table.Entries() {
		if _, ok := there[e.ID]; !ok && len(v.unexplained) < v.ended.ofTenant {
			v.unexplained[e.ID] = e.Tenant
		}
	}
	v.rebuild(s.Entries, now)
	v.relistAsks(s.Notices)
	v.begun, v.current, v.goal = true, true, s.Newest
	v.number = s.Number
	if v.reach(s.Number); v.number >= v.goal {
		v.whole = now
	}
	for id := range v.watchers {
		v.notify(id)
	}
}

// Recall implements [store.Watcher]. Entries that left while the feed was
// interrupted, and of which no reason is remembered, expired, unless that was for so long
// that the reasons may be forgotten.
func (v *View) Recall(ends []store.Ended, complete bool) {
	now := time.Now()
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, e := range ends {
		v.ended.recall(cmp.Or(e.Tenant, v.unexplained[e.ID]), e.ID, e.Reason, now)
		if v.ended.reason(e.ID, now) == e.Reason {
			v.ended.explain(e.ID, e.Note)
		}
		delete(v.unexplained, e.ID)
	}
	if !complete {
		return
	}
	why := lock.Expired
	if !v.gap.IsZero() && store.Age(v.gap) > store.LongestGap {
		why = lock.Unknown
	}
	for id, tenant := range v.unexplained {
		v.ended.guess(tenant, id, why, now)
	}
	clear(v.unexplained)
	v.gap = time.Time{}
	if v.recalled != nil {
		close(v.recalled)
		v.recalled = nil
	}
}

// HadAll says that the view has had everything that there was at the time. While nothing
// happens it does not know that by itself.
func (v *View) HadAll(at time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if at.After(v.whole) {
		v.whole = at
	}
}

func (v *View) rebuild(entries []*lock.Entry, now time.Time) {
	since, waited := v.since, v.waited
	before := v.table
	known := func(id lock.ID) bool { return before.Rejection(id) != nil }
	v.table = deadlock.NewTable()
	v.accounts.empty()
	v.tenants = newTenants()
	v.depths = newDepths()
	v.since, v.waited = make(map[lock.ID]time.Time, len(entries)), map[lock.ID]time.Duration{}
	for _, e := range entries {
		v.insert(e, now)
		v.detect(known, now)
	}
	v.Figures.Relist(v.accounts.eachLevel, v.inQueue, now)
	v.async.relist(v.table.Entries())
	for e, holds := range v.table.Entries() {
		if !holds {
			continue
		}
		if at, ok := since[e.ID]; ok {
			v.since[e.ID] = at
			if w, ok := waited[e.ID]; ok {
				v.waited[e.ID] = w
			}
		} else if !v.begun {
			v.since[e.ID] = e.EnqueuedAt // a replica that just started: the best guess, unless that clock was ahead
			if e.EnqueuedAt.After(now) {
				v.since[e.ID] = now
			}
		} else {
			v.since[e.ID], v.waited[e.ID] = now, v.WaitedFor(e)
		}
	}
	v.doubtNew(since)
}

// doubtNew marks those that hold and are not known to have done so before a list, if
// nothing may be granted, and forgets marks that mean nothing any more.
func (v *View) doubtNew(before map[lock.ID]time.Time) {
	marked := v.doubtful
	v.doubtful = map[lock.ID]struct{}{}
	if v.Refusal() == nil {
		return
	}
	for id := range v.since {
		_, known := before[id]
		if _, doubt := marked[id]; doubt || !known {
			v.doubtful[id] = struct{}{}
		}
	}
}

// WaitedFor returns how long ago the entry was asked for, by the replicas' clocks: never less than nothing, whatever the
// clock showed of who wrote it.
func (v *View) WaitedFor(e *lock.Entry) time.Duration { return max(0, v.Wall().Sub(e.EnqueuedAt)) }

// insert adds an entry without telling anyone.
func (v *View) insert(e *lock.Entry, now time.Time) (holds, ok bool) {
	holds, err := v.table.Insert(e)
	if err != nil {
		v.found(Finding{Kind: FeedOutOfOrder, Entry: e, Err: err}, time.Now())
		return false, false
	}
	v.arrived(e.ID)
	a := v.accounts.of(e.Tenant)
	if a.places == 0 {
		v.tenants.ReplaceOrInsert(e.Tenant)
	}
	a.add(tallyOf(e, holds))
	v.reindex(a, now, e)
	v.async.add(e)
	return holds, true
}

func (v *View) join(e *lock.Entry, now time.Time) {
	if known, _ := v.table.Entry(e.ID); known != nil {
		return
	}
	holds, ok := v.insert(e, now)
	if !ok {
		return
	}
	v.level(v.accounts.of(e.Tenant), now)
	if what, ok := lock.EventOfJoin(e, holds); ok {
		v.happened(what, now)
	}
	if holds {
		v.asking.drop(e.ID)
		v.grant(e, now)
	} else if ask, ok := e.Asks(); ok {
		v.asked(e, ask, now)
	}
	v.notify(e.ID)
}

func (v *View) leave(c store.Change, now time.Time) {
	id, why := c.Left, c.Reason
	v.carriedOut(id, why)
	rejected := v.rejectedFor(id)
	e, held, granted := v.table.Remove(id)
	if e == nil {
		return
	}
	v.ended.record(e.Tenant, id, why, now)
	v.ended.explain(id, c.Note)
	held, granted = held && !v.passing[id], v.stays(granted)
	delete(v.passing, id)
	ended, told := lock.EventOfEnd(e, held, why, rejected)
	ended.Note = c.Note
	if held {
		ended.Lasted = v.endHold(e, why, now)
		v.announce(e, ended.Lasted)
	}
	if why == lock.Expired {
		v.totals.Expired++
		if !held {
			v.totals.WaitersExpired++
		}
	}
	if told {
		v.happened(ended, now)
	}
	v.forgetAsk(e)
	a := v.accounts.of(e.Tenant)
	if a.take(tallyOf(e, held)); a.places == 0 {
		v.tenants.Delete(e.Tenant)
	}
	a.granted(granted)
	v.level(a, now)
	v.reindex(a, now, append(granted, e)...)
	v.accounts.close(a)
	v.notify(id)
	v.async.forget(e)
	v.tellGrants(granted, e, now)
}

// tellGrants makes known who came to hold, because an entry is gone.
func (v *View) tellGrants(all []*lock.Entry, gone *lock.Entry, now time.Time) {
	for _, g := range all {
		v.waited[g.ID] = v.WaitedFor(g)
		granted := lock.EventOfGrant(g)
		granted.Lasted = v.waited[g.ID]
		v.forgetAsk(g)
		v.happened(granted, now)
		v.grant(g, now)
		v.free(g.ID, gone)
		v.notify(g.ID)
	}
}

// announce wakes the one whose turn is soon, where locks change hands so fast that its
// lease is still fresh then.
func (v *View) announce(left *lock.Entry, lasted time.Duration) {
	if lasted > v.Fresh/(2*aheadBy) {
		return
	}
	for _, c := range left.Claims {
		q := v.table.Queue(lock.Ref{Tenant: left.Tenant, Name: c.Name})
		if q == nil {
			continue
		}
		if e := q.Waiter(aheadBy); e != nil && v.watchers[e.ID] != nil && v.WaitedFor(e) > v.Fresh/2 {
			v.announced[e.ID] = true
			v.notify(e.ID)
		}
	}
}

// reindex notes how the locks of entries that changed are used now.
func (v *View) reindex(a *account, now time.Time, entries ...*lock.Entry) {
	for _, e := range entries {
		for _, c := range e.Claims {
			r := lock.Ref{Tenant: e.Tenant, Name: c.Name}
			holding, waiting := v.inQueue(r)
			if waits := a.note(c.Name, holding, waiting); !waits {
				continue
			}
			v.Figures.Waiting(r, waiting, now)
			v.depths.set(r, waiting)
		}
	}
}

func (v *View) grant(e *lock.Entry, now time.Time) {
	v.since[e.ID] = now
	if v.Refusal() != nil {
		v.doubtful[e.ID] = struct{}{}
	}
	waited := v.WaitedFor(e)
	v.Figures.Granted(e, waited, now)
	if e.Named {
		v.learn(e, now)
	}
}

// endHold returns for how long e held.
func (v *View) endHold(e *lock.Entry, why lock.Reason, now time.Time) time.Duration {
	lasted := now.Sub(v.since[e.ID])
	delete(v.since, e.ID)
	delete(v.waited, e.ID)
	delete(v.doubtful, e.ID)
	v.Figures.Ended(e, why, lasted, now, func(r lock.Ref) bool {
		holding, _ := v.inQueue(r)
		return holding == 0
	})
	return lasted
}

// level notes how many entries of an account wait and hold.
func (v *View) level(a *account, now time.Time) {
	v.Figures.Level(a.tenant, a.waiting, a.holding, now)
}

// inQueue returns how many entries hold a lock and wait for it.
func (v *View) inQueue(r lock.Ref) (holding, waiting int) {
	if q := v.table.Queue(r); q != nil {
		return q.Holders(), q.Len() - q.Holders()
	}
	return 0, 0
}
