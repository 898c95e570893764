package outbox

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fencepost/fencepost/api"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/test/bubble"
	"github.com/fencepost/fencepost/webhook"
	"github.com/fencepost/fencepost/webhook/subscription"
)

// dear has a tenant subscribe as often as it may to what takes long to hold names against, and once to all, and
// returns the last, with the steps that are made for an event about one lock.
func (m *missing) dear(tenant string, webhooks int) (all *target, steps int) {
	m.t.Helper()
	subscribe := func(id, pattern string) *target {
		t := m.owner.target(tenant, id)
		t.sub = &subscription.Subscription{ID: id, Tenant: tenant, Locks: pattern, Version: 1000}
		t.filter = filterOf(t.sub)
		t.dear = t.filter.Steps()
		m.targets.byTenant[tenant] = append(m.targets.byTenant[tenant], t)
		steps += t.steps(happens(tenant, 0))
		return t
	}
	for i := range webhooks {
		subscribe(fmt.Sprint("dear-", i), strings.Repeat("*abcdefghijklm", 15)+"*")
	}
	all = subscribe("all", "*")
	return all, steps
}

// happens is an event of a tenant about one lock.
func happens(tenant string, number uint64) *lock.Event {
	e := &lock.Entry{ID: lock.ID(fmt.Sprint(number)), Tenant: tenant, Number: number, Claims: []lock.Claim{{Name: "a"}}}
	return &lock.Event{ID: at(number), Kind: lock.EventAcquired, Entry: e, Held: true, At: time.Now()}
}

// TestDearPatterns: a tenant with many subscriptions that take long to hold events against keeps the shard from others
// for a part of each second, and is told what it misses for that; the others miss nothing.
func TestDearPatterns(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		const n = 2000
		m := newMissing(t)
		m.makesNoAttempts()
		dear, steps := m.dear("acme", 100)
		other, _ := m.dear("bolt", 0)
		for number := uint64(1); number <= n; number++ {
			m.tell(happens("acme", number))
			if number%10 == 0 {
				m.tell(happens("bolt", number))
			}
		}
		most := stepsInAll/(stepsShare+1) + steps
		if told := len(dear.pending); told*steps > most || told*steps < most/2 {
			t.Errorf("in no time %d events are told, for %d steps, want up to %d", told, told*steps, most)
		}
		if told := len(other.pending); told != n/10 {
			t.Errorf("another tenant is told %d of %d", told, n/10)
		}
		first := at(uint64(len(dear.pending)) + 1)
		m.keepLate(time.Now().Add(keepAfter))
		m.takes()
		if settled := m.window.settled(); settled != justBefore(first) {
			t.Errorf("the cursor is at %v, want it before %v, which is not told", settled, first)
		}
		m.tellPassed()
		m.flushMissed()
		if m.takes(); m.window.settled() != at(n) {
			t.Errorf("the cursor stays at %v", m.window.settled())
		}
		d := dear.pending[recordName("all", missedRecord)]
		if d == nil || d.missed.After != justBefore(first) || d.missed.Before != at(n) || d.because != api.MissedForRoom {
			t.Fatalf("it is told to miss %+v, want all from %v on", d, first)
		}
		<-time.After(time.Second)
		if m.tell(happens("acme", n+1)); dear.pending[recordName("all", at(n+1).String())] == nil {
			t.Error("it is told nothing for ever")
		}
	})
}

// TestManyDearPatterns: many such tenants keep the shard together for half of each second, about, and leave room for one
// more.
func TestManyDearPatterns(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		const tenants = 30
		m := newMissing(t)
		m.makesNoAttempts()
		var all []*target
		steps := 0
		for i := range tenants {
			dear, each := m.dear(fmt.Sprint("tenant-", i), 100)
			all, steps = append(all, dear), each
		}
		last, _ := m.dear("last", 0)
		for number := uint64(1); number <= 300; number++ {
			for _, one := range all {
				m.tell(happens(one.tenant, number))
			}
			m.tell(happens("last", number))
		}
		told := 0
		for _, one := range all {
			told += len(one.pending)
		}
		if told*steps > stepsInAll+steps {
			t.Errorf("in no time %d events are told, for %d steps, want up to %d", told, told*steps, stepsInAll)
		}
		if n := len(last.pending); n != 300 {
			t.Errorf("one more is told %d of 300", n)
		}
		m.tellPassed()
		m.flushMissed()
		m.takes()
	})
}

