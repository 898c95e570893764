// Package events keeps recent events in memory for followers. Each follower reads at its own
// speed, and can resume at any replica.
package events

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/quota"
)

// Config configures a [Log]. A zero takes the default in its comment.
type Config struct {
	// Above Events and Bytes, 100 000 and 32 MiB, the log drops the oldest events of the tenant with
	// most. It keeps as many again for followers of all tenants.
	Events, Bytes             int
	TenantEvents, TenantBytes int // of one tenant: 20 000 and 8 MiB

	Subscriptions int // at once: 2 000. The server's own are bounded only by the limits of its tenant
	Tellings      int // how often a second all followers together receive events: 8 000

	// Limits returns a tenant's limits; nil is [quota.Standard] for each. It does not block.
	Limits func(tenant string) *quota.Limits
}

const (
	// maxPending bounds the added events that are not filed yet. Followers of all tenants miss
	// events above it. One write can grant all 100 000 entries that wait for a lock.
	maxPending = 1 << 17
	maxSpare   = 1 << 13 // steps whose space the log keeps

	pace    = 20 * time.Millisecond // between two rounds of filing, which wake the followers
	keepFor = time.Hour             // how long an event is kept at most, roughly
	maxGaps = 64                    // kept gaps of the feed
)

// Log holds the events of a replica, in order. Adding never waits for followers: it appends to a
// list, which a goroutine files.
type Log struct {
	cfg Config

	adding   sync.Mutex
	pending  []step
	spare    []step // empty
	dropping bool   // pending was full, until the end of a run of changes
	between  bool   // between two runs of changes: everything up to reached was added
	reached  uint64 // by the feed

	ready   chan struct{} // holds a value if there may be something to file
	closing chan struct{}
	closed  sync.Once
	done    chan struct{}
	begun   chan struct{} // closed once began is true

	mu      sync.RWMutex
	began   bool
	life    int    // how often numbers went back; an id belongs to one life
	lost    uint64 // the number reached before they went back, until they are beyond it; or 0
	filed   uint64 // everything up to it is in the rings
	gaps    []gap  // of the feed, in order
	start   edge   // nothing from before is kept, nor any gap
	oldest  edge   // start for tenants without a ring, which have no events
	all     *ring
	tenants map[string]*ring
	kept    shares
	swept   time.Time

	places places
}

// step is one message of the feed: an event, or that the feed begins at or reached a number.
type step struct {
	event  *Record // or nil
	number uint64
	begins bool
}

// gap is a part that the feed did not deliver: everything after one event and before another.
type gap struct {
	after  lock.EventID
	before edge
}

// edge is an event up to which something is unknown, and the latest time of that event.
type edge struct {
	lock.EventID
	at time.Time
}

// edgeNow returns the edge before the first event of a number, at this moment.
func edgeNow(number uint64) edge { return edge{lock.Before(number), time.Now()} }

// later returns the later of two edges.
func (e edge) later(other edge) edge {
	if e.Compare(other.EventID) < 0 {
		return other
	}
	return e
}

// NewLog returns an empty log. It must be closed.
func NewLog(cfg Config) *Log {
	l := &Log{
		cfg: cfg.withDefaults(), ready: make(chan struct{}, 1),
		closing: make(chan struct{}), done: make(chan struct{}), begun: make(chan struct{}),
		all: newRing(edge{}), tenants: map[string]*ring{},
	}
	l.places.byTenant = map[string]int{}
	go l.run()
	return l
}

func (c Config) withDefaults() Config {
	c.Events, c.Bytes = cmp.Or(c.Events, 100_000), cmp.Or(c.Bytes, 32<<20)
	c.TenantEvents, c.TenantBytes = cmp.Or(c.TenantEvents, 20_000), cmp.Or(c.TenantBytes, 8<<20)
	c.Subscriptions, c.Tellings = cmp.Or(c.Subscriptions, 2000), cmp.Or(c.Tellings, 8000)
	if c.Limits == nil {
		standard := quota.Standard()
		c.Limits = func(string) *quota.Limits { return standard }
	}
	return c
}

// Close ends the filing and waits for it. Calling it again is safe.
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
	l.pending = append(l.pending, step{event: newRecord(e)})
}

// Await waits until the log has begun, ctx ends, or the log is closed.
func (l *Log) Await(ctx context.Context) {
	select {
	case <-l.begun:
	case <-ctx.Done():
	case <-l.closing:
	}
}

