package outbox

import (
	"cmp"
	"crypto/sha256"
	"encoding/base32"
	"strings"
	"sync/atomic"
	"time"

	"github.com/fencepost/fencepost/api/event"
	"github.com/fencepost/fencepost/auth"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/webhook"
	"github.com/fencepost/fencepost/webhook/subscription"
)

// target is who is told: a subscription, or those whom a tenant's entries name as their
// callbacks.
type target struct {
	tenant string
	id     string                     // of the subscription; [Callbacks]
	sub    *subscription.Subscription // nil for callbacks
	filter event.Filter
	dear   int // for how long a name is held against its patterns at most
	secret Subscriptions

	now atomic.Pointer[subscription.Subscription] // sub while something may be sent to it, for attempts that have waited

	pending   map[string]*delivery // by the ids of their records
	leaving   map[string]*delivery // those whose records are being deleted
	tails     map[string]*delivery // the last that is to have its first attempt, by lock
	calls     map[string]int       // how many are pending of callbacks, by URL
	receivers map[string]*receiver // by what the pool calls them
	bytes     int
	lost      *lost
	flushed   time.Time // when it was last told that it has lost something
	gone      bool
	warned    time.Time // when the log was told that there is no room
	silenced  int       // how often it was not, since

	state
}

// Callbacks is the id under which the deliveries of a tenant's callbacks are listed.
const Callbacks = subscription.Callbacks

// address is where an attempt goes.
type address struct {
	sub     *subscription.Subscription // nil of a callback
	url     string
	secrets func(now time.Time) []webhook.Secret
}

// address is where one goes that is made now; ok is false if none is to be made. It is for any
// goroutine.
func (t *target) address(d *delivery) (to address, ok bool) {
	if d.grant != nil {
		return address{nil, d.grant.URL, func(now time.Time) []webhook.Secret { return t.secret.CallbackSecrets(t.tenant, now) }}, true
	}
	sub := t.now.Load()
	if sub == nil {
		return address{}, false
	}
	return address{sub, sub.URL, func(now time.Time) []webhook.Secret { return t.secret.Secrets(sub, now) }}, true
}

// allow has attempts made that wait for their turn, or not, as the subscription is now.
func (t *target) allow() {
	if t.sends() {
		t.now.Store(t.sub)
	} else {
		t.now.Store(nil)
	}
}

// pausedAfter reports whether something happened before the target was paused: that waits
// for it like what is owed.
func (t *target) pausedAfter(id lock.EventID) bool {
	return t.sub.Paused && !t.disabled() && id.Number < t.sub.Version
}

// poolName is what shares a few workers: a subscription, or the callbacks with one URL.
func (t *target) poolName(d *delivery) string {
	if d.grant == nil {
		return t.id
	}
	sum := sha256.Sum256([]byte(d.grant.URL))
	return Callbacks + base32.StdEncoding.EncodeToString(sum[:10])
}

// sends reports whether the target is sent anything at the moment.
func (t *target) sends() bool {
	return t.id == Callbacks || t.sub != nil && !t.sub.Paused && !t.disabled()
}

// targets are those of a shard.
type targets struct {
	all       map[string]*target   // by tenant and id
	byTenant  map[string][]*target // subscriptions
	callbacks map[string]*target   // by tenant
	states    map[string]state     // of those that are not known yet
	load      map[string]load      // by tenant; "" is all
}

// load is how much is pending.
type load struct{ count, bytes int }

func targetName(tenant, id string) string { return tenant + "/" + id }

// target returns a tenant's target, and makes it if need be.
func (w *owner) target(tenant, id string) *target {
	name := targetName(tenant, id)
	t := w.targets.all[name]
	if t == nil {
		t = &target{
			tenant: tenant, id: id, secret: w.Subscriptions,
			pending: map[string]*delivery{}, leaving: map[string]*delivery{}, tails: map[string]*delivery{}, calls: map[string]int{}, receivers: map[string]*receiver{}, state: w.targets.states[name],
		}
		delete(w.targets.states, name)
		w.targets.all[name] = t
		if id == Callbacks {
			w.targets.callbacks[tenant] = t
		}
	}
	return t
}

// take takes up which subscriptions there are.
func (w *owner) take(all []*subscription.Subscription, changed <-chan struct{}) {
	w.told = changed
	byTenant := map[string][]*target{}
	for _, sub := range all {
		if shardOf(sub.ID) != w.name {
			continue
		}
		t := w.target(sub.Tenant, sub.ID)
		byTenant[sub.Tenant] = append(byTenant[sub.Tenant], t)
		if t.sub == sub {
			continue
		}
		w.goOn(t, true) // by what it was until now
		was := t.wish()
		if t.isOther(sub) {
			clear(t.receivers)
		}
		t.sub, t.filter = sub, filterOf(sub)
		t.dear = t.filter.Steps()
		t.From = cmp.Or(t.From, sub.From)
		t.allow()
		if t.Taken < sub.Version {
			w.catchUp(t, was)
		}
	}
	was := w.targets.byTenant
	w.targets.byTenant = byTenant
	for _, ts := range was {
		for _, t := range ts {
			w.dropIfGone(t, byTenant[t.tenant])
		}
	}
}

// dropIfGone forgets a subscription that was deleted, with all that it is owed.
func (w *owner) dropIfGone(t *target, present []*target) {
	for _, other := range present {
		if other == t {
			return
		}
	}
	w.forget(t)
}

