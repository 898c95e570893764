package outbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fencepost/fencepost/api"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service/events"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/test/bubble"
	"github.com/fencepost/fencepost/webhook"
)

// refusesOwed takes no deliveries that are to be kept.
type refusesOwed struct{ Records }

func (r refusesOwed) Put(ctx context.Context, p store.RecordPut) (uint64, error) {
	if strings.HasPrefix(p.Kind, "webhook-owed-") {
		return 0, lock.Errorf(lock.StoreUnavailable, "it takes none")
	}
	return r.Records.Put(ctx, p)
}

// asksInStore leaves a request for the owner as tenants do, and returns it.
func (m *missing) asksInStore(r *request) store.Record {
	m.t.Helper()
	r.Webhook = m.target.id
	key, value := store.RecordKey{Kind: requestKind(m.name), Tenant: m.target.tenant, ID: "r"}, store.Encode(r)
	version, err := m.Records.Put(m.t.Context(), store.RecordPut{RecordKey: key, Value: value})
	if err != nil {
		m.t.Fatal(err)
	}
	return store.Record{RecordKey: key, Value: value, Version: version}
}

func (m *missing) isAsked(k store.RecordKey) bool {
	m.t.Helper()
	_, err := m.Records.Get(m.t.Context(), k)
	if err != nil && !errors.Is(err, lock.NotFound) {
		m.t.Fatal(err)
	}
	return err == nil
}

// TestAskedForUntilItIsKept: a request stays in the store until what it asks for is kept, and is not carried out twice
// meanwhile; whoever takes over before does it again.
func TestAskedForUntilItIsKept(t *testing.T) {
	for name, r := range map[string]request{"all since": {Since: 1}, "one": {Delivery: at(101).String()}, "a test": {Test: "test-1"}} {
		t.Run(name, func(t *testing.T) {
			m := newMissing(t)
			m.tells(1)
			m.window.last = at(101)
			record := m.asksInStore(&r)
			records := m.Records
			m.Records = refusesOwed{records}
			m.execute(record)
			m.execute(record)
			m.takes()
			if len(m.target.pending) != 1 || !m.isAsked(record.RecordKey) {
				t.Fatalf("%d are pending, and it is still asked for: %v", len(m.target.pending), m.isAsked(record.RecordKey))
			}
			heir := newMissing(t)
			heir.Records, heir.Locks, heir.fence = records, m.Locks, 2
			heir.target.sub, heir.target.filter, heir.window.last = m.target.sub, m.target.filter, at(101)
			is, err := records.Get(t.Context(), record.RecordKey)
			if err != nil {
				t.Fatal(err)
			}
			heir.execute(is)
			heir.takes()
			heir.flushMissed()
			if heir.takes(); heir.target.pending[recordName("x", cmp.Or(r.Test, at(101).String()))] == nil || heir.isAsked(record.RecordKey) || len(heir.asked.busy) != 0 {
				t.Errorf("the next owner has %d pending, and is asked still: %v", len(heir.target.pending), heir.isAsked(record.RecordKey))
			}
		})
	}
}

// TestAllAgainInParts: everything since an instant is sent again in parts, each when the one before is kept, and to one
// target once at a time.
func TestAllAgainInParts(t *testing.T) {
	const n = 3*replayPart + 10
	m := newMissing(t)
	m.tells(n)
	m.window.last = at(100 + n)
	m.asks(&request{Since: 1})
	if again := (&request{Webhook: "x", Since: 1}); m.mayReplay("acme", again) || !m.mayReplay("acme", &request{Webhook: "y", Since: 1}) {
		t.Error("it is told everything twice at a time, or others are kept waiting")
	}
	for most := 0; m.writes.running > 0 || len(m.turns.waiting) > 0; {
		if m.takeTurns(time.Now()); m.writes.running > 0 {
			(<-m.brought)()
		}
		unkept := 0
		for _, d := range m.target.pending {
			if d.version == 0 {
				unkept++
			}
		}
		if most = max(most, unkept); most > replayPart {
			t.Fatalf("%d are to be kept at once", most)
		}
	}
	if len(m.target.pending) != n || m.target.lost != nil && m.target.lost.After.Number > 101 {
		t.Errorf("%d are pending, want %d; missed is %+v", len(m.target.pending), n, m.target.lost)
	}
	if !m.mayReplay("acme", &request{Webhook: "x", Since: 1}) {
		t.Error("it cannot be asked for again")
	}
}

