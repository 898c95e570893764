package outbox

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencepost/fencepost/api"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service/events"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/store/memory"
	"github.com/fencepost/fencepost/test/bubble"
	"github.com/fencepost/fencepost/webhook"
	"github.com/fencepost/fencepost/webhook/subscription"
)

// missing is an owner of a shard with one target, that is told nothing but that something is
// missed. What is brought is for the test to take.
type missing struct {
	*owner
	t      *testing.T
	target *target
	record string
	items  []*item
}

func newMissing(t *testing.T) *missing {
	server := memory.NewServer(memory.Config{})
	client := server.Connect(nil)
	t.Cleanup(server.Close)
	t.Cleanup(client.Close)
	m := &missing{t: t, record: recordName("x", missedRecord)}
	m.owner = newOwner(&shard{Outbox: New(Config{Records: client.Records()}), name: shardName(0)}, 1)
	m.ctx, m.lose = t.Context(), func() { t.Error("the shard is lost") }
	m.target = m.owner.target("acme", "x")
	return m
}

func (m *missing) makesNoAttempts() {
	m.pool = webhook.NewPool(webhook.PoolConfig{})
	m.pool.Close(m.ctx)
}

func at(number uint64) lock.EventID { return lock.EventID{Number: number, Index: 1} }

// misses has the target miss what is between two events, and returns what tells of it.
func (m *missing) misses(after, before uint64) *delivery {
	it := &item{read: time.Now()}
	m.items = append(m.items, it)
	m.note(m.target, events.Missed{After: at(after), Before: at(before)}, "", it)
	m.flushMissed()
	return m.target.pending[m.record]
}

// flushMissed tells what is missed now, however short a time ago that was done.
func (m *missing) flushMissed() {
	for _, t := range m.targets.all {
		for t.lost != nil { // not all are told at once
			t.flushed = time.Time{}
			m.owner.flushMissed()
		}
	}
}

// takes has the owner take what is brought, until no call of the store is under way.
func (m *missing) takes() {
	m.t.Helper()
	for m.writes.running > 0 || len(m.turns.waiting) > 0 {
		if !m.goesOn(time.After(time.Minute)) {
			m.t.Fatal("a call of the store does not end")
		}
	}
}

// goesOn has the owner take a turn, or what is brought, and reports whether that came first.
func (m *missing) goesOn(over <-chan time.Time) bool {
	turn, stop := m.turns.timer()
	defer stop()
	select {
	case <-turn:
		m.takeTurns(time.Now())
	case f := <-m.brought:
		f()
	case <-over:
		return false
	}
	return true
}

// takesTurn waits for the next turn, and has it taken.
func (m *missing) takesTurn() {
	turn, _ := m.turns.timer()
	<-turn
	m.takeTurns(time.Now())
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

// kept is what is in the store of a delivery.
func (m *missing) kept(d *delivery) (r store.Record, f owedForm) {
	m.t.Helper()
	m.takes()
	r, err := m.Records.Get(m.t.Context(), m.key(d))
	if err == nil {
		err = json.Unmarshal(r.Value, &f)
	}
	if err != nil {
		m.t.Fatal(err)
	}
	return r, f
}

// TestMoreMissedWhileRead: what is missed while a payload is being read again is told with the rest.
func TestMoreMissedWhileRead(t *testing.T) {
	m := newMissing(t)
	d := m.keptOnly()
	m.keep(d) // which reads it
	m.misses(20, 30)
	_, f := m.kept(d)
	var e api.Event
	if err := json.Unmarshal(f.Payload, &e); err != nil {
		t.Fatal(err)
	}
	if f.ID != "10-1_30-1" || e.Data.After != "10-1" || e.Data.Before != "30-1" {
		t.Errorf("%s is kept, and tells of %s to %s", f.ID, e.Data.After, e.Data.Before)
	}
}

// TestFailsWhileMoreIsMissed: an attempt that fails while more comes to be missed takes its step, so that
// a receiver that is away is not asked at once again and again.
func TestFailsWhileMoreIsMissed(t *testing.T) {
	m := newMissing(t)
	d := m.misses(10, 20)
	sent := d.id
	m.misses(20, 30)
	m.attempted(d, tried{Result: webhook.Result{Outcome: webhook.Failed}, id: sent})
	if wait := time.Until(d.due); d.progress.Attempts != 1 || wait < 4*time.Second {
		t.Errorf("the next one is in %v: %+v", wait, d.progress)
	}
	m.takes()
}

// TestReadAgainLater: what was to be written is written, although the store did not answer when the
// payload was read again.
func TestReadAgainLater(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		m := newMissing(t)
		d := m.keptOnly()
		m.Records = deafOnce{m.Records, new(atomic.Bool)}
		d.beside = 7
		m.keep(d)
		m.takes()
		select {
		case again := <-m.brought:
			again()
		case <-time.After(time.Minute):
		}
		if _, f := m.kept(d); f.Beside != 7 {
			t.Errorf("what is kept is %+v", f)
		}
	})
}

