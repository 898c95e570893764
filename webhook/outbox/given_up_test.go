package outbox

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/fencepost/fencepost/api"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/webhook"
)

// owes has the target owed an event whose first attempt has failed.
func (m *missing) owes(number uint64) *delivery {
	m.t.Helper()
	id := at(number).String()
	d := &delivery{target: m.target, id: id, record: recordName("x", id), kind: string(lock.EventAcquired), payload: []byte("{}"), size: 2}
	it := &item{id: at(number), read: time.Now()}
	m.accept(d, it, nil)
	m.keepAll(it)
	m.fails(d)
	return d
}

// fails has an attempt of a delivery fail.
func (m *missing) fails(d *delivery) {
	m.t.Helper()
	m.attempted(d, tried{Result: webhook.Result{Outcome: webhook.Failed, Status: 500}, at: m.Now(), id: d.id})
	m.takes()
}

func (m *missing) has(d *delivery) bool {
	m.t.Helper()
	_, err := m.Records.Get(m.t.Context(), m.key(d))
	if err != nil && !errors.Is(err, lock.NotFound) {
		m.t.Fatal(err)
	}
	return err == nil
}

// wantMissed checks what the target is told that it misses.
func (m *missing) wantMissed(id, because string) {
	m.t.Helper()
	told := m.target.pending[m.record]
	if told == nil {
		m.t.Fatal("it is not told that something is missing")
	}
	var e api.Event
	if err := json.Unmarshal(told.payload, &e); err != nil {
		m.t.Fatal(err)
	}
	if told.id != id || e.Data.Reason != because {
		m.t.Errorf("it is told of %s because of %q, want %s because of %q", told.id, e.Data.Reason, id, because)
	}
}

// TestGivenUp: a subscription is told that it misses what was tried for as long as the schedule says, or
// waited for too long because it was paused. Until that is kept, what is given up is kept as well.
func TestGivenUp(t *testing.T) {
	for name, giveUp := range map[string]func(m *missing, d *delivery, now *time.Time){
		"the schedule is over": func(m *missing, d *delivery, _ *time.Time) {
			for range len(webhook.Delays()) - 2 {
				m.fails(d)
			}
			if d.over {
				m.t.Fatal("an attempt is missing")
			}
			m.keep(d) // which is under way when it is given up
			m.fails(d)
		},
		"it is too old": func(m *missing, d *delivery, now *time.Time) {
			for _, after := range []time.Duration{maxAge - time.Minute, 2 * time.Minute} {
				if d.over {
					m.t.Errorf("it is given up already")
				}
				*now = now.Add(after)
				m.due.remove(d)
				m.attempt(d)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMissing(t)
			now := time.Now()
			m.Now = func() time.Time { return now }
			d := m.owes(50)
			giveUp(m, d, &now)
			if d.progress.State != webhook.StateFailed || !d.over || m.target.pending[d.record] != nil {
				t.Fatalf("it is not given up: %+v", d.progress)
			}
			m.takes()
			if !m.has(d) {
				t.Error("nothing is kept of it, and its loss is not either")
			}
			m.flushMissed()
			m.takes()
			if m.has(d) || len(m.target.leaving) > 0 {
				t.Error("it is kept for ever")
			}
			m.wantMissed("50-0_50-1", api.MissedUndelivered)
		})
	}
}

// TestGivenUpUnkept: what was never kept, as the store was away, holds the cursor until it is kept that it is
// missed.
func TestGivenUpUnkept(t *testing.T) {
	m := newMissing(t)
	records := m.Records
	m.Records = refusesAll{records}
	d := m.owes(50)
	it := d.items[0]
	for range len(webhook.Delays()) - 1 {
		m.fails(d)
	}
	if m.flushMissed(); it.open == 0 {
		t.Error("the cursor may pass it, and nothing is kept of it")
	}
	m.takes()
	m.Records = records
	m.keep(m.target.pending[m.record])
	if m.takes(); it.open != 0 {
		t.Error("the cursor waits for ever")
	}
}

// TestGivenUpWithOthers: what is missed for several reasons is told as one, also by who takes over.
func TestGivenUpWithOthers(t *testing.T) {
	m := newMissing(t)
	m.misses(10, 20)
	m.target.lost = nil
	told := m.target.pending[m.record]
	told.because = api.MissedForRoom
	m.keep(told)
	r, f := m.kept(told)
	heir := newMissing(t)
	heir.Records = m.Records
	heir.adopt(heir.target, store.Record{RecordKey: r.RecordKey, Version: r.Version}, &f)
	heir.giveUp(&delivery{target: heir.target, id: "50-1", record: "x:50-1"})
	heir.flushMissed()
	heir.takes()
	heir.wantMissed("10-1_50-1", api.MissedForSeveral)
	m.takes()
}

// TestTestGivenUp: nothing is missed of a test, for which nothing happened, nor by a caller, who sees it in the list.
func TestTestGivenUp(t *testing.T) {
	m := newMissing(t)
	callers := m.owner.target("acme", Callbacks)
	for _, d := range []*delivery{
		{target: m.target, id: "test-1", record: "x:test-1"},
		{target: callers, id: "50-0", record: recordName(Callbacks, "50-0"), grant: &callbackCall{}},
	} {
		m.giveUp(d)
		if m.takes(); d.target.lost != nil || !d.over {
			t.Errorf("missed by the loss of %s: %+v", d.id, d.target.lost)
		}
	}
}
