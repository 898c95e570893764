package outbox

import (
	"fmt"
	"testing"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/webhook"
	"github.com/fencepost/fencepost/webhook/subscription"
)

// crowds has a target owed so much that it is given nothing more after an event, and returns the item of the
// window that stands for the rest.
func (m *missing) crowds(t *target, url string, after uint64) *item {
	m.t.Helper()
	m.makesNoAttempts()
	for i := range parkAt {
		d := &delivery{target: t, record: fmt.Sprint("earlier:", i), size: 1}
		if t.id == Callbacks {
			d.grant = &callbackCall{URL: url}
		}
		m.add(d)
	}
	if m.park(t, url, at(after)); m.parking.parked[t] == nil {
		m.t.Fatal("it is not waited for")
	}
	return m.window.items[m.window.head]
}

// eases takes away what a target was owed before.
func (m *missing) eases(t *target) {
	for _, d := range t.pending {
		m.targets.drop(d)
	}
}

// TestWaitedFor: what is not given to a receiver that has much before it is given when it has less, is waited
// for no longer, fails or is changed, by what it was told until then; and the cursor waits for it. What is yet to
// be read is not given.
func TestWaitedFor(t *testing.T) {
	for name, ends := range map[string]func(m *missing){
		"it has less before it": func(m *missing) { m.eases(m.target); m.ease(time.Now()) },
		"time is over":          func(m *missing) { m.ease(time.Now().Add(parkTime)) },
		"it fails": func(m *missing) {
			m.noteHealth(m.target, tried{Result: webhook.Result{Outcome: webhook.Gone}, sub: m.target.sub})
		},
		"it is changed": func(m *missing) {
			now := *m.target.sub
			for i := 0; shardOf(now.ID) != m.name; i++ {
				now.ID = fmt.Sprint("sub-", i)
			}
			now.Events, now.Version = []lock.EventKind{lock.EventReleased}, 0
			m.targets.all[targetName("acme", now.ID)] = m.target
			m.take([]*subscription.Subscription{&now}, nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMissing(t)
			m.tells(5)
			m.target.sub.Paused = false
			it := m.crowds(m.target, "", 102)
			m.window.last = at(104)
			if at := m.window.settled(); at.Number != 102 {
				t.Errorf("the cursor is at %v", at)
			}
			if m.ease(time.Now()); m.parking.parked[m.target] == nil {
				t.Fatal("it is given more at once")
			}
			ends(m)
			for number, want := range map[uint64]bool{101: false, 102: false, 103: true, 104: true, 105: false} {
				if given := m.target.pending[recordName("x", at(number).String())] != nil; given != want {
					t.Errorf("it is given %d: %v", number, given)
				}
			}
			if m.parking.parked[m.target] != nil || it.open == 0 {
				t.Errorf("it is still waited for, or the cursor passes what was given: %d", it.open)
			}
			m.forget(m.target)
			if m.takes(); it.open != 0 {
				t.Error("the cursor waits for ever")
			}
		})
	}
}

// TestWaitedForAgain: who is given more until there is too much before it again is waited for further; not so
// after a while, nor soon after that.
func TestWaitedForAgain(t *testing.T) {
	m := newMissing(t)
	m.tells(200)
	m.target.sub.Paused = false
	it := m.crowds(m.target, "", 101)
	m.window.last = at(300)
	for record := range m.target.pending {
		if len(m.target.pending) == resumeAt {
			break
		}
		m.targets.drop(m.target.pending[record])
	}
	m.ease(time.Now())
	if n := len(m.target.pending); m.parking.parked[m.target] != nil || n != resumeAt+199 {
		t.Fatalf("%d are pending, want what there is", n)
	}
	if m.park(m.target, "", at(300)); m.parking.parked[m.target] != nil {
		t.Error("it is waited for although it has little before it")
	}
	m.parking.began["acme"] = time.Now().Add(-parkTime)
	for i := range parkAt {
		m.add(&delivery{target: m.target, record: fmt.Sprint("more:", i)})
	}
	if m.park(m.target, "", at(300)); m.parking.parked[m.target] != nil {
		t.Error("it is waited for once more so soon")
	}
	m.parking.began["acme"] = time.Now().Add(-parkPause)
	if m.park(m.target, "", at(300)); m.parking.parked[m.target] == nil {
		t.Error("it is never waited for again")
	}
	m.forget(m.target)
	if m.takes(); it.open != 0 {
		t.Error("the cursor waits for ever")
	}
}

// TestOnlyItsOwnURLWaits: a tenant's callbacks to a URL that hangs keep none from those to another, and come
// when they can.
func TestOnlyItsOwnURLWaits(t *testing.T) {
	m := newMissing(t)
	m.tells(2)
	for i := 0; shardOf(m.target.tenant) != m.name; i++ {
		m.target.tenant = fmt.Sprint("tenant-", i)
	}
	tenant := m.target.tenant
	callers := m.owner.target(tenant, Callbacks)
	m.crowds(callers, "https://slow", 101)
	tells := func(number uint64, url string) {
		m.tell(&lock.Event{ID: at(number), Kind: lock.EventAcquired, Held: true, At: time.Now(), Entry: &lock.Entry{
			ID: lock.ID(url), Tenant: tenant, Number: number, TTL: time.Minute, Claims: []lock.Claim{{Name: "a"}}, Callback: &lock.Callback{URL: url},
		}})
	}
	tells(102, "https://slow")
	tells(103, "https://quick")
	if callers.pending[recordName(Callbacks, "102-https://slow")] != nil || callers.pending[recordName(Callbacks, "103-https://quick")] == nil {
		t.Errorf("the wrong one waits")
	}
	m.takes()
}

// TestManyURLsAreACrowd: callbacks to very many URLs are waited for together, as there is room for them together.
func TestManyURLsAreACrowd(t *testing.T) {
	m := newMissing(t)
	m.tells(2)
	m.makesNoAttempts()
	callers := m.owner.target(m.target.tenant, Callbacks)
	url := func(i int) string { return fmt.Sprint("https://example.org/?job=", i) }
	for i := range parkAt {
		if m.park(callers, url(i), at(101)); m.parking.parked[callers] != nil {
			t.Fatalf("they are waited for although only %d are pending", i)
		}
		m.add(&delivery{target: callers, record: fmt.Sprint("earlier:", i), size: 1, grant: &callbackCall{URL: url(i)}})
	}
	m.park(callers, url(0), at(101))
	if p := m.parking.parked[callers]; p == nil || !m.parking.waitsFor(callers, "https://another") {
		t.Fatalf("they are not waited for: %+v", p)
	}
	m.eases(callers)
	if m.ease(time.Now()); m.parking.parked[callers] != nil {
		t.Error("they are waited for although nothing is pending")
	}
}
