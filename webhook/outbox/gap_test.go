package outbox

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/fencepost/fencepost/api"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service/events"
	"github.com/fencepost/fencepost/store/memory"
)

// missing is an owner of a shard with one target, that is told nothing but that something is
// missed. What is brought is for the test to take.
type missing struct {
	*owner
	t      *testing.T
	target *target
	record string
}

func newMissing(t *testing.T) *missing {
	server := memory.NewServer(memory.Config{})
	client := server.Connect(nil)
	t.Cleanup(server.Close)
	t.Cleanup(client.Close)
	m := &missing{t: t, record: recordName("x", missedRecord)}
	m.owner = newOwner(&shard{New(Config{Records: client.Records()}), shardName(0)}, 1)
	m.ctx, m.lose = t.Context(), func() { t.Error("the shard is lost") }
	m.target = m.owner.target("acme", "x")
	return m
}

func at(number uint64) lock.EventID { return lock.EventID{Number: number, Index: 1} }

// misses has the target miss what is between two events, and returns what tells of it.
func (m *missing) misses(after, before uint64) *delivery {
	m.note(m.target, events.Missed{After: at(after), Before: at(before)}, &item{read: time.Now()})
	m.flushMissed()
	return m.target.pending[m.record]
}

// takes has the owner take what is brought, until no call of the store is under way.
func (m *missing) takes() {
	m.t.Helper()
	for m.writes.running > 0 {
		select {
		case f := <-m.brought:
			f()
		case <-time.After(time.Minute):
			m.t.Fatal("a call of the store does not end")
		}
	}
}

// keptOnly is the delivery of something missed whose payload is in the store only.
func (m *missing) keptOnly() *delivery {
	m.t.Helper()
	d := m.misses(10, 20)
	m.schedule(d, time.Now().Add(time.Hour))
	if m.takes(); d.payload != nil || d.version == 0 {
		m.t.Fatalf("it is not kept: %+v", d)
	}
	return d
}

// TestMoreMissedWhileRead: what is missed while a payload is being read again is told with the rest.
func TestMoreMissedWhileRead(t *testing.T) {
	m := newMissing(t)
	d := m.keptOnly()
	m.keep(d) // which reads it
	m.misses(20, 30)
	m.takes()
	r, err := m.Records.Get(t.Context(), m.key(d))
	var f owedForm
	var e api.Event
	if err != nil || json.Unmarshal(r.Value, &f) != nil || json.Unmarshal(f.Payload, &e) != nil {
		t.Fatal(err, string(r.Value))
	}
	if f.ID != "10-1_30-1" || e.Data.After != "10-1" || e.Data.Before != "30-1" {
		t.Errorf("%s is kept, and tells of %s to %s", f.ID, e.Data.After, e.Data.Before)
	}
}
