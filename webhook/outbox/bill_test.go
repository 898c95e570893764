package outbox

import (
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/lock/quota"
	"github.com/fencepost/fencepost/test/bubble"
)

// TestCharge: each tenant pays for its own, once: for each of its subscriptions and each event, also those that are not
// told of it, and for what is put into the store.
func TestCharge(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		m := newMissing(t)
		m.makesNoAttempts()
		got := map[string]Cost{}
		m.Charge = func(tenant string, c Cost) { got[tenant] = c }
		charged := func(want map[string]Cost) {
			t.Helper()
			clear(got)
			if m.charge(); !gocmp.Equal(want, got) {
				t.Errorf("they pay for %+v, want %+v", got, want)
			}
		}
		m.dear("acme", 9)
		m.dear("bolt", 0)
		m.dear("gone", 0)
		m.tell(happens("gone", 1))
		delete(m.targets.byTenant, "gone")
		for number := uint64(1); number <= 5; number++ {
			m.tell(happens("acme", number))
			m.tell(happens("nobody", number))
		}
		m.tell(happens("bolt", 6))
		charged(map[string]Cost{"acme": {50, 5, 0}, "bolt": {0, 1, 0}, "gone": {0, 1, 0}})
		if n := len(m.bill); n != 1 {
			t.Errorf("%d tenants are remembered, want the one that owes for little", n)
		}
		m.keepLate(time.Now().Add(keepAfter))
		m.takes()
		charged(map[string]Cost{"acme": {0, 0, 5}, "bolt": {0, 0, 1}, "gone": {0, 0, 1}})
		charged(map[string]Cost{})
		for number := uint64(7); number < 7+quota.UnitOffers; number++ {
			m.tell(happens("bolt", number))
		}
		charged(map[string]Cost{"bolt": {quota.UnitOffers, quota.UnitOffers, 0}})
		if left := m.bill["bolt"]; left != (Cost{Offered: 1}) {
			t.Errorf("of what it was not charged for %+v is remembered, want the one from before", left)
		}
	})
}

// TestManyAreChargedAtOnce: before the next beat a tenant could have thousands more made.
func TestManyAreChargedAtOnce(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		m := newMissing(t)
		m.makesNoAttempts()
		made := 0
		m.Charge = func(_ string, c Cost) { made += c.Made }
		m.dear("acme", 0)
		for number := uint64(1); number < 2*mostMade; number++ {
			m.tell(happens("acme", number))
		}
		if made != mostMade {
			t.Errorf("it has paid for %d before the beat, want %d", made, mostMade)
		}
		if m.charge(); made != 2*mostMade-1 {
			t.Errorf("it has paid for %d, want each once", made)
		}
	})
}

// TestStoreThatFailsCostsNothing: a tenant pays once for a delivery that is put into the store, however often that fails.
func TestStoreThatFailsCostsNothing(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		m := newMissing(t)
		m.makesNoAttempts()
		kept := 0
		m.Charge = func(_ string, c Cost) { kept += c.Kept }
		slow, _ := m.dear("acme", 0)
		records := m.Records
		m.Records = refusesAll{records}
		m.tell(happens("acme", 1))
		d := slow.pending[recordName("all", at(1).String())]
		for range 10 {
			m.keep(d)
			m.puts()
			<-time.After(2 * retryPause)
			(<-m.brought)() // it is tried again
			m.puts()
		}
		if m.charge(); kept != 0 {
			t.Errorf("it pays for %d that are not in the store", kept)
		}
		m.Records = records
		for d.version == 0 {
			(<-m.brought)()
		}
		m.keep(d)
		m.puts()
		if m.charge(); kept != 1 {
			t.Errorf("it pays for %d, want the one that is in the store", kept)
		}
	})
}

// TestGivenLaterIsPaidForOnce: a delivery is paid for when it is made, also where its event is read again for it: what the
// feed did not tell, and what its receiver was not given with the others. What is told again since an instant was paid for
// when that was asked for.
func TestGivenLaterIsPaidForOnce(t *testing.T) {
	for name, c := range map[string]struct {
		give    func(m *missing)
		want    int
		offered int // with the others, or for it alone
	}{
		"of a gap": {func(m *missing) {
			m.targets.byTenant["acme"] = []*target{m.target}
			gap := missedOf(100, 105)
			m.missed(&gap)
		}, 5, 5},
		"of one that was parked": {func(m *missing) {
			m.target.sub.Paused = false
			m.crowds(m.target, "", 100)
			m.window.last = at(105)
			m.eases(m.target)
			m.ease(time.Now())
		}, 5, 0},
		"again":              {func(m *missing) { m.window.last = at(105); m.asks(&request{Since: 1}) }, 0, 0},
		"that waits already": {func(m *missing) { m.tellsTwice(105) }, 1, 2},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMissing(t)
			m.makesNoAttempts()
			m.tells(5)
			m.Locks = holders{told: m.Locks.(told)}
			made := 0
			m.Charge = func(_ string, c Cost) { made += c.Made }
			c.give(m)
			m.takes()
			if m.charge(); made != c.want {
				t.Errorf("it pays for %d, want %d", made, c.want)
			}
			if n := m.bill["acme"].Offered; n != c.offered {
				t.Errorf("its webhooks were looked at %d times, want %d", n, c.offered)
			}
		})
	}
}

// tellsTwice has the owner read an event that it has read already, and not kept yet.
func (m *missing) tellsTwice(number uint64) {
	m.targets.byTenant["acme"] = []*target{m.target}
	m.tell(happens("acme", number))
	m.tell(happens("acme", number))
}
