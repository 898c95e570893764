package outbox

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service/events"
	"github.com/fencepost/fencepost/store"
)

// TestDeletedWhileToldAgain: a subscription that is deleted while everything is told to it again is told no more of it:
// nothing is pending for nobody, or kept, and the request is carried out.
func TestDeletedWhileToldAgain(t *testing.T) {
	m := newMissing(t)
	m.tells(3 * replayPart)
	m.window.last = at(100 + 3*replayPart)
	record := m.asksInStore(&request{Since: 1})
	m.execute(record)
	for len(m.target.pending) < replayPart {
		(<-m.brought)() // until the first part is sent
	}
	m.forget(m.target)
	m.takes()
	if n, all := len(m.target.pending), m.targets.load["acme"]; n > 0 || all != (load{}) {
		t.Errorf("%d are pending for nobody, and count for their tenant as %+v", n, all)
	}
	page, err := m.Records.List(t.Context(), store.RecordQuery{Kind: owedKind(m.name)})
	if err != nil || len(page.Records) > 0 {
		t.Errorf("%d are kept for nobody: %v", len(page.Records), err)
	}
	if m.isAsked(record.RecordKey) || len(m.asked.busy) > 0 || !m.mayReplay("acme", &request{Webhook: "x", Since: 1}) {
		t.Error("it is carried out for ever")
	}
}

// TestReplaysAskedForAtOnce: of requests that are found together those wait that would have everything told to the same
// target, or to too many.
func TestReplaysAskedForAtOnce(t *testing.T) {
	for name, same := range map[string]bool{"of one": true, "of many": false} {
		t.Run(name, func(t *testing.T) {
			m := newMissing(t)
			m.tells(3 * replayPart)
			m.window.last = at(100 + 3*replayPart)
			for i := range 3 * replaysAtOnce {
				r, tenant := request{Since: 1, Webhook: "x"}, fmt.Sprint("tenant-", i)
				if same {
					tenant = "acme"
				}
				m.owner.target(tenant, "x").sub = m.target.sub
				m.execute(m.putRequest(tenant, fmt.Sprint("r", i), &r))
			}
			want, next := replaysAtOnce, fmt.Sprint("tenant-", replaysAtOnce)
			if same {
				want, next = 1, "acme"
			}
			if n := len(m.asked.busy); n != want {
				t.Errorf("%d are carried out at once, want %d", n, want)
			}
			m.takes()
			m.flushMissed() // which a request waits for
			if m.takes(); len(m.asked.busy) > 0 {
				t.Fatal("they are not carried out")
			}
			if !m.mayReplay(next, &request{Webhook: "x", Since: 1}) {
				t.Error("it cannot be asked for again")
			}
		})
	}
}

// putRequest leaves a request in the store.
func (m *missing) putRequest(tenant, id string, r *request) store.Record {
	m.t.Helper()
	key, value := store.RecordKey{Kind: requestKind(m.name), Tenant: tenant, ID: id}, store.Encode(r)
	version, err := m.Records.Put(m.t.Context(), store.RecordPut{RecordKey: key, Value: value})
	if err != nil {
		m.t.Fatal(err)
	}
	return store.Record{RecordKey: key, Value: value, Version: version}
}

// TestParkedBehindAGapLosesNothing: what a receiver was not given before a gap that the shard has met, and that is not
// known any more when it is to be given it, is missed, and told so.
func TestParkedBehindAGapLosesNothing(t *testing.T) {
	gap := events.Missed{After: lock.Before(106), Before: lock.Before(111)}
	for name, forget := range map[string]func(m *missing){
		"nothing can be read": func(m *missing) {
			m.Locks = deaf{}
			m.parking.parked[m.target].item.read = time.Now().Add(-parkMost)
		},
		"some is forgotten": func(m *missing) {
			log := events.NewLog(events.Config{Events: 2})
			t.Cleanup(log.Close)
			log.Begin(100)
			for number := uint64(101); number <= 105; number++ {
				e := &lock.Entry{ID: lock.ID(fmt.Sprint(number)), Tenant: "acme", Number: number, Claims: []lock.Claim{{Name: "a"}}}
				log.Add(lock.Event{ID: at(number), Kind: lock.EventAcquired, Entry: e, Held: true, At: time.Now()})
				log.Reached(number)
			}
			log.Begin(110)
			for end := time.Now().Add(time.Minute); log.Told() < 110 && time.Now().Before(end); <-time.After(time.Millisecond) {
			}
			m.Locks = holders{told: told{log: log}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMissing(t)
			m.tells(5)
			m.target.sub.Paused = false
			m.crowds(m.target, "", 101)
			m.window.last, m.targets.byTenant["acme"] = lock.Before(106), []*target{m.target}
			m.Locks = holders{told: m.Locks.(told)}
			m.missed(&gap)
			m.flushMissed()
			forget(m)
			m.eases(m.target)
			m.ease(time.Now().Add(parkTime))
			lost := m.target.lost
			if lost == nil || lost.After.Compare(at(101)) > 0 || lost.Before.Compare(at(103)) < 0 {
				t.Errorf("it is told to miss %+v, of what was not given to it from 102 to 103", lost)
			}
			m.takes()
		})
	}
}

