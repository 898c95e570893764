package view

import (
	"cmp"
	"sync"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/quota"
	"github.com/fencepost/fencepost/service/figures"
	"github.com/fencepost/fencepost/store"
)

// View is the replica's picture of the store: the table of all queues, why entries ended, and
// which requests wait. It implements [store.Watcher]. Each part owns its state and answers about
// it. One lock guards all of them, so that answers are consistent at one number.
//
// Grants need that lock. While the view holds it, it does no I/O and writes no log line or
// metric. It publishes what happens as [Events].
type View struct {
	Config
	mu sync.RWMutex

	Progress   Progress
	Queues     Queues
	Lists      Lists
	Quotas     Quotas
	Reasons    Reasons
	Rejections Rejections
	Waits      Waits

	writing writing          // the write whose changes are being applied
	leaving map[lock.ID]bool // the entries that leave in it, if it has several changes
	passing map[lock.ID]bool // of these, the ones that held between two changes
	asks    asks
	totals  Totals
}

// Config configures a [View].
type Config struct {
	Events Events
	Wall   func() time.Time // the clock of the times at which clients requested entries

	// Refusal returns why the server may grant nothing, or nil. It does not block.
	Refusal func() error

	// Limits returns a tenant's limits; nil is [quota.Standard] for each. It does not block.
	Limits func(tenant string) *quota.Limits

	// Fresh is the age up to which a refresh of a lease suffices for a grant. Where locks change
	// hands so fast that it covers several grants, the view announces grants to the next waiters.
	Fresh time.Duration

	// Ends bounds the kept reasons of ends, at up to 48 bytes each: 4 million if it is 0. A tenant
	// has a quarter of them at most.
	Ends int

	Figures *figures.Figures // nil makes new ones
}

// aheadBy is the position at which a waiting request on a busy lock learns that its grant is
// near. It then restarts its lease early: on ZooKeeper that is a write, as slow as a hand-over.
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
	v := &View{Config: cfg, passing: map[lock.ID]bool{}}
	now, shared := time.Now(), base{&v.Config, &v.mu}
	v.Progress = Progress{base: shared, lostAt: now, lateAt: now}
	v.Queues = Queues{
		base: shared, progress: &v.Progress, doubtful: map[lock.ID]struct{}{}, accounts: accounts{},
	}
	v.Queues.empty()
	v.Lists = Lists{base: shared, queues: &v.Queues}
	v.Quotas = newQuotas(shared, &v.Queues)
	v.Reasons = newReasons(shared, v.Queues.accounts)
	v.Rejections = Rejections{base: shared, queues: &v.Queues}
	v.Waits = newWaits(shared)
	v.asks = asks{}
	return v
}

// Apply implements [store.Watcher].
func (v *View) Apply(upTo uint64, changes []store.Change) {
	now := time.Now()
	v.mu.Lock()
	defer v.mu.Unlock()
	v.Progress.applying = upTo
	for len(changes) > 0 {
		n := 1
		for n < len(changes) && changes[n].Number == changes[0].Number {
			n++
		}
		v.write(changes[:n], now)
		changes = changes[n:]
	}
	if v.Progress.reach(upTo); v.Progress.number >= v.Progress.goal {
		v.Progress.whole = now
	}
	v.Events.Reached(upTo)
}

// Lost implements [store.Watcher].
func (v *View) Lost(error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.Progress.current {
		v.Progress.current, v.Progress.lostAt = false, time.Now()
		if v.Progress.number >= v.Progress.goal {
			v.Progress.lateAt = v.Progress.lostAt
		}
	}
	if v.Progress.gap.IsZero() {
		v.Progress.gap = v.Progress.whole // a paused replica hears of a gap after the gap is over
	}
	for id := range v.Waits.watched {
		v.Waits.notify(id)
	}
}

