package outbox

import (
	"crypto/sha256"
	"encoding/base32"
	"sync/atomic"
	"time"

	"github.com/fencepost/fencepost/api/event"
	"github.com/fencepost/fencepost/auth"
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
	secret Subscriptions

	now     atomic.Pointer[subscription.Subscription] // sub while it is sent something, for attempts
	pending map[string]*delivery                      // by the ids of their records
	cells   map[string]*cell                          // of records that are there, or being deleted
	tails   map[string]*delivery                      // the last first attempt about a lock
	bytes   int
	quiet   quiet

	lost    *lost     // what is missed, until that is written
	flushed time.Time // when it was last

	state
	stateCell cell
	written   time.Time // of the state
	dirty     bool
	gone      bool // the subscription was deleted
}

// address is where an attempt goes.
type address struct {
	sub     *subscription.Subscription // nil of a callback
	url     string
	secrets func(now time.Time) []webhook.Secret
}

// address returns where an attempt goes now; ok is false if none is made. It is for any goroutine.
func (t *target) address(d *delivery) (to address, ok bool) {
	if d.call != nil {
		return address{nil, d.call.URL, func(now time.Time) []webhook.Secret {
			return t.secret.CallbackSecrets(t.tenant, now)
		}}, true
	}
	sub := t.now.Load()
	if sub == nil {
		return address{}, false
	}
	return address{sub, sub.URL, func(now time.Time) []webhook.Secret { return t.secret.Secrets(sub, now) }}, true
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

// disabled reports whether the receiver was disabled, and nobody has enabled it since.
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

// poolName names what shares some workers: a subscription, or the callbacks with one URL.
func (t *target) poolName(d *delivery) string {
	if d.call == nil {
		return t.id
	}
	sum := sha256.Sum256([]byte(d.call.URL))
	return Callbacks + base32.StdEncoding.EncodeToString(sum[:10])
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

// cell returns the cell of a record.
func (t *target) cell(key store.RecordKey) *cell {
	c := t.cells[key.ID]
	if c == nil {
		c = &cell{key: key}
		t.cells[key.ID] = c
	}
	return c
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

// targets are those of a shard, with what they are owed.
type targets struct {
	secret   Subscriptions
	all      map[string]*target   // by tenant and id
	byTenant map[string][]*target // subscriptions
	load     map[string]load      // by tenant; "" is all
}

// load is how much is pending.
type load struct{ count, bytes int }

func targetName(tenant, id string) string { return tenant + "/" + id }

// of returns a tenant's target, and makes it if need be.
func (s *targets) of(tenant, id string) *target {
	name := targetName(tenant, id)
	t := s.all[name]
	if t == nil {
		t = &target{
			tenant: tenant, id: id, secret: s.secret,
			pending: map[string]*delivery{}, cells: map[string]*cell{}, tails: map[string]*delivery{},
		}
		s.all[name] = t
	}
	return t
}

// admit takes a delivery up, unless there are too many.
func (s *targets) admit(d *delivery) bool {
	t, of, in := d.target, s.load[d.target.tenant], s.load[""]
	if len(t.pending) >= maxOfTarget || t.bytes+d.size > bytesTarget || of.count >= maxOfTenant ||
		share*of.count >= maxInAll-in.count || share*of.bytes+d.size > bytesInAll-in.bytes {
		return false
	}
	s.add(d)
	return true
}

func (s *targets) add(d *delivery) {
	d.target.pending[d.key.ID] = d
	s.count(d.target, 1, d.size)
}

// drop forgets a delivery that was added.
func (s *targets) drop(d *delivery) {
	if d.target.pending[d.key.ID] == d {
		delete(d.target.pending, d.key.ID)
		s.count(d.target, -1, -d.size)
	}
}

func (s *targets) count(t *target, n, bytes int) {
	t.bytes += bytes
	for _, name := range []string{t.tenant, ""} {
		l := s.load[name]
		l.count += n
		l.bytes += bytes
		if s.load[name] = l; l == (load{}) {
			delete(s.load, name)
		}
	}
}