// deafOnce does not answer the first time.
type deafOnce struct {
	Records
	asked *atomic.Bool
}

func (r deafOnce) Get(ctx context.Context, k store.RecordKey) (store.Record, error) {
	if r.asked.CompareAndSwap(false, true) {
		return store.Record{}, lock.Errorf(lock.StoreUnavailable, "it does not answer")
	}
	return r.Records.Get(ctx, k)
}

// TestMissedStays: what tells that something is missed is tried on when the schedule is over, as nobody would
// tell that it was given up.
func TestMissedStays(t *testing.T) {
	m := newMissing(t)
	d := m.misses(10, 20)
	attempts := 2*len(webhook.Delays()) + 1
	for range attempts {
		m.attempted(d, tried{Result: webhook.Result{Outcome: webhook.Failed, Status: 500}, at: time.Now(), id: d.id})
	}
	if m.target.pending[m.record] != d || d.progress.State != webhook.StatePending || !d.progress.Due.After(time.Now()) {
		t.Errorf("that something is missed is told to nobody: %+v", d.progress)
	}
	if row := recentOf(d); row.Tried != attempts {
		t.Errorf("of %d attempts it is shown: %+v", attempts, row)
	}
	m.takes()
}

// TestAskedWhenDue: an attempt that was due anyway takes its step of the schedule, although
// somebody asked for it.
func TestAskedWhenDue(t *testing.T) {
	m := newMissing(t)
	d := m.misses(10, 20)
	asked := func(outcome webhook.Outcome) {
		m.hasten(d)
		m.attempted(d, tried{Result: webhook.Result{Outcome: outcome}, at: time.Now(), id: d.id})
	}
	asked(webhook.Failed)
	due := d.progress.Due
	asked(webhook.Failed)
	if d.progress.Attempts != 1 || !d.progress.Due.Equal(due) {
		t.Errorf("ahead of the schedule: %+v, want it due at %v", d.progress, due)
	}
	r, f := m.kept(d)
	next := newMissing(t)
	next.adopt(next.target, r, &f)
	if heir := recentOf(next.target.pending[m.record]); heir.Tried != 2 || f.delivery().Tried != 2 {
		t.Errorf("of 2 attempts %d and %d are shown", heir.Tried, f.delivery().Tried)
	}
	d.progress.Due = time.Now()
	if asked(webhook.Failed); d.progress.Attempts != 2 || !d.progress.Due.After(time.Now()) {
		t.Errorf("when it was due: %+v", d.progress)
	}
	if asked(webhook.Delivered); recentOf(d).Tried != 4 {
		t.Errorf("of 4 attempts %d are shown", recentOf(d).Tried)
	}
	m.takes()
}

// TestMoreIsMissed: what tells of a gap goes from the first end of all that is missed to the last,
// whichever was found first. It takes the room of one delivery, and the cursor waits for none of it
// once it is kept.
func TestMoreIsMissed(t *testing.T) {
	m := newMissing(t)
	m.misses(1000, 90_000)
	m.misses(20, 30)
	d := m.misses(40, 50)
	if want := (events.Missed{After: at(20), Before: at(90_000)}); d.missed != want || d.id != missedID(want) {
		t.Errorf("%s tells of %+v, want %+v", d.id, d.missed, want)
	}
	if want := (load{1, len(d.payload)}); m.targets.load["acme"] != want || m.target.bytes != want.bytes {
		t.Errorf("it takes %+v and %d bytes, want %+v", m.targets.load["acme"], m.target.bytes, want)
	}
	m.takes()
	for i, it := range m.items {
		if it.open != 0 {
			t.Errorf("the cursor waits for the %d. of them", i+1)
		}
	}
	m.end(d)
	if m.takes(); len(m.targets.load) > 0 || m.target.bytes != 0 {
		t.Errorf("left are %+v and %d bytes", m.targets.load, m.target.bytes)
	}
}

