package outbox

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/fencepost/fencepost/api"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service"
	"github.com/fencepost/fencepost/service/events"
)

// holders tells what a log has, and who holds of those that name a callback.
type holders struct {
	told
	held []*lock.Entry
}

func (h holders) HeldCallbacks() (held, doubtful []*lock.Entry) { return h.held, nil }

// deaf tells nothing.
type deaf struct{ holders }

func (deaf) Events(context.Context, service.EventsRequest) (*service.EventStream, error) {
	return nil, lock.Errorf(lock.Overloaded, "too many follow")
}

func (m *missing) parked(t *target) bool { return m.parking.parked[t] != nil }

// TestParkedReadsWhatTheShardReads: what a receiver is given later is read again where the shard reads it, which keeps
// more than of one tenant alone.
func TestParkedReadsWhatTheShardReads(t *testing.T) {
	m := newMissing(t)
	m.tellsFrom(6, events.Config{TenantEvents: 2})
	m.target.sub.Paused = false
	m.crowds(m.target, "", 101)
	m.window.last = at(106)
	m.eases(m.target)
	m.ease(time.Now())
	for number := uint64(102); number <= 106; number++ {
		if m.target.pending[recordName("x", at(number).String())] == nil {
			t.Errorf("it is not given %d", number)
		}
	}
	if m.target.lost != nil {
		t.Errorf("it is told that it misses %+v", m.target.lost.Missed)
	}
	m.takes()
}

// TestParkedWithoutAStream: who is not given what happened, as this replica cannot read it again, misses it after a
// while: the cursor does not wait for ever.
func TestParkedWithoutAStream(t *testing.T) {
	m := newMissing(t)
	m.tells(5)
	m.target.sub.Paused = false
	it := m.crowds(m.target, "", 102)
	m.Locks, m.window.last = deaf{}, at(105)
	if m.ease(time.Now().Add(parkTime)); !m.parked(m.target) {
		t.Fatal("it is not tried again")
	}
	it.read = time.Now().Add(-parkMost)
	if m.ease(time.Now().Add(parkTime)); m.parked(m.target) || m.target.lost == nil {
		t.Fatal("it waits for ever")
	}
	if got := m.target.lost; got.Missed != missedOf(102, 105) || got.because != api.MissedUnknown {
		t.Errorf("it misses %+v", got)
	}
	m.flushMissed()
	if m.takes(); it.open != 0 {
		t.Error("the cursor waits for ever")
	}
}

// callersOf is the target of the callbacks of a tenant that belongs to the shard.
func (m *missing) callersOf() *target {
	for i := 0; shardOf(m.target.tenant) != m.name; i++ {
		m.target.tenant = fmt.Sprint("tenant-", i)
	}
	return m.owner.target(m.target.tenant, Callbacks)
}

func (m *missing) calls(number uint64, tenant, url string) *lock.Entry {
	return &lock.Entry{
		ID: lock.ID(url), Tenant: tenant, Number: number, TTL: time.Minute, Claims: []lock.Claim{{Name: "a"}}, Callback: &lock.Callback{URL: url},
	}
}

// TestParkedCallsNobodyElse: when it turns out that what callers of one URL were not given is not known any more, those
// of them who hold are called, and nobody else, who was.
func TestParkedCallsNobodyElse(t *testing.T) {
	for name, met := range map[string]bool{"a gap of what is kept": false, "a gap that the shard has met": true} {
		t.Run(name, func(t *testing.T) {
			m := newMissing(t)
			m.tells(1)
			callers := m.callersOf()
			m.crowds(callers, "https://slow", 101)
			other := m.target.tenant + "x"
			for i := 0; shardOf(other) != m.name; i++ {
				other = fmt.Sprint("other-", i)
			}
			log := events.NewLog(events.Config{})
			t.Cleanup(log.Close)
			log.Begin(104)
			log.Await(t.Context())
			m.Locks = holders{told{log: log}, []*lock.Entry{
				m.calls(102, m.target.tenant, "https://slow"), m.calls(103, m.target.tenant, "https://quick"), m.calls(103, other, "https://slow"),
			}}
			m.window.last = at(103)
			if gap := missedOf(101, 105); met {
				m.missed(&gap)
			}
			m.window.last = at(110)
			called := func(of *target, record string) bool {
				return of != nil && of.pending[recordName(Callbacks, record)] != nil
			}
			if met && !called(callers, "102-https://slow") {
				t.Error("who holds is not called when the gap is met")
			}
			m.eases(callers)
			m.ease(time.Now())
			if called(callers, "102-https://slow") == met {
				t.Errorf("who was not given it is called: %v", !met)
			}
			if called(callers, "103-https://quick") || !met && m.targets.callbacks[other] != nil {
				t.Error("somebody else is called")
			}
			if m.parked(callers) {
				t.Error("the callers are waited for still")
			}
			m.takes()
		})
	}
}

// TestLateBehindWhatIsParked: a first attempt that the owner before has left is not made before those about the same lock
// of what happened before it, which its receiver was not given yet.
func TestLateBehindWhatIsParked(t *testing.T) {
	m := newMissing(t)
	m.tells(3)
	m.target.sub.Paused = false
	m.crowds(m.target, "", 101)
	d := &delivery{target: m.target, id: at(103).String(), record: recordName("x", at(103).String()), first: true, names: []string{"orders:1"}, made: time.Now()}
	m.add(d)
	m.late = []*delivery{d}
	m.window.last = at(103)
	if m.startLate(m.window.last); d.Queued() {
		t.Fatal("it overtakes what its receiver was not given")
	}
	m.eases(m.target)
	m.add(d)
	m.ease(time.Now())
	before := m.target.pending[recordName("x", at(102).String())]
	if before == nil || len(before.blocks) != 1 || before.blocks[0] != d || d.waitsFor != 1 || len(m.late) != 0 {
		t.Errorf("it does not wait for the one before: %+v", d)
	}
	m.takes()
}
