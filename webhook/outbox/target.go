package outbox

import (
	"encoding/json"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/fencepost/fencepost/auth"
	"github.com/fencepost/fencepost/event"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/webhook"
	"github.com/fencepost/fencepost/webhook/subscription"
)

// Callbacks is the id under which the deliveries of a tenant's callbacks are listed.
const Callbacks = subscription.Callbacks

// target gets deliveries: a subscription, or the callbacks of a tenant's entries.
type target struct {
	tenant string
	id     string                     // of the subscription; [Callbacks]
	sub    *subscription.Subscription // nil of callbacks
	filter event.Filter

	now     atomic.Pointer[subscription.Subscription] // sub while it is sent something
	pending map[string]*delivery                      // by the ids of their records
	lanes   map[string]*lane                          // by URL; "" of a subscription
	tails   map[string]*delivery                      // the last first attempt about a lock
	flushed time.Time                                 // when what is missed was last written

	behind // of callbacks

	state
	stateCell cell
	written   time.Time // of the state
	dirty     bool
	gone      bool // the subscription was deleted
}

// lane has the attempts for one receiver: of a subscription, or of the callbacks with one URL.
type lane struct {
	pending int // deliveries
	running int // attempts
	ready   []*delivery
	quiet   time.Time // until when the receiver wants no attempts
}

// state is the health of a target and its last deliveries. It is written every few seconds, so
// after a kill it is that old.
type state struct {
	From    uint64         `json:"from"`    // of the subscription: a fence floor raises that later
	Taken   uint64         `json:"taken"`   // the subscription's version that it caught up to
	Enabled int            `json:"enabled"` // of the subscription that Health is about
	Health  webhook.Health `json:"health"`
	Recent  []*Delivery    `json:"recent,omitempty"` // the newest last
	Behind  string         `json:"behind,omitempty"` // the event after which callbacks may not be made
	stamp
}

// readState reads as much of a state as can be read.
func readState(r store.Record) (s state, err error) {
	err = json.Unmarshal(r.Value, &s)
	s.Recent = slices.DeleteFunc(s.Recent, func(row *Delivery) bool { return row == nil })
	return s, err
}

func (s *state) encode(by stamp) []byte {
	s.stamp = by
	value := store.Encode(s)
	for len(value) > store.MaxRecordValue && len(s.Recent) > 0 {
		s.Recent = s.Recent[(len(s.Recent)+1)/2:]
		value = store.Encode(s)
	}
	return value
}

// remember notes a delivery that has ended.
func (t *target) remember(d *delivery) {
	t.Recent = slices.DeleteFunc(t.Recent, func(r *Delivery) bool { return r.ID == d.ID })
	row := d.row(d.progress.State)
	t.Recent = append(t.Recent, &row)
	t.Recent = t.Recent[max(0, len(t.Recent)-maxRecent):]
	t.dirty = true
}

// allow makes the subscription known to attempts, or that none is made.
func (t *target) allow() {
	if t.now.Store(nil); t.sends() {
		t.now.Store(t.sub)
	}
}

// sends reports whether the target is sent anything at the moment.
func (t *target) sends() bool {
	return t.id == Callbacks || t.sub != nil && !t.sub.Paused && !t.disabled()
}

// disabled reports whether the receiver was disabled, and the tenant has not enabled it since.
func (t *target) disabled() bool {
	return t.Health.Disabled != webhook.NotDisabled && t.sub.Enabled == t.Enabled
}

// gets reports whether the target gets what happened at an event: also what happened before it was
// paused and is read later.
func (t *target) gets(id lock.EventID) bool {
	before := t.sub.Paused && !t.disabled() && id.Number < t.sub.Version
	return id.Number > t.From && (t.sends() || before)
}

// isOther reports whether an attempt was made to another receiver than the target has now.
func (t *target) isOther(then *subscription.Subscription) bool {
	return then != nil && t.sub != nil && (then.URL != t.sub.URL || then.Enabled != t.sub.Enabled)
}