// Reached marks that all events up to number were added.
func (l *Log) Reached(number uint64) {
	l.adding.Lock()
	l.between, l.reached = true, number
	last := len(l.pending) - 1
	switch {
	case l.dropping: // followers miss the dropped events, from the next round of filing on
	case last >= 0 && l.pending[last].isReached():
		l.pending[last].number = number
	default:
		l.pending = append(l.pending, step{number: number})
	}
	l.adding.Unlock()
	l.wake()
}

// Begin marks that the feed restarts at number. Events between the last reached number and this
// one are missed.
func (l *Log) Begin(number uint64) {
	l.adding.Lock()
	l.pending = append(l.pending, step{number: number, begins: true})
	l.between, l.dropping, l.reached = true, false, number
	l.adding.Unlock()
	l.wake()
}

func (s *step) isReached() bool { return s.event == nil && !s.begins }

func (l *Log) wake() {
	select {
	case l.ready <- struct{}{}:
	default: // it is awake
	}
}

func (l *Log) run() {
	defer close(l.done)
	for {
		select {
		case <-l.ready:
			steps := l.take()
			l.file(steps)
			l.reuse(steps)
		case <-l.closing:
			return
		}
		select {
		case <-time.After(pace):
		case <-l.closing:
			return
		}
	}
}

// take returns what is pending. If events were dropped, and the run of changes is over, the log
// begins again after them.
func (l *Log) take() []step {
	l.adding.Lock()
	defer l.adding.Unlock()
	steps := l.pending
	l.pending, l.spare = l.spare, nil
	if l.dropping && l.between {
		steps, l.dropping = append(steps, step{number: l.reached, begins: true}), false
	}
	return steps
}

// reuse keeps the space of filed steps, unless a burst made it large.
func (l *Log) reuse(steps []step) {
	clear(steps)
	l.adding.Lock()
	defer l.adding.Unlock()
	if cap(steps) <= maxSpare {
		l.spare = steps[:0]
	}
}

// file moves the added events to the rings and wakes the followers.
func (l *Log) file(steps []step) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range steps {
		switch s := &steps[i]; {
		case s.event != nil:
			if l.began && s.event.ID.Number <= l.filed { // a feed that goes back without saying so
				l.begin(s.event.ID.Number - 1)
			}
			l.keep(s.event)
		case s.begins:
			l.begin(s.number)
		default:
			l.filed = max(l.filed, s.number)
		}
	}
	l.sweep(time.Now())
	l.all.wake()
	for _, r := range l.kept.grown {
		r.wake()
	}
	l.kept.grown = nil
}

// begin continues after a gap. A gap without a write is none.
func (l *Log) begin(number uint64) {
	was := l.filed
	l.filed = number
	switch {
	case !l.began:
		l.began = true
		close(l.begun)
		l.forget(edgeNow(number + 1))
	case number < was:
		l.lost = max(l.lost, was)
		l.life++
		l.forget(edgeNow(number + 1))
	case l.lost > 0 && number >= l.lost: // the store was given a fence floor
		l.lost = 0
		l.life++
		l.forget(edgeNow(number + 1))
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

// forget drops everything before an edge.
func (l *Log) forget(before edge) {
	l.gaps, l.start, l.oldest = nil, before, before
	l.all.drop(l.all.len())
	l.all.floor = before // as in the other rings: older ids have no meaning now
	for tenant, r := range l.tenants {
		l.kept.drop(r, r.len())
		r.floor = before
		l.release(tenant, r)
	}
}

// keep files one event.
func (l *Log) keep(r *Record) {
	l.all.add(r)
	l.all.changed = true
	for l.all.len() > l.cfg.Events || l.all.bytes > l.cfg.Bytes {
		l.all.drop(1)
	}
	own := l.of(r.Entry.Tenant)
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

// sweep drops old events from time to time.
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

// of returns a tenant's ring, and makes it if needed.
func (l *Log) of(tenant string) *ring {
	if l.tenants[tenant] == nil {
		l.tenants[tenant] = newRing(l.oldest)
	}
	return l.tenants[tenant]
}

// release drops an empty ring without followers. Its losses then count for all tenants without a
// ring.
func (l *Log) release(tenant string, r *ring) {
	if r.len() > 0 || r.followers > 0 {
		return
	}
	delete(l.tenants, tenant)
	l.oldest = l.oldest.later(r.floor)
}