// TestDearPatternsOfTheUnwanted: who is not told of a kind of event has no patterns held against it.
func TestDearPatternsOfTheUnwanted(t *testing.T) {
	m := newMissing(t)
	one, _ := m.dear("acme", 0)
	one.filter.Types, one.dear = []lock.EventKind{lock.EventReleased}, 1000
	if steps := one.steps(happens("acme", 1)); steps != stepsOfOffer {
		t.Errorf("it takes %d steps", steps)
	}
	one.filter.Types = nil
	set := happens("acme", 1)
	set.Entry.Claims = make([]lock.Claim, 32)
	if steps := one.steps(set); steps != stepsOfOffer+32*1000 {
		t.Errorf("of a set it takes %d steps", steps)
	}
}

// TestGapOfDearPatterns: what the feed did not tell is not looked for in a tenant's history for one that has used up
// what it may have: it is told to miss it.
func TestGapOfDearPatterns(t *testing.T) {
	m := newMissing(t)
	m.tells(5)
	m.target.sub.Paused = false
	m.makesNoAttempts()
	it := &item{id: at(101), read: time.Now()}
	m.match.may("acme", it.read)
	m.match.took("acme", stepsInAll)
	m.lacks(m.target, missedOf(100, 105), it)
	if len(m.target.pending) > 0 || m.target.lost == nil || m.target.lost.Missed != missedOf(100, 105) {
		t.Errorf("%d are told, and %+v", len(m.target.pending), m.target.lost)
	}
	m.flushMissed()
	m.takes()
}

// TestPassedOverBeforeItIsDisabled: what a subscription was not held against is told as missed, though its receiver is
// found to want nothing any more before that is told: whoever sets it going again asks for what happened since then.
func TestPassedOverBeforeItIsDisabled(t *testing.T) {
	m := newMissing(t)
	m.makesNoAttempts()
	dear, _ := m.dear("acme", 0)
	m.match.may("acme", time.Now())
	m.match.took("acme", stepsInAll) // so that no more is held against patterns
	m.tell(happens("acme", 2000))
	m.noteHealth(dear, tried{Result: webhook.Result{Outcome: webhook.Gone}, sub: dear.sub})
	if !dear.disabled() {
		t.Fatal("it is not disabled")
	}
	m.tellPassed()
	if dear.lost == nil || dear.lost.Missed != gapAt(at(2000)) || dear.lost.because != api.MissedForRoom {
		t.Errorf("it is told to miss %+v", dear.lost)
	}
	m.flushMissed()
	m.takes()
}

// TestWhoIsPassedOver: a subscription is told to miss what it was not held against from when it was made on, and one that
// was paused since is too; nobody else is. The oldest of that counts as behind since it happened.
func TestWhoIsPassedOver(t *testing.T) {
	m := newMissing(t)
	m.makesNoAttempts()
	older, _ := m.dear("acme", 0)
	one := func(id string, s subscription.Subscription) *target {
		t := m.owner.target("acme", id)
		s.ID, s.Tenant, s.Locks = id, "acme", "*"
		t.sub, t.filter, t.From = &s, filterOf(&s), s.From
		m.targets.byTenant["acme"] = append(m.targets.byTenant["acme"], t)
		return t
	}
	younger := one("younger", subscription.Subscription{Version: 1500, From: 1500})
	since, before := one("since", subscription.Subscription{Version: 3000, Paused: true}), one("before", subscription.Subscription{Version: 900, Paused: true})
	m.match.may("acme", time.Now())
	m.match.took("acme", stepsInAll) // so that no more is held against patterns
	first := happens("acme", 1000)
	first.At = time.Now().Add(-time.Minute)
	m.tell(first)
	m.tell(happens("acme", 2000))
	if oldest := m.window.oldest(); !oldest.Equal(first.At) {
		t.Errorf("it is behind since %v, want %v", oldest, first.At)
	}
	m.tellPassed()
	for _, c := range []struct {
		of    *target
		after lock.EventID
	}{{older, justBefore(at(1000))}, {younger, lock.Before(1501)}, {since, justBefore(at(1000))}} {
		if c.of.lost == nil || c.of.lost.After != c.after || c.of.lost.Before != at(2000) {
			t.Errorf("%s is told to miss %+v, want it after %v", c.of.id, c.of.lost, c.after)
		}
	}
	if before.lost != nil {
		t.Errorf("one that was paused before is told to miss %+v", before.lost)
	}
	m.flushMissed()
	m.takes()
}

// TestAgainIsNotCounted: what somebody has paid to be told again uses up nothing of what its tenant's patterns may take.
func TestAgainIsNotCounted(t *testing.T) {
	m := newMissing(t)
	m.makesNoAttempts()
	one, steps := m.dear("acme", 0)
	m.match.may("acme", time.Now())
	for _, again := range []bool{true, false} {
		m.offer(one, &body{event: happens("acme", 2000)}, &item{read: time.Now(), again: again})
		if want := map[bool]int{false: steps}[again]; m.match.steps["acme"] != want {
			t.Errorf("%d steps are counted, want %d", m.match.steps["acme"], want)
		}
	}
	m.takes()
}