// laneOf returns the lane of a URL. Beyond maxOfTarget lanes those without deliveries are dropped,
// although their receivers may want no attempts.
func (t *target) laneOf(url string) *lane {
	l := t.lanes[url]
	if l == nil {
		if len(t.lanes) >= maxOfTarget {
			maps.DeleteFunc(t.lanes, func(_ string, l *lane) bool { return l.pending == 0 })
		}
		l = &lane{}
		t.lanes[url] = l
	}
	return l
}

// queue puts a first attempt behind those about the same locks.
func (t *target) queue(d *delivery, names []string) {
	d.first, d.names = true, names
	for _, name := range names {
		if before := t.tails[name]; before != nil && before != d {
			before.blocks = append(before.blocks, d)
			d.waitsFor++
		}
		t.tails[name] = d
	}
}

// pass returns those that waited for this first attempt and may be made now.
func (t *target) pass(d *delivery) (free []*delivery) {
	if !d.first {
		return nil
	}
	d.first = false
	for _, name := range d.names {
		if t.tails[name] == d {
			delete(t.tails, name)
		}
	}
	for _, next := range d.blocks {
		if next.waitsFor--; next.waitsFor == 0 {
			free = append(free, next)
		}
	}
	d.blocks, d.names = nil, nil
	return free
}

// filterOf returns the filter of a subscription. A pattern that cannot be read selects nothing.
func filterOf(s *subscription.Subscription) event.Filter {
	f := event.Filter{Types: s.Events, Locks: patterns([]string{s.Locks})}
	if s.Within != nil {
		f.Within = patterns(s.Within)
	}
	return f
}

func patterns(texts []string) []auth.Pattern {
	all := []auth.Pattern{}
	for _, text := range texts {
		if p, err := auth.ParsePattern(text); err == nil {
			all = append(all, p)
		}
	}
	return all
}

// targets are the targets of a shard, with their pending deliveries.
type targets struct {
	all      map[string]*target   // by tenant and id
	byTenant map[string][]*target // subscriptions
	load     map[string]load      // by tenant; "" is all
	waiting  int                  // callbacks that are still to take up
}

// load is how much is pending.
type load struct{ count, bytes int }

func newTargets() targets {
	return targets{
		all: map[string]*target{}, byTenant: map[string][]*target{}, load: map[string]load{},
	}
}

func targetName(tenant, id string) string { return tenant + "/" + id }

// of returns a tenant's target, and makes it if need be.
func (s *targets) of(tenant, id string) *target {
	name := targetName(tenant, id)
	t := s.all[name]
	if t == nil {
		t = &target{
			tenant: tenant, id: id, pending: map[string]*delivery{}, lanes: map[string]*lane{},
			tails: map[string]*delivery{}, behind: behind{waits: map[entry]bool{}},
		}
		s.all[name] = t
	}
	return t
}

// admit takes a delivery up, unless there are too many.
func (s *targets) admit(d *delivery) bool {
	ok := s.fits(d.target, d.size)
	if ok {
		s.add(d)
	}
	return ok
}

// fits reports whether there is space for another delivery of a size.
func (s *targets) fits(t *target, size int) bool {
	of, in := s.load[t.tenant], s.load[""]
	return len(t.pending) < maxOfTarget && share*of.count < maxInAll-in.count &&
		share*of.bytes+size <= bytesInAll-in.bytes
}

func (s *targets) add(d *delivery) {
	url := ""
	if d.Call != nil {
		url = d.Call.URL
	}
	d.lane = d.target.laneOf(url)
	d.target.pending[d.key.ID] = d
	s.count(d, 1)
}

// drop forgets a delivery that was added.
func (s *targets) drop(d *delivery) {
	t := d.target
	if t.pending[d.key.ID] != d {
		return
	}
	delete(t.pending, d.key.ID)
	s.count(d, -1)
	if d.Call != nil && d.lane.pending == 0 && !d.lane.quiet.After(time.Now()) {
		delete(t.lanes, d.Call.URL)
	}
}

func (s *targets) count(d *delivery, n int) {
	d.lane.pending += n
	for _, name := range []string{d.target.tenant, ""} {
		l := s.load[name]
		l.count += n
		l.bytes += n * d.size
		if s.load[name] = l; l == (load{}) {
			delete(s.load, name)
		}
	}
}
