package outbox

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fencepost/fencepost/api"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service"
	"github.com/fencepost/fencepost/service/events"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/test/bubble"
	"github.com/fencepost/fencepost/webhook"
	"github.com/fencepost/fencepost/webhook/subscription"
)

func missedOf(after, before uint64) events.Missed {
	return events.Missed{After: at(after), Before: at(before)}
}

// told tells what a log has.
type told struct {
	Locks
	log *events.Log
}

func (l told) Events(_ context.Context, req service.EventsRequest) (*service.EventStream, error) {
	s, err := l.log.Subscribe(events.Request{Of: req.Of, Tenant: req.Tenant, After: req.After})
	return &service.EventStream{Subscription: s}, err
}

// tells has the owner know of so many events from 101 on, and the target be told of all when it is set going.
func (m *missing) tells(n uint64) {
	m.t.Helper()
	m.tellsFrom(n, events.Config{})
}

// tellsFrom is tells with a memory of another size.
func (m *missing) tellsFrom(n uint64, c events.Config) {
	m.t.Helper()
	log := events.NewLog(c)
	m.t.Cleanup(log.Close)
	log.Begin(100)
	for i := range n {
		number := 101 + i
		e := &lock.Entry{ID: lock.ID(fmt.Sprint(number)), Tenant: "acme", Number: number, Claims: []lock.Claim{{Name: fmt.Sprint("orders:", i)}}}
		log.Add(lock.Event{ID: at(number), Kind: lock.EventAcquired, Entry: e, Held: true, At: time.Now()})
		log.Reached(number)
	}
	for end := time.Now().Add(time.Minute); log.Told() < 100+n; <-time.After(time.Millisecond) {
		if time.Now().After(end) {
			m.t.Fatal("the log does not file it")
		}
	}
	m.Locks = told{log: log}
	m.target.sub = &subscription.Subscription{ID: "x", Tenant: "acme", Locks: "*", Paused: true, Version: 1000}
	m.target.filter = filterOf(m.target.sub)
}

// asks has the owner carry out what somebody asks of the target.
func (m *missing) asks(r *request) {
	r.Webhook = m.target.id
	m.asked.begin(store.RecordKey{})
	if r.replays() {
		m.asked.replays[targetName(m.target.tenant, m.target.id)] = true
	}
	m.serve(m.target.tenant, r, func() {})
}

// TestAgainUpToWhereItIs: who asks for everything again is not told twice of what is yet to be read.
func TestAgainUpToWhereItIs(t *testing.T) {
	m := newMissing(t)
	m.tells(5)
	m.window.last = at(103)
	m.asks(&request{Since: 1})
	if m.takes(); len(m.target.pending) != 3 || m.target.pending["x:103-1"] == nil {
		t.Errorf("pending are %d", len(m.target.pending))
	}
}

// TestAgainLeavesRoom: who asks for everything again leaves room for what is to come.
func TestAgainLeavesRoom(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		m := newMissing(t)
		m.tells(maxOfTarget)
		m.window.last, m.target.From = at(100+maxOfTarget), 100
		m.asks(&request{Since: 1})
		m.takes()
		if n := len(m.target.pending); n < maxOfTarget/2 || n > maxOfTarget/2+1 {
			t.Errorf("%d are pending, want %d", n, maxOfTarget/2)
		}
		if m.target.lost == nil || m.target.lost.because != api.MissedForRoom || m.target.lost.Before != at(100+maxOfTarget) {
			t.Errorf("of the rest it is told %+v", m.target.lost)
		}
		for number := uint64(101); number <= 100+maxOfTarget; number++ {
			if told := m.target.pending[recordName("x", at(number).String())] != nil; !told && at(number).Compare(m.target.lost.After) <= 0 {
				t.Fatalf("%d is neither sent nor told to be missed: %+v", number, m.target.lost)
			}
		}
	})
}

