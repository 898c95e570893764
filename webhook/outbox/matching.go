package outbox

import (
	"time"

	"github.com/fencepost/fencepost/api"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service/events"
)

// matching bounds how long an owner holds events against patterns: it tells all tenants of its shard one after the
// other, and nobody pays for that. It is counted in steps, see [auth.Pattern.Steps], of which one takes some 6 ns.
type matching struct {
	began  time.Time          // of the second that is counted
	steps  map[string]int     // in it, by tenant; "" is all
	passed map[string]*passed // by tenant: those of whose events some were held against nothing
}

// passed is what a tenant's subscriptions were not held against.
type passed struct {
	events.Missed
	item *item // of the window, until it is kept that they miss it
}

const (
	// stepsInAll is how many steps a shard's owner makes for all tenants in a second: half of one. When a tenant's
	// event comes a multiple of what it has had is to be left, so that many who use up theirs leave room for others.
	stepsInAll = 80_000_000
	stepsShare = 4

	// stepsOfOffer is for looking at a subscription, whatever its patterns.
	stepsOfOffer = 8
)

// may reports whether a tenant's next event may be held against its subscriptions now. One that may can make it
// more than there are steps.
func (m *matching) may(tenant string, now time.Time) bool {
	if m.steps == nil || now.Sub(m.began) >= time.Second {
		m.began, m.steps = now, map[string]int{}
	}
	return stepsShare*m.steps[tenant] < stepsInAll-m.steps[""]
}

// took counts what was done.
func (m *matching) took(tenant string, steps int) {
	if m.steps != nil {
		m.steps[tenant] += steps
		m.steps[""] += steps
	}
}

// steps is how long it takes at most to find out whether the target is told of an event.
func (t *target) steps(e *lock.Event) int {
	if !t.filter.Wants(e.Kind) {
		return stepsOfOffer
	}
	return stepsOfOffer + t.dear*len(e.Entry.Claims)
}

// passOver has a tenant's subscriptions miss an event, whether they were to be told of it or not: that takes as
// little as it can, and is told of all such events together.
func (w *owner) passOver(e *lock.Event, now time.Time) {
	m := &w.match
	p := m.passed[e.Entry.Tenant]
	if p == nil {
		p = &passed{Missed: gapAt(e.ID), item: &item{id: e.ID, read: now, at: e.At, open: 1}}
		if m.passed == nil {
			m.passed = map[string]*passed{}
		}
		m.passed[e.Entry.Tenant] = p
		w.window.add(p.item)
	}
	p.Before = e.ID
}

// tellPassed has subscriptions told what they were not held against.
func (w *owner) tellPassed() {
	for tenant, p := range w.match.passed {
		for _, t := range w.targets.byTenant[tenant] {
			if p.Before.Number > t.From && (t.sends() || t.pausedAfter(p.After)) {
				w.note(t, events.Missed{After: p.After.Later(lock.Before(t.From + 1)), Before: p.Before}, api.MissedForRoom, p.item)
			}
		}
		delete(w.match.passed, tenant)
		p.item.settle()
	}
}
