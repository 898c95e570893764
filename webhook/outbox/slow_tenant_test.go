package outbox

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencepost/fencepost/test/bubble"
	"github.com/fencepost/fencepost/webhook"
)

// delivers has an attempt succeed at what a target is to be told of an event, and tries one that ends somehow.
func (m *missing) delivers(t *target, number uint64) {
	m.t.Helper()
	m.tries(t, number, webhook.Delivered)
}

func (m *missing) tries(t *target, number uint64, outcome webhook.Outcome) {
	m.t.Helper()
	d := t.pending[recordName("all", at(number).String())]
	if d == nil {
		m.t.Fatalf("of %d nothing is pending", number)
	}
	m.attempted(d, tried{Result: webhook.Result{Outcome: outcome}, id: d.id})
}

// TestShardReadsOn: a tenant whose deliveries wait for their turns holds up the cursor, and not the reading of what
// happens to others, however much that is.
func TestShardReadsOn(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		m := newMissing(t)
		m.makesNoAttempts()
		m.dear("acme", 0)
		other, _ := m.dear("bolt", 0)
		m.tell(happens("acme", 1))
		for number := uint64(2); number <= maxWindow+2; number++ {
			m.tell(happens("bolt", number))
			m.delivers(other, number)
		}
		if m.window.len() >= maxWindow {
			t.Errorf("%d events are in the window, of which one is neither made nor kept", m.window.len())
		}
		if m.window.settled() != justBefore(at(1)) {
			t.Errorf("the cursor may be at %v, beyond what is neither made nor kept", m.window.settled())
		}
	})
}

// TestMadeWaitsForNoTurn: what has become of deliveries is put down also while more and more come that hold up the
// cursor; and those that are made meanwhile are not remembered.
func TestMadeWaitsForNoTurn(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		m := newMissing(t)
		m.makesNoAttempts()
		slow, _ := m.dear("acme", 0)
		number := uint64(0)
		keep := func(n int) {
			for range n {
				number++
				m.tell(happens("acme", number))
			}
			m.keepLate(time.Now().Add(keepAfter))
			m.puts()
		}
		keep(keepsOfTenant + 1)
		m.takes() // all are kept
		for n := range number {
			m.tries(slow, n+1, webhook.Failed)
		}
		keep(keepsOfTenant / 2)
		all := m.turns.waiting["acme"]
		before := len(all.other)
		for range 2 * turnOfOther {
			m.takesTurn()
			m.puts()
		}
		if len(all.fresh) == 0 || len(all.other) != before-2 {
			t.Fatalf("%d and %d wait, of %d: of what comes later as much is kept as may be", len(all.fresh), len(all.other), before)
		}
		for n := range uint64(keepsOfTenant) {
			m.delivers(slow, n+1)
		}
		if n := len(all.other); n > len(all.fresh)+1 {
			t.Errorf("%d deliveries are remembered, of which one is pending, beside %d that wait", n, len(all.fresh))
		}
		m.takes()
		if n := len(m.turns.waiting); n != 0 {
			t.Errorf("in the end %d tenants wait", n)
		}
	})
}

// TestOnlyMadeWait: a tenant of whom all that waited was made meanwhile waits no longer.
func TestOnlyMadeWait(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		m := newMissing(t)
		m.makesNoAttempts()
		slow, _ := m.dear("acme", 0)
		for m.keeping.take("acme", time.Now()) {
		}
		for number := uint64(1); number <= 10; number++ {
			m.tell(happens("acme", number))
		}
		m.keepLate(time.Now().Add(keepAfter))
		for _, d := range slow.pending {
			m.keep(d) // which waits already
		}
		if n := len(m.turns.waiting["acme"].fresh); n != 10 {
			t.Errorf("%d wait, want 10", n)
		}
		if d := m.misses(10, 20); !d.writing {
			t.Error("what tells that something is missed waits for a turn")
		}
		m.puts()
		m.giveUp(slow.pending[recordName("all", at(1).String())])
		if n := m.turns.waiting["acme"].over; n != 1 {
			t.Errorf("of what waits %d are known to be over, want the one that is given up", n)
		}
		for number := uint64(2); number <= 10; number++ {
			m.delivers(slow, number)
		}
		if m.takesTurn(); len(m.turns.waiting) != 0 || m.keeping.of["acme"].queues != 0 || written(slow) != 0 {
			t.Errorf("%d tenants wait, with %d owners, and %d are kept", len(m.turns.waiting), m.keeping.of["acme"].queues, written(slow))
		}
		m.keeping.owe("acme", -m.keeping.of["acme"].owed)
		<-time.After(time.Second)
		if m.keeping.forget(time.Now()); len(m.keeping.of) != 0 {
			t.Error("a tenant is remembered of whom nothing waits")
		}
	})
}

// TestOwnerThatEnds: however an owner ends, nobody shares with it, nothing is owed by it, and what it has made is paid for.
func TestOwnerThatEnds(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		m := newMissing(t)
		m.makesNoAttempts()
		made := 0
		m.Charge = func(_ string, c Cost) { made += c.Made }
		m.dear("acme", 0)
		for m.keeping.take("acme", time.Now()) {
		}
		m.tell(happens("acme", 1))
		m.keepLate(time.Now().Add(keepAfter))
		m.lease.renewed(time.Now().Add(-time.Hour)) // so that it does not begin
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		m.shard.owes = new(atomic.Pointer[Backlog])
		if m.run(ctx); m.keeping.of["acme"].queues != 0 || m.keeping.of["acme"].owed != 0 {
			t.Errorf("with an owner that is gone %+v waits", m.keeping.of["acme"])
		}
		if made != 1 {
			t.Errorf("%d are paid for, want the one that was made", made)
		}
	})
}
