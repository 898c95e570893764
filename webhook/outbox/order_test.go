package outbox

import (
	"testing"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/webhook/subscription"
)

// TestKeptInPart: of three events of a lock the first attempts are made in order, although the owner before
// ended when only the last one was kept.
func TestKeptInPart(t *testing.T) {
	m := newMissing(t)
	m.makesNoAttempts()
	m.target.sub = &subscription.Subscription{ID: "x", Tenant: "acme", Locks: "*"}
	m.target.filter = filterOf(m.target.sub)
	m.targets.byTenant["acme"] = []*target{m.target}
	event := func(number uint64) *lock.Event {
		e := &lock.Entry{ID: "e", Tenant: "acme", Number: number, Claims: []lock.Claim{{Name: "orders:1"}}}
		return &lock.Event{ID: at(number), Kind: lock.EventAcquired, Entry: e, Held: true, At: time.Now()}
	}
	last := event(103)
	d := &delivery{target: m.target, id: last.ID.String(), record: "x:103-1", payload: encode(last, last.Entry.Claims), made: time.Now()}
	r := store.Record{RecordKey: m.key(d), Version: 1, Value: m.encode(d, m.stamp())}
	f, err := readOwed(r)
	if err != nil {
		t.Fatal(err)
	}
	m.adopt(m.target, r, f)
	m.startLate(lock.Before(101)) // where the cursor is
	for number := range uint64(3) {
		m.tell(event(101 + number))
	}
	first, second, third := m.target.pending["x:101-1"], m.target.pending["x:102-1"], m.target.pending["x:103-1"]
	if len(m.target.pending) != 3 || first.waitsFor != 0 || second.waitsFor != 1 || third.waitsFor != 1 || len(second.blocks) != 1 || second.blocks[0] != third {
		t.Errorf("they wait for %d, %d and %d", first.waitsFor, second.waitsFor, third.waitsFor)
	}
	m.takes()
}

// TestKeptOfWhatIsNotTold: what was kept for its first attempt is sent also if its event is not told again.
func TestKeptOfWhatIsNotTold(t *testing.T) {
	m := newMissing(t)
	m.target.sub = &subscription.Subscription{ID: "x", Tenant: "acme"}
	d := &delivery{target: m.target, id: "103-1", record: "x:103-1", first: true, names: []string{"orders:1"}}
	m.late = []*delivery{d}
	if m.startLate(at(102)); d.Queued() {
		t.Error("it does not wait for what happened before")
	}
	m.Locks = callsNobody{}
	gap := missedOf(90, 104)
	if m.missed(&gap); !d.Queued() {
		t.Error("it is never sent")
	}
}