// TestAskedForBeforeTheKill: an attempt that somebody asked for, of what was to be tried again later, is made by whoever
// takes over from an owner that was killed before it made it, and once.
func TestAskedForBeforeTheKill(t *testing.T) {
	for name, ask := range map[string]request{"one": {Delivery: at(101).String()}, "all": {Since: 1}} {
		t.Run(name, func(t *testing.T) {
			m := newMissing(t)
			m.tells(0)
			m.makesNoAttempts()
			m.target.sub.Paused = false
			d := m.owes(101)
			d.progress.Due = time.Now().Add(time.Hour)
			m.fails(d)
			record := m.asksInStore(&ask)
			m.execute(record)
			m.takes()
			m.flushMissed()
			if m.takes(); m.isAsked(record.RecordKey) {
				t.Fatal("it is not carried out")
			}
			if heir := m.heir(); !heir.asked || time.Until(heir.due) > time.Minute {
				t.Errorf("who takes over makes the attempt in %v", time.Until(heir.due))
			}
			m.fails(d)
			if heir := m.heir(); heir.asked || time.Until(heir.due) < time.Minute {
				t.Errorf("who takes over makes it once more in %v", time.Until(heir.due))
			}
		})
	}
}

// heir is what is owed of 101 at an owner that takes over.
func (m *missing) heir() *delivery {
	m.t.Helper()
	heir := newMissing(m.t)
	heir.Records, heir.Locks, heir.pool, heir.fence, heir.target.sub = m.Records, m.Locks, m.pool, m.fence+1, m.target.sub
	if err := heir.loadOwed(); err != nil {
		m.t.Fatal(err)
	}
	d := heir.target.pending[recordName("x", at(101).String())]
	if d == nil {
		m.t.Fatal("it is not owed any more")
	}
	return d
}

// TestParkedIsKept: what a receiver is given that was waited for is kept in the store when its first attempt takes long, so
// that the cursor goes on, also if what it was given before was.
func TestParkedIsKept(t *testing.T) {
	m := newMissing(t)
	m.tells(3)
	m.target.sub.Paused = false
	it := m.crowds(m.target, "", 101)
	it.read = time.Now().Add(-keepAfter)
	m.window.last = at(103)
	m.keepLate(time.Now())
	m.eases(m.target)
	m.ease(time.Now())
	m.keepLate(time.Now())
	m.takes()
	for _, number := range []uint64{102, 103} {
		if d := m.target.pending[recordName("x", at(number).String())]; d == nil || d.version == 0 {
			t.Errorf("%d is not kept: %+v", number, d)
		}
	}
	if it.open != 0 || m.window.settled() != at(103) {
		t.Errorf("the cursor stays at %v", m.window.settled())
	}
}

// TestNoCursorOfALostPast: an owner that finds, as it gives a receiver what that was not given, that numbers went back
// writes no cursor any more: it would pass what the receiver was not given.
func TestNoCursorOfALostPast(t *testing.T) {
	m := newMissing(t)
	m.tells(3)
	m.target.sub.Paused, m.lose = false, func() {}
	m.crowds(m.target, "", 101)
	m.window.last = at(103)
	m.cursor.passes(time.Now())
	m.lostPast()
	m.parking.leave(m.target)
	m.writeCursor(time.Now())
	m.takes()
	if _, err := m.Records.Get(t.Context(), m.cursorKey()); !errors.Is(err, lock.NotFound) {
		t.Errorf("it writes a cursor: %v", err)
	}
}
