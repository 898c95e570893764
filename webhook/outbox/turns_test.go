package outbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencepost/fencepost/api"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/test/bubble"
	"github.com/fencepost/fencepost/webhook"
)

// written is how many deliveries of a target are in the store, or are being put there.
func written(t *target) (n int) {
	for _, d := range t.pending {
		if d.version > 0 || d.writing {
			n++
		}
	}
	return n
}

// puts has the owner take what is brought, until no call of the store is under way. Who waits for a turn goes on to.
func (m *missing) puts() {
	for m.writes.running > 0 {
		(<-m.brought)()
	}
}

// TestDeliveriesAreKeptInTurns: of a tenant whose receivers are slow, a few at a time, the first ones first; those of
// another tenant are kept meanwhile, and what is made before its turn is not kept at all.
func TestDeliveriesAreKeptInTurns(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		const n, atOnce = 3 * keepsOfTenant, keepsAtOnce + 1
		m := newMissing(t)
		m.makesNoAttempts()
		slow, _ := m.dear("acme", 0)
		other, _ := m.dear("bolt", 0)
		for number := uint64(1); number <= n; number++ {
			m.tell(happens("acme", number))
		}
		m.tell(happens("bolt", n+1))
		began := time.Now()
		m.keepLate(began.Add(keepAfter))
		m.puts()
		if got := written(slow); got != atOnce {
			t.Errorf("%d are kept at once, want %d", got, atOnce)
		}
		if written(other) != 1 {
			t.Error("another tenant waits")
		}
		if m.window.settled() != justBefore(at(atOnce+1)) {
			t.Errorf("the cursor may be at %v, want before %d", m.window.settled(), atOnce+1)
		}
		for number := uint64(atOnce + 1); number <= atOnce+10; number++ {
			d := slow.pending[recordName("all", at(number).String())]
			m.attempted(d, tried{Result: webhook.Result{Outcome: webhook.Delivered}, id: d.id})
		}
		for range keepsOfTenant / 4 {
			m.takesTurn()
			m.puts()
		}
		if got, want := written(slow), atOnce+keepsOfTenant/4; got != want || time.Since(began) != (keepsOfTenant/4+1)*time.Second/keepsOfTenant {
			t.Errorf("%d are kept after %v, want %d, one at each turn", got, time.Since(began), want)
		}
		if want := at(atOnce + 10 + keepsOfTenant/4 + 1); m.window.settled() != justBefore(want) {
			t.Errorf("the cursor may be at %v, want before %v", m.window.settled(), want)
		}
		m.takes()
		if got, want := written(slow), n-10; got != want || len(m.turns.waiting) != 0 {
			t.Errorf("in the end %d are kept, want %d; %d tenants wait", got, want, len(m.turns.waiting))
		}
	})
}

// TestCursorComesFirst: what has become of deliveries that are kept is put down after those that hold up the cursor.
func TestCursorComesFirst(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		m := newMissing(t)
		m.makesNoAttempts()
		slow, _ := m.dear("acme", 0)
		for number := uint64(1); number <= keepsAtOnce+1; number++ {
			m.tell(happens("acme", number))
		}
		m.keepLate(time.Now().Add(keepAfter))
		m.puts()
		for _, d := range slow.pending {
			m.attempted(d, tried{Result: webhook.Result{Outcome: webhook.Failed}, id: d.id})
		}
		m.tell(happens("acme", keepsAtOnce+2))
		m.keepLate(time.Now().Add(keepAfter))
		if m.takesTurn(); m.writes.running == 0 {
			t.Error("nothing is written")
		}
		if m.puts(); m.window.len() != 0 && m.window.settled() != m.window.last {
			t.Errorf("the cursor waits at %v", m.window.settled())
		}
	})
}

