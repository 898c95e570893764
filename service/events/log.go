// Package events keeps what happened to entries for a while, in memory, for those who
// follow it: each at its own pace, from where it left off, at any replica.
package events

import (
	"context"
	"sync"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/quota"
)

// Config of a [Log]. What is 0 takes the default that is named.
type Config struct {
	// Events and Bytes are how much is kept in all, and how much of one tenant: 100 000
	// and 32 MiB, 20 000 and 8 MiB. Where there is no room in all, the tenant with most
	// gives way. As much as in all is kept once more for those who follow all tenants.
	Events, Bytes             int
	TenantEvents, TenantBytes int

	// Subscriptions is how many there may be at once: 2 000. The server's own are bounded by what its tenant may have alone.
	Subscriptions int

	// Limits says how many a tenant may have; nil is [quota.Standard] for each. It does not block.
	Limits func(tenant string) *quota.Limits

	// Tellings is how often a second followers are told something, all of them together: 8 000.
	// With more of them, each is told more at once.
	Tellings int
}

const (
	// maxPending is how much may be added before it is filed. What comes on top of it is
	// missed, and followers of all tenants are told so. One write can grant as many entries as a tenant may have
	// wait for a lock, 100 000 unless more is set: that others miss nothing then, there is room for those.
	maxPending = 1 << 17

	// maxSpare is for how many the room is kept when they are filed.
	maxSpare = 16_384

	// pace is the time between two rounds of filing, and so of waking followers.
	pace = 20 * time.Millisecond

	// keepFor is how long an event is kept at most, by the clock of the replica, about.
	keepFor = time.Hour

	// maxGaps is how many gaps of the feed are remembered.
	maxGaps = 64
)

// Log is the events of a replica, in order. Adding never waits for who reads: it only
// appends to a list, which a goroutine files from time to time.
type Log struct {
	cfg Config

	adding   sync.Mutex
	pending  []step
	dropping bool   // since a step found no room; until the end of a run of changes
	between  bool   // two runs of changes: all that happened up to reached was added
	reached  uint64 // by the feed

	ready   chan struct{} // holds a value if there may be something to file
	closing chan struct{}
	closed  sync.Once
	done    chan struct{}
	begun   chan struct{} // closed once began is true

	mu      sync.RWMutex
	began   bool
	life    int    // counts how often what comes could not be put in order with what was before
	lost    uint64 // what had been reached when numbers went back, until they are beyond that; 0 if they did not
	told    uint64
	gaps    []gap // of the feed, in their order
	start   edge  // nothing from before is kept, or known of gaps
	oldest  edge  // what is kept of tenants without a ring, which is nothing, begins after it
	all     *ring
	tenants map[string]*ring
	kept    shares
	swept   time.Time

	places places
}

// step is something that the feed tells: an event, or that it begins at a number or
// reached it.
type step struct {
	event  lock.Event // if it has a kind
	number uint64
	begins bool
}

// gap is what the feed did not tell: what happened after the one and before the other.
type gap struct {
	after  lock.EventID
	before edge
}

// edge is an event up to which something is not known, and when that happened at the latest, by this replica's clock.
type edge struct {
	lock.EventID
	at time.Time
}

// edgeNow is one before the first event of a number, at this moment.
func edgeNow(number uint64) edge { return edge{lock.Before(number), time.Now()} }

// later returns the later one of two.
func (e edge) later(other edge) edge {
	if e.Compare(other.EventID) < 0 {
		return other
	}
	return e
}

// NewLog returns an empty log. It must be closed.
func NewLog(cfg Config) *Log {
	l := &Log{
		cfg: cfg.withDefaults(), ready: make(chan struct{}, 1), closing: make(chan struct{}), done: make(chan struct{}), begun: make(chan struct{}),
		all: newRing(edge{}), tenants: map[string]*ring{},
	}
	l.places.byTenant = map[string]int{}
	go l.run()
	return l
}

func (c Config) withDefaults() Config {
	for _, d := range []struct {
		value    *int
		standard int
	}{
		{&c.Events, 100_000},
		{&c.Bytes, 32 << 20},
		{&c.TenantEvents, 20_000},
		{&c.TenantBytes, 8 << 20},
		{&c.Subscriptions, 2000},
		{&c.Tellings, 8000},
	} {
		if *d.value == 0 {
			*d.value = d.standard
		}
	}
	if c.Limits == nil {
		standard := quota.Standard()
		c.Limits = func(string) *quota.Limits { return standard }
	}
	return c
}

// Close ends the filing and waits for that. Calling it again is safe.
func (l *Log) Close() {
	l.closed.Do(func() { close(l.closing) })
	<-l.done
}

// Add takes an event. Events come in the order of their ids, until [Log.Begin].
func (l *Log) Add(e lock.Event) {
	l.adding.Lock()
	defer l.adding.Unlock()
	l.between = false
	if l.dropping || len(l.pending) >= maxPending {
		l.dropping = true
		return
	}
	l.pending = append(l.pending, step{event: e})
}

// Await waits until the log has begun, which it does a moment after the feed, or until ctx ends or the log
// is closed.
func (l *Log) Await(ctx context.Context) {
	select {
	case <-l.begun:
	case <-ctx.Done():
	case <-l.closing:
	}
}

// Reached says that all events up to number were added.
func (l *Log) Reached(number uint64) {
	l.adding.Lock()
	l.between, l.reached = true, number
	last := len(l.pending) - 1
	switch {
	case l.dropping: // what was dropped is missed, from the next round of filing on
	case last >= 0 && l.pending[last].isReached():
		l.pending[last].number = number
	default:
		l.pending = append(l.pending, step{number: number})
	}
	l.adding.Unlock()
	l.wake()
}

