package outbox

import (
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/test/bubble"
)

// TestCharge: each tenant pays for its own, once: for each of its subscriptions and each event, also those that are not
// told of it, and for what is put into the store.
func TestCharge(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		m := newMissing(t)
		m.makesNoAttempts()
		got := map[string]cost{}
		m.Charge = func(tenant string, offered, kept int) { got[tenant] = cost{offered, kept} }
		charged := func(want map[string]cost) {
			t.Helper()
			clear(got)
			if m.charge(); !gocmp.Equal(want, got, gocmp.AllowUnexported(cost{})) {
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
		charged(map[string]cost{"acme": {50, 0}})
		if n := len(m.bill); n != 1 {
			t.Errorf("%d tenants are remembered, want the one that owes for little", n)
		}
		m.keepLate(time.Now().Add(keepAfter))
		m.takes()
		charged(map[string]cost{"acme": {0, 5}, "bolt": {1, 1}, "gone": {0, 1}})
		charged(map[string]cost{})
	})
}