// TestOwedIsBounded: what of a tenant is neither made nor kept, with all owners on the replica, is bounded, and the
// rest is told to be missed; other tenants miss nothing, and there is room again when some is made or kept, or its
// owner is gone.
func TestOwedIsBounded(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		m := newMissing(t)
		m.makesNoAttempts()
		slow, _ := m.dear("acme", 0)
		other, _ := m.dear("bolt", 0)
		m.keeping.owe("acme", owedOfTenant-2) // with another owner
		for number := uint64(1); number <= 5; number++ {
			m.tell(happens("acme", number))
			m.tell(happens("bolt", number))
		}
		if len(slow.pending) != 2 || slow.lost == nil || slow.lost.because != api.MissedForRoom || slow.lost.Before != at(5) {
			t.Errorf("%d are pending, want 2; of the rest it is told %+v", len(slow.pending), slow.lost)
		}
		if len(other.pending) != 5 || other.lost != nil {
			t.Errorf("of another tenant %d are pending, want 5; it misses %+v", len(other.pending), other.lost)
		}
		made := slow.pending[recordName("all", at(1).String())]
		m.attempted(made, tried{Result: webhook.Result{Outcome: webhook.Delivered}, id: made.id})
		m.keep(slow.pending[recordName("all", at(2).String())])
		m.takes()
		for number := uint64(6); number <= 8; number++ {
			m.tell(happens("acme", number))
		}
		if len(slow.pending) != 3 {
			t.Errorf("%d are pending, want the one that is kept and 2", len(slow.pending))
		}
		if m.leaveTurns(); m.keeping.of["acme"].owed != owedOfTenant-2 {
			t.Errorf("%d are owed when the owner is gone, want those of the other", m.keeping.of["acme"].owed)
		}
	})
}

// TestShardWaitsForNobody: many tenants whose deliveries wait to be kept leave room for what happens to others' locks.
func TestShardWaitsForNobody(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		m := newMissing(t)
		m.makesNoAttempts()
		number := uint64(0)
		for i := range 10 {
			tenant := fmt.Sprint("slow-", i)
			m.dear(tenant, 0)
			for range owedOfTenant / 2 {
				number++
				m.tell(happens(tenant, number))
			}
		}
		other, _ := m.dear("bolt", 0)
		for range 50 {
			number++
			m.tell(happens("bolt", number))
		}
		if n := m.window.len(); n >= maxWindow || len(other.pending) != 50 {
			t.Errorf("%d of %d are in the window, and %d of another tenant's are told, want 50", n, maxWindow, len(other.pending))
		}
	})
}

// TestOwnerLeavesItsTurns: other owners do not share with one that is gone.
func TestOwnerLeavesItsTurns(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		m := newMissing(t)
		m.makesNoAttempts()
		m.dear("acme", 0)
		for number := uint64(1); number <= 2*keepsOfTenant; number++ {
			m.tell(happens("acme", number))
		}
		m.keepLate(time.Now().Add(keepAfter))
		m.puts()
		if n := m.keeping.of["acme"].queues; n != 1 {
			t.Errorf("%d owners have some wait, want 1", n)
		}
		if m.leaveTurns(); m.keeping.of["acme"].queues != 0 {
			t.Error("an owner that is gone has some wait")
		}
	})
}

// TestWrittenAgainInTurn: what could not be written waits for another turn, behind the others, and so does what has changed since.
func TestWrittenAgainInTurn(t *testing.T) {
	for what, then := range map[string]func(*missing, *delivery){
		"failed":  func(m *missing, d *delivery) { m.keptOne(d, d.stored, errors.New("the store does not answer")) },
		"changed": func(*missing, *delivery) {},
	} {
		t.Run(what, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				m := newMissing(t)
				d := m.writtenInTurn()
				then(m, d)
				if m.keep(d); d.writing || !d.queued {
					t.Error("it is written at once")
				}
				m.puts()
			})
		})
	}
}

// writtenInTurn is the delivery that has had a turn of many that have failed.
func (m *missing) writtenInTurn() *delivery {
	m.makesNoAttempts()
	slow, _ := m.dear("acme", 0)
	for number := uint64(1); number <= keepsOfTenant; number++ {
		m.tell(happens("acme", number))
	}
	m.keepLate(time.Now().Add(keepAfter))
	m.puts()
	for m.keeping.take("acme", time.Now()) {
	}
	for number := uint64(1); number <= keepsOfTenant; number++ {
		d := slow.pending[recordName("all", at(number).String())]
		m.attempted(d, tried{Result: webhook.Result{Outcome: webhook.Failed}, id: d.id})
	}
	for range turnOfOther { // the first of these has its turn last
		m.takesTurn()
		m.puts()
	}
	return slow.pending[recordName("all", at(1).String())]
}

// TestMissedIsKeptNowAndThen: a target that misses more all the time has that put into the store once in a while, and
// all of it.
func TestMissedIsKeptNowAndThen(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		m := newMissing(t)
		m.makesNoAttempts()
		d := m.misses(10, 20)
		m.takes()
		was := d.version
		for before := uint64(30); before <= 90; before += 10 {
			<-time.After(tick)
			m.note(m.target, gapAt(at(before)), "", &item{id: at(before)})
			m.owner.flushMissed()
			if m.takes(); d.version != was {
				t.Fatalf("%d is told %v after the first", before, tick*time.Duration(before/10-2))
			}
		}
		<-time.After(flushPause)
		m.owner.flushMissed()
		m.takes()
		if d.version == was || d.missed.Before != at(90) {
			t.Errorf("in the end it is told to miss %+v", d.missed)
		}
	})
}