// forget drops a target, with all that it is owed.
func (w *owner) forget(t *target) {
	t.now.Store(nil)
	w.parking.leave(t)
	for _, d := range t.pending {
		w.end(d)
	}
	if t.lost != nil {
		t.lost.settle()
	}
	delete(w.targets.all, targetName(t.tenant, t.id))
	w.eraseState(t)
}

func filterOf(s *subscription.Subscription) event.Filter {
	f := event.Filter{Types: s.Events, Locks: patterns([]string{s.Locks})}
	if s.Within != nil {
		f.Within = patterns(s.Within)
	}
	return f
}

// patterns compiles those that can be read. They were checked when they were given: what
// cannot be read selects nothing.
func patterns(texts []string) []auth.Pattern {
	all := []auth.Pattern{}
	for _, text := range texts {
		if p, err := auth.ParsePattern(text); err == nil {
			all = append(all, p)
		}
	}
	return all
}

// admit takes a delivery up, unless there are too many. A tenant has a share of what is
// free at most, so that tenants whose receivers are gone leave room for the next one.
func (w *owner) admit(d *delivery) bool {
	t, of, in := d.target, w.targets.load[d.target.tenant], w.targets.load[""]
	if len(t.pending) >= maxOfTarget || t.bytes+d.size > bytesTarget || of.count >= maxOfTenant ||
		!w.mayOwe(t.tenant) || share*of.count >= maxInAll-in.count || share*of.bytes+d.size > bytesInAll-in.bytes {
		return false
	}
	w.add(d)
	return true
}

func (w *owner) add(d *delivery) {
	t := d.target
	t.pending[d.record] = d
	t.bytes += d.size
	if d.grant != nil {
		t.calls[d.grant.URL]++
	}
	w.targets.count(t.tenant, 1, d.size)
}

func (s *targets) count(tenant string, n, bytes int) {
	for _, name := range []string{tenant, ""} {
		l := s.load[name]
		l.count += n
		l.bytes += bytes
		if s.load[name] = l; l == (load{}) {
			delete(s.load, name)
		}
	}
}

// drop forgets a delivery that was added.
func (s *targets) drop(d *delivery) {
	t := d.target
	if t.pending[d.record] != d {
		return
	}
	delete(t.pending, d.record)
	t.bytes -= d.size
	if d.grant != nil {
		if t.calls[d.grant.URL]--; t.calls[d.grant.URL] == 0 {
			delete(t.calls, d.grant.URL)
		}
		t.forgetReceiver(d)
	}
	s.count(t.tenant, -1, -d.size)
}

// sweep forgets callbacks of tenants of whom nothing is pending or to be written, and what
// is owed to subscriptions that were deleted while nobody had the shard.
func (w *owner) sweep() {
	if time.Since(w.began) > orphanTime {
		w.sweepOrphans()
	}
	for tenant, t := range w.targets.callbacks {
		if len(t.pending) == 0 && len(t.leaving) == 0 && t.lost == nil && !t.dirty && !t.writing && w.parking.parked[t] == nil && !w.asked.replays[targetName(tenant, Callbacks)] {
			delete(w.targets.callbacks, tenant)
			delete(w.targets.all, targetName(tenant, Callbacks))
			w.targets.states[targetName(tenant, Callbacks)] = t.state
		}
	}
}

// sweepOrphans forgets what is about subscriptions that are not there any more.
func (w *owner) sweepOrphans() {
	if !w.tidied {
		w.tidied = true
		w.lookForLate("")
		for name := range w.targets.states {
			if tenant, id, _ := strings.Cut(name, "/"); id != Callbacks {
				w.target(tenant, id)
			}
		}
	}
	for _, t := range w.targets.all {
		if t.id != Callbacks && t.sub == nil {
			w.forget(t)
		}
	}
}

// noteHealth takes note of how a receiver does, and disables one that wants nothing any more or
// fails for long.
func (w *owner) noteHealth(t *target, r tried) {
	if r.sub == nil || t.sub == nil {
		return // each callback is one entry's
	}
	if t.isOther(r.sub) {
		return // it says nothing of whoever is told now
	}
	if r.Outcome != webhook.Delivered {
		w.goOn(t, true) // as long as it is told what happens
	}
	was := t.Health
	if t.sub.Enabled != t.Enabled {
		was = webhook.Health{}
	}
	next := was.After(r.Result, w.Now())
	disables := next.Disabled != webhook.NotDisabled && was.Disabled == webhook.NotDisabled
	if disables {
		w.tellPassed() // which is from before
	}
	t.Health, t.Enabled, t.dirty = next, t.sub.Enabled, true
	t.allow()
	if disables {
		w.Logger.Warn("a webhook is disabled", "tenant", t.tenant, "webhook", t.id, "because", string(t.Health.Disabled))
	}
}

// isOther reports whether the receiver that an attempt was made to is not the one of now: the subscription
// has another URL, or was set going since.
func (t *target) isOther(then *subscription.Subscription) bool {
	return then != nil && t.sub != nil && (then.URL != t.sub.URL || then.Enabled != t.sub.Enabled)
}

// disabled reports whether the receiver was found not to want or take anything, and nobody
// has set it going since.
func (t *target) disabled() bool {
	return t.Health.Disabled != webhook.NotDisabled && t.sub.Enabled == t.Enabled
}

// namesOf are the locks of some claims.
func namesOf(claims []lock.Claim) []string {
	names := make([]string, 0, len(claims))
	for _, c := range claims {
		names = append(names, c.Name)
	}
	return names
}