// TestMoreIsShown: people are shown what is told of a gap now, and not what was to be told of a
// part of it; what was told of another one remains.
func TestMoreIsShown(t *testing.T) {
	m := newMissing(t)
	answers := func(d *delivery, o webhook.Outcome) {
		m.attempted(d, tried{Result: webhook.Result{Outcome: o}, id: d.id})
		m.takes()
	}
	answers(m.misses(1, 5), webhook.Delivered)
	answers(m.misses(10, 20), webhook.Failed)
	for _, want := range []webhook.State{webhook.StatePending, webhook.StateDelivered} {
		d := m.misses(20, 30)
		if want == webhook.StateDelivered {
			m.target.Recent[1].ID = "10-1_25-1" // as of who had the shard and died before it wrote another
			answers(d, webhook.Delivered)
		}
		var shown []string
		for _, r := range m.target.Recent {
			shown = append(shown, fmt.Sprint(r.ID, " ", r.State))
		}
		if wants := []string{"1-1_5-1 delivered", fmt.Sprint("10-1_30-1 ", want)}; !slices.Equal(shown, wants) {
			t.Errorf("shown is %q, want %q", shown, wants)
		}
	}
}

// TestMissedIsToldToWhoAnswers: what was added to a gap late in an outage has its next attempt up to a
// day later. It is made once the receiver takes something else, but neither again and again nor
// before the receiver wants it.
func TestMissedIsToldToWhoAnswers(t *testing.T) {
	m := newMissing(t)
	now := time.Now()
	m.Now = func() time.Time { return now }
	d := m.misses(10, 20)
	fails := func(retry time.Duration) {
		m.attempted(d, tried{Result: webhook.Result{Outcome: webhook.Failed, RetryAfter: retry}, at: now, id: d.id})
	}
	for range 3 {
		fails(0)
	}
	for i, c := range []struct {
		after, retry time.Duration
		outcome      webhook.Outcome
		want         bool
	}{
		{time.Second, 0, webhook.Delivered, false},
		{2 * time.Minute, 0, webhook.Failed, false},
		{2 * time.Minute, 0, webhook.Delivered, true},
		{10 * time.Minute, time.Hour, webhook.Delivered, false},
		{61 * time.Minute, time.Hour, webhook.Delivered, true},
	} {
		fails(c.retry)
		now = now.Add(c.after)
		other := &delivery{target: m.target, id: "5-1", record: recordName("x", "5-1")}
		m.attempted(other, tried{Result: webhook.Result{Outcome: c.outcome}, at: now, id: other.id})
		if d.asked != c.want {
			t.Errorf("%d: it is attempted: %v, want %v", i, d.asked, c.want)
		}
	}
	if fails(0); d.progress.Attempts != 7 || d.beside != 2 {
		t.Errorf("of 9 attempts, two of which were not due: %+v and %d", d.progress, d.beside)
	}
	m.takes()
}

// TestNumbersGoBack: whoever sends when the store loses its past tells nobody of a gap that ends before it
// begins, and leaves the shard to whoever begins with what the store has.
func TestNumbersGoBack(t *testing.T) {
	m := newMissing(t)
	lost := false
	m.lose = func() { lost = true }
	m.targets.byTenant["acme"] = []*target{m.target}
	m.target.sub = &subscription.Subscription{}
	m.missed(&events.Missed{After: at(239), Before: at(145)})
	if !lost || !m.cursor.lost || m.target.lost != nil {
		t.Errorf("it goes on: the shard is lost %v, and missed is %+v", lost, m.target.lost)
	}
}