// TestOneHoldsUpTheCursor: of all that a target misses until that is put down, the first is enough for the cursor.
func TestOneHoldsUpTheCursor(t *testing.T) {
	m := newMissing(t)
	notes := func(it *item) int {
		m.note(m.target, gapAt(it.id), "", it)
		return it.open
	}
	if notes(&item{id: at(20)}) != 1 || notes(&item{id: at(30)}) != 0 {
		t.Error("the cursor does not wait for the first, or for another one too")
	}
	if notes(&item{id: at(10)}) != 1 {
		t.Error("the cursor does not wait for one that was before")
	}
	if notes(&item{id: at(40), done: func() {}}) != 1 {
		t.Error("what waits for that does not learn of it")
	}
}

// goesOnFor has the owner take its turns, and what is brought, for a while.
func (m *missing) goesOnFor(d time.Duration) {
	for over := time.After(d); m.goesOn(over); {
	}
}

// TestNoBurstAfterAnOutage: turns that came while nothing could be written, as it is not sure whose the shard is or the
// store does not answer, are not made up for: they would all be written within a second of its end.
func TestNoBurstAfterAnOutage(t *testing.T) {
	for name, c := range map[string]struct{ begin, end func(m *missing) }{
		"of the lease": {
			func(m *missing) { m.lease.renewed(time.Now().Add(-shardTTL)) },
			func(m *missing) { m.lease.until.Store(nil) },
		},
		"of what is read anew": {
			func(m *missing) { m.takes(); m.Records = &tellsNothing{Records: m.Records}; m.failAll() },
			func(m *missing) { m.Records.(*tellsNothing).over.Store(true) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				m := newMissing(t)
				m.makesNoAttempts()
				m.dear("acme", 0)
				for number := uint64(1); number <= maxOfTarget; number++ {
					m.tell(happens("acme", number))
				}
				m.keepLate(time.Now().Add(keepAfter))
				c.begin(m)
				m.goesOnFor(8 * time.Second)
				c.end(m)
				was := m.stamped
				m.goesOnFor(2 * time.Second)
				if n := m.stamped - was; n > 2*keepsOfTenant+keepsAtOnce || n < keepsOfTenant {
					t.Errorf("%d are written within 2 s, want %d at most", n, 2*keepsOfTenant)
				}
				m.takes()
			})
		})
	}
}

// tellsNothing is a store whose records cannot be read until that is over.
type tellsNothing struct {
	Records
	over atomic.Bool
}

func (n *tellsNothing) Get(ctx context.Context, k store.RecordKey) (store.Record, error) {
	if n.over.Load() {
		return n.Records.Get(ctx, k)
	}
	return store.Record{}, errors.New("the store does not answer")
}

// failAll has an attempt of each delivery fail that is in the store only.
func (m *missing) failAll() {
	for _, t := range m.targets.all {
		for _, d := range t.pending {
			d.payload = nil
			m.attempted(d, tried{Result: webhook.Result{Outcome: webhook.Failed}, id: d.id})
		}
	}
}

// TestTurnsComeInTime: a tenant has its turn when that comes, also beside one whose turn is later, and the owner is woken
// for turns alone.
func TestTurnsComeInTime(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		for _, order := range [][]string{{"acme", "bolt"}, {"bolt", "acme"}} {
			m := newMissing(t)
			m.makesNoAttempts()
			began := time.Now()
			for i, tenant := range order {
				m.dear(tenant, 0)
				for m.keeping.take(tenant, began) {
				}
				m.tell(happens(tenant, uint64(i+1)))
			}
			for range 7 { // with other owners
				m.keeping.reserve("acme", began)
			}
			m.keepLate(began.Add(keepAfter))
			var written []time.Duration
			wakes := 0
			for ; len(m.turns.waiting) > 0 && wakes < 10; wakes++ {
				was := m.stamped
				if m.takesTurn(); m.stamped > was {
					written = append(written, time.Since(began)*keepsOfTenant/time.Second)
				}
				m.puts()
			}
			if want := []time.Duration{2, 9}; !slices.Equal(written, want) || wakes != 4 {
				t.Errorf("%v: they are written after %d turns, want %d; it is woken %d times, want once for each and once to find none", order, written, want, wakes)
			}
		}
	})
}