// TestAgainOfWhatIsNotKnown: who asks for everything since an instant is told what of that is not known any more,
// and of nothing from before.
func TestAgainOfWhatIsNotKnown(t *testing.T) {
	for name, c := range map[string]struct {
		since time.Duration
		from  uint64 // where the owner began
		want  bool
	}{"long ago": {-time.Hour, 0, true}, "since it began": {time.Minute, 200, false}, "later than what is known": {time.Hour, 0, false}} {
		t.Run(name, func(t *testing.T) {
			m := newMissing(t)
			m.tells(5)
			m.target.From = 50
			m.window.last, m.from = at(105), at(c.from)
			m.asks(&request{Since: time.Now().Add(c.since).UnixMilli()})
			m.takes()
			if got := m.target.lost; (got != nil) != c.want || c.want && (got.After != lock.Before(51) || got.Before != lock.Before(101) || got.because != api.MissedUnknown) {
				t.Errorf("it is told to miss %+v", got)
			}
		})
	}
}

// TestCallTells: the notice of a grant is of use until its lease is over.
func TestCallTells(t *testing.T) {
	m := newMissing(t)
	m.makesNoAttempts()
	tenant := "acme"
	for i := 0; shardOf(tenant) != m.name; i++ {
		tenant = fmt.Sprint("tenant-", i)
	}
	now := time.Now()
	e := &lock.Entry{ID: "e", Tenant: tenant, Number: 50, TTL: time.Minute, Claims: []lock.Claim{{Name: "a"}}, Callback: &lock.Callback{URL: "https://there"}}
	m.tell(&lock.Event{ID: at(60), Kind: lock.EventAcquired, Entry: e, Held: true, At: now})
	d := m.targets.callbacks[tenant].pending[recordName(Callbacks, "50-e")]
	if d == nil || !d.progress.NotAfter.Equal(now.Add(time.Minute)) {
		t.Errorf("pending is %+v", d)
	}
	m.takes()
}

// TestStateFits: how a target does fits into a record, whatever is remembered of what it was sent.
func TestStateFits(t *testing.T) {
	m := newMissing(t)
	for i := range maxRecent {
		m.target.remember(&delivery{
			target: m.target, id: fmt.Sprint(i, "-1"), record: fmt.Sprint("x:", i, "-1"), lock: strings.Repeat("a", 1500), made: time.Now(),
			progress: webhook.Progress{State: webhook.StateDelivered},
		})
	}
	if n := len(m.target.encodeState(m.stamp())); n > store.MaxRecordValue || len(m.target.Recent) == 0 {
		t.Errorf("it has %d bytes, of %d rows", n, len(m.target.Recent))
	}
}

// TestStateIsTriedAgain: how a target does is written when the store takes it again.
func TestStateIsTriedAgain(t *testing.T) {
	m := newMissing(t)
	records := m.Records
	m.target.dirty, m.Records = true, refusesAll{records}
	m.writeStates(time.Now())
	m.takes()
	m.Records = records
	m.writeStates(time.Now().Add(statePause))
	m.takes()
	if _, err := m.Records.Get(t.Context(), m.stateKey(m.target)); err != nil {
		t.Error(err)
	}
}

// refusesAll takes no writes.
type refusesAll struct{ Records }

func (refusesAll) Put(context.Context, store.RecordPut) (uint64, error) {
	return 0, lock.Errorf(lock.StoreUnavailable, "it takes nothing")
}

// TestAskedForBeforeItIsRead: what was asked for once more is not kept yet when the shard reads its event: the cursor
// waits for it then.
func TestAskedForBeforeItIsRead(t *testing.T) {
	m := newMissing(t)
	m.tells(1)
	m.target.sub.Paused = false
	m.makesNoAttempts()
	e := &lock.Event{ID: at(101), Kind: lock.EventAcquired, Held: true, At: time.Now(), Entry: &lock.Entry{
		ID: "a", Tenant: "acme", Number: 101, Claims: []lock.Claim{{Name: "orders:1"}},
	}}
	asked, read := &item{open: 1, again: true}, &item{id: at(101), open: 1}
	m.offer(m.target, &body{event: e}, asked)
	for range 2 { // the second time it waits already
		m.offer(m.target, &body{event: e}, read)
	}
	if read.settle(); asked.open != 2 || read.open != 1 {
		t.Fatalf("%d and %d are open", asked.open, read.open)
	}
	d := m.target.pending[recordName("x", at(101).String())]
	if m.settle(d); read.open != 0 {
		t.Error("it waits for what is made")
	}
	m.offer(m.target, &body{event: e}, read)
	if read.open != 0 {
		t.Error("it waits for what is kept")
	}
}
