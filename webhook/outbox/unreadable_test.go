package outbox

import (
	"errors"
	"testing"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service/events"
	"github.com/fencepost/fencepost/store"
)

// damage puts a record of the shard's that cannot be read.
func (m *missing) damage(kind, id, value string) store.RecordKey {
	m.t.Helper()
	k := store.RecordKey{Kind: kind, Tenant: "acme", ID: id}
	if _, err := m.Records.Put(m.t.Context(), store.RecordPut{RecordKey: k, Value: []byte(value)}); err != nil {
		m.t.Fatal(err)
	}
	return k
}

// TestUnreadable: of what is kept and cannot be read its subscription is told that it misses it, and then it
// is in the way of nothing.
func TestUnreadable(t *testing.T) {
	for name, c := range map[string]struct {
		id, value string
		want      events.Missed
	}{
		"an event":            {"x:50-1", `{"id":`, events.Missed{After: lock.Before(50), Before: at(50)}},
		"an impossible count": {"x:50-1", `{"id":"50-1","payload":{},"attempts_made":-3}`, events.Missed{After: lock.Before(50), Before: at(50)}},
		"something missed":    {"x:missed", `{`, events.Missed{After: lock.Before(8), Before: at(90)}},
		"a test":              {"x:test-abc", `null`, events.Missed{}},
		"a callback":          {"callbacks:60-0", `{"id":"60-0"}`, events.Missed{}},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMissing(t)
			k := m.damage(owedKind(m.name), c.id, c.value)
			m.target.From, m.cursor.at = 7, at(90)
			for range 2 { // the first attempt to begin may fail
				if err := m.loadOwed(); err != nil {
					t.Fatal(err)
				}
			}
			m.flushMissed()
			m.takes()
			d := m.target.pending[m.record]
			if c.want == (events.Missed{}) {
				if d != nil {
					t.Errorf("it is told to miss %+v", d.missed)
				}
			} else if _, f := m.kept(d); f.missed() != c.want || !d.Queued() {
				t.Errorf("kept is %+v, want %+v", f.missed(), c.want)
			}
			r, err := m.Records.Get(t.Context(), k)
			if c.id == m.record {
				_, err = readOwed(r)
			} else if errors.Is(err, lock.NotFound) {
				err = nil
			}
			if err != nil || len(m.target.leaving) > 0 {
				t.Errorf("left is %s, %v", r.Value, err)
			}
		})
	}
}

// TestDamagedWhileOwned: a delivery that is damaged while its owner has it in the store only is not tried for
// ever: whoever has the shard next tells that it is missed.
func TestDamagedWhileOwned(t *testing.T) {
	m := newMissing(t)
	d := m.keptOnly()
	if _, err := m.Records.Put(t.Context(), store.RecordPut{RecordKey: m.key(d), Value: []byte("{"), Version: d.version}); err != nil {
		t.Fatal(err)
	}
	lost := false
	m.lose = func() { lost = true }
	if _, err := m.load(t.Context(), d); err == nil {
		t.Error("it is read")
	}
	select {
	case f := <-m.brought:
		f()
	default:
	}
	if !lost {
		t.Error("the shard is kept")
	}
}

// TestRowsThatAreNone: what was sent last may be damaged, and ends nobody.
func TestRowsThatAreNone(t *testing.T) {
	m := newMissing(t)
	id := "y"
	for shardOf(id) != m.name {
		id += "y"
	}
	k := m.damage(stateKind(m.name), id, `{"from":5,"recent":[null,{"id":"1-1","state":"pending"},null]}`)
	if err := m.loadStates(); err != nil {
		t.Fatal(err)
	}
	m.forgetRows()
	if y := m.targets.all["acme/"+id]; y == nil || y.From != 5 || len(y.Recent) != 0 {
		t.Errorf("known is %+v", y)
	}
	asks := NewDeliveries(m.Records, nil, nil)
	if shown, err := asks.state(t.Context(), k.Tenant, k.ID); err != nil || len(shown.Recent) != 1 {
		t.Errorf("shown is %+v, %v", shown, err)
	}
}
