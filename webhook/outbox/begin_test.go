package outbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service"
	"github.com/fencepost/fencepost/service/events"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/webhook"
	"github.com/fencepost/fencepost/webhook/subscription"
)

// diary is what is asked of records, in order.
type diary struct {
	Records
	mu  *sync.Mutex
	did *[]string
}

func (d diary) note(what string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	*d.did = append(*d.did, what)
}

func (d diary) Put(ctx context.Context, p store.RecordPut) (uint64, error) {
	d.note("put " + p.Kind)
	return d.Records.Put(ctx, p)
}

func (d diary) List(ctx context.Context, q store.RecordQuery) (store.RecordPage, error) {
	d.note("list " + q.Kind)
	return d.Records.List(ctx, q)
}

// nobody subscribes to anything.
type nobody struct{ Subscriptions }

func (nobody) Current() ([]*subscription.Subscription, bool, <-chan struct{}) { return nil, true, nil }

// mute tells no events.
type mute struct{ Locks }

func (mute) Events(context.Context, service.EventsRequest) (*service.EventStream, error) {
	return nil, errors.New("it does not tell")
}

// TestClaimsFirst: who takes a shard over writes its cursor before it reads what is owed: what the owner
// before keeps after that is behind the cursor, which that owner cannot move any more.
func TestClaimsFirst(t *testing.T) {
	m := newMissing(t)
	key := m.cursorKey()
	if _, err := m.Records.Put(t.Context(), store.RecordPut{RecordKey: key, Value: []byte(`{"after":"40-0","fence":9}`)}); err != nil {
		t.Fatal(err)
	}
	var did []string
	m.Subscriptions, m.Locks, m.Records = nobody{}, mute{}, diary{m.Records, &sync.Mutex{}, &did}
	if m.begin() {
		t.Fatal("it begins without events")
	}
	claims := slices.Index(did, "put "+cursorKind)
	reads := slices.IndexFunc(did, func(what string) bool { return strings.HasPrefix(what, "list ") })
	if claims < 0 || reads < claims {
		t.Errorf("it did %v", did)
	}
	r, err := m.Records.Get(t.Context(), key)
	var f cursorForm
	if err == nil {
		err = json.Unmarshal(r.Value, &f)
	}
	if err != nil || f.Fence != m.fence || f.After != "40-0" || r.Version != m.cursor.version {
		t.Errorf("the cursor is %s, %v", r.Value, err)
	}
}

// TestTakenOver: what is taken over goes by the schedule of who kept it, whatever that one's clock was.
func TestTakenOver(t *testing.T) {
	for name, c := range map[string]struct {
		due, notAfter time.Duration
		least, most   time.Duration // until it is attempted
	}{
		"long due":       {-time.Hour, 0, -time.Minute, time.Second},
		"due later":      {time.Hour, 0, 59 * time.Minute, time.Hour},
		"by a bad clock": {50_000 * time.Hour, 0, time.Hour, maxWait},
		"a grant":        {time.Hour, 2 * time.Hour, 59 * time.Minute, time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMissing(t)
			now := time.Now().Truncate(time.Millisecond)
			d := &delivery{target: m.target, id: "50-1", record: "x:50-1", payload: []byte("{}"), made: now}
			d.progress = webhook.Progress{State: webhook.StatePending, Attempts: 3, Due: now.Add(c.due)}
			if c.notAfter > 0 {
				d.progress.NotAfter = now.Add(c.notAfter)
			}
			f, err := readOwed(store.Record{RecordKey: m.key(d), Value: m.encode(d, m.stamp())})
			if err != nil {
				t.Fatal(err)
			}
			m.adopt(m.target, store.Record{RecordKey: m.key(d), Version: 7}, f)
			heir := m.target.pending[d.record]
			if wait := time.Until(heir.due); wait < c.least || wait > c.most {
				t.Errorf("it is attempted in %v", wait)
			}
			if c.notAfter > 0 && heir.progress.NotAfter.Sub(d.progress.NotAfter).Abs() > time.Second || c.notAfter == 0 && !heir.progress.NotAfter.IsZero() {
				t.Errorf("it is of use until %v, want %v", heir.progress.NotAfter, d.progress.NotAfter)
			}
		})
	}
}

// TestForgottenWhileItMisses: a subscription that is deleted before it could be kept what it misses holds no
// cursor up.
func TestForgottenWhileItMisses(t *testing.T) {
	m := newMissing(t)
	it := &item{read: time.Now()}
	m.note(m.target, missedOf(10, 20), "", it)
	if m.forget(m.target); it.open != 0 {
		t.Errorf("the cursor waits for %d", it.open)
	}
}

// TestMissesNothingFromBefore: a subscription misses nothing that happened before it was made, and the cursor
// passes what nobody misses.
func TestMissesNothingFromBefore(t *testing.T) {
	m := newMissing(t)
	m.Locks = callsNobody{}
	m.targets.byTenant["acme"] = []*target{m.target}
	m.target.sub, m.target.From = &subscription.Subscription{}, 50
	gap := missedOf(20, 50)
	if m.missed(&gap); m.target.lost != nil || !m.cursor.passed || m.window.settled() != gap.Before {
		t.Errorf("it misses %+v; the cursor goes on: %v, to %v", m.target.lost, m.cursor.passed, m.window.settled())
	}
	gap = missedOf(50, 51)
	if m.missed(&gap); m.target.lost == nil {
		t.Error("it misses nothing from after")
	}
}

// callsNobody has no callers.
type callsNobody struct{ Locks }

func (callsNobody) HeldCallbacks() (held, doubtful []*lock.Entry) { return nil, nil }

func (callsNobody) Events(context.Context, service.EventsRequest) (*service.EventStream, error) {
	return nil, lock.Errorf(lock.Overloaded, "too many follow")
}

// TestFloodOfAnother: a tenant of which more happens at once than is kept for those who follow all keeps others' webhooks
// from nothing: what happened in their tenants is still known.
func TestFloodOfAnother(t *testing.T) {
	m := newMissing(t)
	m.makesNoAttempts()
	m.tellsFrom(1, events.Config{Events: 5})
	m.target.sub.Paused, m.targets.byTenant["acme"] = false, []*target{m.target}
	log := m.Locks.(told).log
	m.Locks = holders{told: m.Locks.(told)}
	for number := uint64(102); number <= 120; number++ {
		e := &lock.Entry{ID: lock.ID(fmt.Sprint(number)), Tenant: "flood", Number: number, Claims: []lock.Claim{{Name: "a"}}}
		log.Add(lock.Event{ID: at(number), Kind: lock.EventAcquired, Entry: e, Held: true, At: time.Now()})
		log.Reached(number)
	}
	for end := time.Now().Add(time.Minute); log.Told() < 120 && time.Now().Before(end); <-time.After(time.Millisecond) {
	}
	var err error
	after := lock.Before(101)
	if m.stream, err = m.Locks.Events(t.Context(), service.EventsRequest{Of: lock.OwnTenant, After: &after}); err != nil {
		t.Fatal(err)
	}
	defer m.stream.Close()
	m.read()
	if m.target.lost != nil || len(m.target.pending) != 1 || m.target.pending[recordName("x", at(101).String())] == nil {
		t.Errorf("%d are pending, and it is told to miss %+v", len(m.target.pending), m.target.lost)
	}
	if at := m.window.settled(); at.Compare(lock.Before(101)) > 0 {
		t.Errorf("the cursor is at %v before that is made", at)
	}
	m.takes()
}