// TestFewReplaysAtOnce: everything is told again to few targets of a shard at a time.
func TestFewReplaysAtOnce(t *testing.T) {
	m := newMissing(t)
	m.asked.begin(store.RecordKey{})
	for i := range replaysAtOnce {
		if !m.mayReplay("acme", &request{Webhook: "x", Since: 1}) {
			t.Fatalf("not more than %d at a time", i)
		}
		m.asked.replays[targetName(fmt.Sprint("other-", i), "x")] = true
	}
	if m.mayReplay("acme", &request{Webhook: "x", Since: 1}) || !m.mayReplay("acme", &request{Webhook: "x", Test: "t"}) {
		t.Error("to any number at a time, or tests wait for them")
	}
}

// TestReplaysOfOneTenant: a tenant that asks for everything again for many of its webhooks leaves places for others, and
// one that waits for a place has its turn before those that came later or had one, whatever is found first.
func TestReplaysOfOneTenant(t *testing.T) {
	m := newMissing(t)
	m.asked.begin(store.RecordKey{})
	begins := func(tenant, webhook string) bool {
		may := m.mayReplay(tenant, &request{Webhook: webhook, Since: 1})
		if may {
			m.asked.replays[targetName(tenant, webhook)] = true
		}
		return may
	}
	ends := func(tenant, webhook string) { delete(m.asked.replays, targetName(tenant, webhook)) }
	for _, step := range []struct {
		tenant, webhook string
		want            bool
		then            func()
	}{
		{"a", "1", true, nil},
		{"a", "2", true, nil},
		{"a", "3", false, nil}, // it has what it may have
		{"aa", "1", true, nil}, // which is another tenant
		{"b", "1", true, nil},
		{"c", "1", false, nil}, // nothing is free
		{"d", "1", false, func() { ends("a", "1") }},
		{"a", "3", false, nil}, // which is for who waited before
		{"d", "1", false, nil},
		{"c", "1", true, func() { ends("b", "1"); ends("a", "2") }},
		{"a", "3", true, nil}, // and there is another one for who waited before
		{"a", "4", false, nil},
		{"d", "1", true, nil},
	} {
		if got := begins(step.tenant, step.webhook); got != step.want {
			t.Fatalf("%s/%s begins: %v, of %v, while %v wait", step.tenant, step.webhook, got, m.asked.replays, m.asked.turns)
		}
		if step.then != nil {
			step.then()
		}
	}
}

// TestTurnOfNobody: a tenant whose request is not in the list any more keeps no place free.
func TestTurnOfNobody(t *testing.T) {
	m := newMissing(t)
	m.tells(1)
	m.window.last = at(101)
	m.owner.target("late", "x").sub = m.target.sub
	m.asked.turns = []string{"a", "b", "c", "d"} // of whom nothing is there
	record := m.putRequest("late", "r", &request{Webhook: "x", Since: 1})
	for range 2 { // the list is read once to see that
		m.asked.looked = time.Time{}
		m.lookAtRequests(time.Now())
		m.takes()
		m.flushMissed()
		m.takes()
	}
	if m.isAsked(record.RecordKey) || len(m.asked.turns) > 0 {
		t.Errorf("it waits for nobody: %v", m.asked.turns)
	}
}

// TestAgainOfWhatTheShardHasNotRead: a gap of what is known, that ends after where the shard is, is told as far as the shard
// is.
func TestAgainOfWhatTheShardHasNotRead(t *testing.T) {
	m := newMissing(t)
	m.tellsFrom(6, events.Config{TenantEvents: 2}) // of which 105 and 106 are kept
	m.window.last, m.target.From = at(103), 50
	m.asks(&request{Since: 1})
	m.takes()
	if got := m.target.lost; got == nil || got.After != lock.Before(51) || got.Before != at(103) || got.because != api.MissedUnknown {
		t.Errorf("it is told to miss %+v", got)
	}
	if len(m.target.pending) != 0 {
		t.Errorf("%d are pending that it is told anyway", len(m.target.pending))
	}
}

// TestSinceCountsNames: of a set each name is looked at, and a pattern that takes long to hold against one counts for more.
func TestSinceCountsNames(t *testing.T) {
	m := newMissing(t)
	m.tells(0)
	log, sub := m.Locks.(told).log, *m.target.sub
	set := &lock.Entry{ID: "set", Tenant: "acme", Number: 101, Set: true, Claims: []lock.Claim{{Name: "a"}, {Name: "b"}, {Name: "c"}}}
	log.Add(lock.Event{ID: at(101), Kind: lock.EventAcquired, Entry: set, Held: true, At: time.Now()})
	log.Reached(101)
	for end := time.Now().Add(time.Minute); log.Told() < 101 && time.Now().Before(end); <-time.After(time.Millisecond) {
	}
	d := NewDeliveries(m.Records, m.Locks, nil)
	for pattern, want := range map[string][2]int{"*": {1, 3}, "*" + strings.Repeat("a", 64) + "*": {0, 3 * (1 + (4+37)/8)}} {
		sub.Locks = pattern
		if told, looked, err := d.Since(t.Context(), &sub, time.Unix(0, 0), atOnce); err != nil || told != want[0] || looked != want[1] {
			t.Errorf("%s: %d told, and %d looked at, want %v: %v", pattern, told, looked, want, err)
		}
	}
}