// Begin says that the feed starts over at number. What happened between what was reached
// and that is missed.
func (l *Log) Begin(number uint64) {
	l.adding.Lock()
	l.pending = append(l.pending, step{number: number, begins: true})
	l.between, l.dropping, l.reached = true, false, number
	l.adding.Unlock()
	l.wake()
}

func (s *step) isReached() bool { return s.event.Kind == "" && !s.begins }

func (l *Log) wake() {
	select {
	case l.ready <- struct{}{}:
	default: // it is awake
	}
}

func (l *Log) run() {
	defer close(l.done)
	var spare []step
	pause := time.NewTimer(0)
	defer pause.Stop()
	for {
		select {
		case <-l.ready:
		case <-l.closing:
			return
		}
		steps := l.take(spare[:0])
		l.file(steps)
		clear(steps) // of entries that are gone
		if spare = steps; cap(spare) > maxSpare {
			spare = nil
		}
		pause.Reset(pace)
		select {
		case <-pause.C:
		case <-l.closing:
			return
		}
	}
}

// take returns what is pending, and leaves an empty list in its place. If something was
// dropped, and all of a run of changes is there or was dropped, it begins anew behind that.
func (l *Log) take(spare []step) []step {
	l.adding.Lock()
	defer l.adding.Unlock()
	steps := l.pending
	l.pending = spare
	if l.dropping && l.between {
		steps, l.dropping = append(steps, step{number: l.reached, begins: true}), false
	}
	return steps
}

// file puts what was added where followers find it, and wakes those whom it concerns.
func (l *Log) file(steps []step) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range steps {
		switch s := &steps[i]; {
		case s.event.Kind != "":
			if l.began && s.event.ID.Number <= l.told { // a feed that goes back, and does not say so
				l.begin(s.event.ID.Number - 1)
			}
			l.keep(s.event)
		case s.begins:
			l.begin(s.number)
		default:
			l.told = max(l.told, s.number)
		}
	}
	l.sweep(time.Now())
	l.all.tell()
	for _, r := range l.kept.grown {
		r.tell()
	}
	clear(l.kept.grown)
	l.kept.grown = l.kept.grown[:0]
}

// begin goes on behind a gap. One in which no write was is none.
func (l *Log) begin(number uint64) {
	was := l.told
	l.told = number
	switch {
	case !l.began:
		l.began = true
		close(l.begun)
		l.forget(edgeNow(number + 1))
	case number < was:
		l.lost = max(l.lost, was)
		l.beginAnew(number)
	case l.lost > 0 && number >= l.lost: // the store was given a fence floor
		l.lost = 0
		l.beginAnew(number)
	case number > was:
		l.gaps = append(l.gaps, gap{lock.Before(was + 1), edgeNow(number + 1)})
		if len(l.gaps) > maxGaps {
			l.start = l.gaps[0].before
			l.gaps = l.gaps[1:]
		}
	}
	l.all.changed = true
	for _, r := range l.tenants {
		l.kept.note(r)
	}
}

// beginAnew goes on with what cannot be put in order with what is kept: numbers went back, and so ids
// name other events than those that were told before, or that is over.
func (l *Log) beginAnew(number uint64) {
	l.life++
	l.forget(edgeNow(number + 1))
}

// forget drops everything that happened before.
func (l *Log) forget(before edge) {
	l.gaps, l.start, l.oldest = nil, before, before
	l.all.drop(l.all.len())
	l.all.floor = before // as in the others: those have ids that mean nothing any more
	for tenant, r := range l.tenants {
		l.kept.drop(r, r.len())
		r.floor = before
		l.release(tenant, r)
	}
}

// keep files one event.
func (l *Log) keep(e lock.Event) {
	r := newRecord(e)
	l.all.add(r)
	l.all.changed = true
	for l.all.len() > l.cfg.Events || l.all.bytes > l.cfg.Bytes {
		l.all.drop(1)
	}
	own := l.of(e.Entry.Tenant)
	l.kept.add(own, r)
	for own.len() > l.cfg.TenantEvents || own.bytes > l.cfg.TenantBytes {
		l.kept.drop(own, 1)
	}
	for l.kept.events > l.cfg.Events || l.kept.bytes > l.cfg.Bytes {
		most := l.kept.heap.First()
		tenant := most.first().Entry.Tenant
		l.kept.drop(most, 1)
		l.release(tenant, most)
	}
}

// sweep forgets what is too old, now and then.
func (l *Log) sweep(now time.Time) {
	if now.Sub(l.swept) < keepFor/60 {
		return
	}
	l.swept = now
	old := now.Add(-keepFor)
	l.all.drop(l.all.before(old))
	for tenant, r := range l.tenants {
		l.kept.drop(r, r.before(old))
		l.release(tenant, r)
	}
}

// of returns a tenant's ring, and makes it if need be.
func (l *Log) of(tenant string) *ring {
	r := l.tenants[tenant]
	if r == nil {
		r = newRing(l.oldest)
		l.tenants[tenant] = r
	}
	return r
}

// release forgets a tenant's ring if there is nothing in it and nobody follows it. What it
// has lost counts then for all that have none.
func (l *Log) release(tenant string, r *ring) {
	if r.len() > 0 || r.followers > 0 {
		return
	}
	delete(l.tenants, tenant)
	l.oldest = l.oldest.later(r.floor)
}