// Reset implements [store.Watcher]. Entries that are missing from s left unseen: [View.Recall]
// brings the reasons.
func (v *View) Reset(s store.Snapshot) {
	now := time.Now()
	v.mu.Lock()
	defer v.mu.Unlock()
	v.Progress.applying = s.Number
	// if numbers went back, a new write may have the number of an earlier one
	v.writing = writing{}
	v.Events.Begin(s.Number)
	v.Reasons.ended.listed()
	if v.Reasons.recalled == nil {
		v.Reasons.recalled = make(chan struct{})
	}
	there := make(map[lock.ID]struct{}, len(s.Entries))
	for _, e := range s.Entries {
		there[e.ID] = struct{}{}
	}
	for e := range v.Queues.table.Entries() {
		if _, ok := there[e.ID]; !ok && len(v.Reasons.unexplained) < v.Reasons.ended.ofTenant {
			v.Reasons.unexplained[e.ID] = e.Tenant
		}
	}
	v.rebuild(s.Entries, now)
	v.Quotas.relist()
	v.relistAsks(s.Entries)
	v.Progress.begun, v.Progress.current, v.Progress.goal = true, true, s.Newest
	v.Progress.number = s.Number
	if v.Progress.reach(s.Number); v.Progress.number >= v.Progress.goal {
		v.Progress.whole = now
	}
	for id := range v.Waits.watched {
		v.Waits.notify(id)
	}
}

// Recall implements [store.Watcher]. If an entry left while the feed was down and the store has
// no reason, it expired. After a longer interruption the store may have dropped its reason.
func (v *View) Recall(ends []store.Ended, complete bool) {
	now := time.Now()
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, e := range ends {
		v.Reasons.ended.recall(cmp.Or(e.Tenant, v.Reasons.unexplained[e.ID]), e.ID, e.Reason, now)
		if v.Reasons.ended.reason(e.ID, now) == e.Reason {
			v.Reasons.ended.explain(e.ID, e.Note)
		}
		delete(v.Reasons.unexplained, e.ID)
	}
	if !complete {
		return
	}
	why := lock.Expired
	if !v.Progress.gap.IsZero() && store.Age(v.Progress.gap) > store.LongestGap {
		why = lock.Unknown
	}
	for id, tenant := range v.Reasons.unexplained {
		v.Reasons.ended.guess(tenant, id, why, now)
	}
	clear(v.Reasons.unexplained)
	v.Progress.gap = time.Time{}
	if v.Reasons.recalled != nil {
		close(v.Reasons.recalled)
		v.Reasons.recalled = nil
	}
}

func (v *View) rebuild(entries []*lock.Entry, now time.Time) {
	since, waited := v.Queues.since, v.Queues.waited
	before := v.Queues.table
	known := func(id lock.ID) bool { return before.Rejection(id) != nil }
	v.Queues.empty()
	v.Queues.accounts.empty()
	for _, e := range entries {
		v.insert(e, now)
		v.detect(known, now)
	}
	v.Figures.Relist(v.Queues.accounts.eachLevel, v.Queues.inQueue, now)
	v.Waits.async.relist(v.Queues.table.Entries())
	for e, holds := range v.Queues.table.Entries() {
		if !holds {
			continue
		}
		if at, ok := since[e.ID]; ok {
			v.Queues.since[e.ID] = at
			if w, ok := waited[e.ID]; ok {
				v.Queues.waited[e.ID] = w
			}
		} else if !v.Progress.begun {
			// for a replica that just started, the best guess, unless that clock was ahead
			v.Queues.since[e.ID] = e.EnqueuedAt
			if e.EnqueuedAt.After(now) {
				v.Queues.since[e.ID] = now
			}
		} else {
			v.Queues.since[e.ID], v.Queues.waited[e.ID] = now, v.Queues.WaitedFor(e)
		}
	}
	v.doubtNew(since)
}

// doubtNew marks the holders that are not known to have held before a list, if the server refuses
// to grant. It also drops obsolete marks.
func (v *View) doubtNew(before map[lock.ID]time.Time) {
	marked := v.Queues.doubtful
	v.Queues.doubtful = map[lock.ID]struct{}{}
	if v.Refusal() == nil {
		return
	}
	for id := range v.Queues.since {
		_, known := before[id]
		if _, doubt := marked[id]; doubt || !known {
			v.Queues.doubtful[id] = struct{}{}
		}
	}
}