// TestSinceCounts: what it costs to tell everything again is known where it is asked for: how many events are told, of those
// that are looked at.
func TestSinceCounts(t *testing.T) {
	m := newMissing(t)
	m.tells(maxAgain + 20)
	d := NewDeliveries(m.Records, m.Locks, nil)
	sub := *m.target.sub
	sub.Locks = "orders:1*"
	count := func(since time.Time) [2]int {
		told, looked, err := d.Since(t.Context(), &sub, since, atOnce)
		if err != nil {
			t.Error(err)
		}
		return [2]int{told, looked}
	}
	if got, want := count(time.Unix(0, 0)), [2]int{1 + 10 + 100 + 520, maxAgain + 20}; got != want {
		t.Errorf("told and looked at are %v, want %v", got, want)
	}
	if got := count(time.Now().Add(time.Hour)); got[0] != 0 {
		t.Errorf("told of what is to come are %d", got[0])
	}
	if sub.From = 105; count(time.Unix(0, 0))[0] != 1+10+100+520-1 {
		t.Error("it counts what happened before the subscription")
	}
	d.locks = deaf{}
	if _, _, err := d.Since(t.Context(), &sub, time.Unix(0, 0), atOnce); !errors.Is(err, lock.Overloaded) {
		t.Errorf("what cannot be counted is charged for: %v", err)
	}
}

// atOnce is for whose turn it always is.
func atOnce() error { return nil }

// TestSinceCountsWhatIsTold: a receiver that takes what it is sent at once is told everything again, and all of that is
// counted where it is asked for, however much it is.
func TestSinceCountsWhatIsTold(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		const n = 2*maxAgain + 100
		m := newMissing(t)
		m.tells(n)
		m.window.last = at(100 + n)
		m.asks(&request{Since: 1})
		took := 0
		for m.writes.running > 0 || len(m.turns.waiting) > 0 {
			m.goesOn(nil)
			for _, d := range m.target.pending {
				if d.version > 0 && !d.writing {
					took++
					m.attempted(d, tried{Result: webhook.Result{Outcome: webhook.Delivered}, id: d.id})
				}
			}
		}
		told, _, err := NewDeliveries(m.Records, m.Locks, nil).Since(t.Context(), m.target.sub, time.UnixMilli(1), atOnce)
		if took != n || told != took || err != nil {
			t.Errorf("%d of %d are told, and %d counted: %v", took, n, told, err)
		}
	})
}

// TestSinceInTurns: what is to be told again is looked for in parts, so that others have their turns between them, and
// no longer than somebody waits for it. Where it is waited for a turn nothing is followed: the server has few places of its own.
func TestSinceInTurns(t *testing.T) {
	m := newMissing(t)
	m.tells(10 * replayPart)
	log, gone := m.Locks.(told).log, errors.New("gone")
	turns := 0
	_, looked, err := NewDeliveries(m.Records, m.Locks, nil).Since(t.Context(), m.target.sub, time.UnixMilli(1), func() error {
		if n := log.Subscriptions(lock.OwnTenant) + log.Subscriptions("acme"); n > 0 {
			t.Errorf("before the %d. turn %d follow", turns, n)
		}
		if turns++; turns > 5 {
			return gone
		}
		return nil
	})
	if !errors.Is(err, gone) || looked == 0 || looked > 5*replayPart {
		t.Errorf("%d are looked at in 5 turns: %v", looked, err)
	}
}

// TestSinceEnds: who asks for everything again pays for what had happened by then, however fast more does.
func TestSinceEnds(t *testing.T) {
	m := newMissing(t)
	m.tells(3)
	log := m.Locks.(told).log
	number := uint64(103)
	n, _, err := NewDeliveries(m.Records, m.Locks, nil).Since(t.Context(), m.target.sub, time.UnixMilli(1), func() error {
		if number++; number > 120 {
			return errors.New("it does not end")
		}
		e := &lock.Entry{ID: lock.ID(fmt.Sprint(number)), Tenant: "acme", Number: number, Claims: []lock.Claim{{Name: "more"}}}
		log.Add(lock.Event{ID: at(number), Kind: lock.EventAcquired, Entry: e, Held: true, At: time.Now().Add(time.Minute)})
		log.Reached(number)
		for end := time.Now().Add(time.Minute); log.Told() < number && time.Now().Before(end); <-time.After(time.Millisecond) {
		}
		return nil
	})
	if n != 3 || err != nil {
		t.Errorf("%d are counted: %v", n, err)
	}
}
