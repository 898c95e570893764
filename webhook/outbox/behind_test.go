package outbox

import (
	"strconv"
	"testing"
	"time"

	"github.com/fencepost/fencepost/lock"
)

// callableEntry is an entry that holds and names a callback.
func callableEntry(id string, number uint64) *lock.Entry {
	return &lock.Entry{
		ID: lock.ID(id), Tenant: "acme", Number: number, TTL: time.Hour,
		Claims: []lock.Claim{{Name: "a"}}, Callback: &lock.Callback{URL: "https://x.example"},
	}
}

// fill leaves no space for a target.
func (t *target) fill() {
	for i := range maxOfTarget {
		t.pending[strconv.Itoa(i)] = &delivery{}
	}
}

// TestKeyUsedAgainWaitsToo: an entry whose key was used before has a callback of its own, also
// while that of the earlier one waits.
func TestKeyUsedAgainWaitsToo(t *testing.T) {
	dispatches(t, func(t *testing.T, w *dispatching) {
		own, to := &owner{out: w.dispatch}, w.targets.of("acme", Callbacks)
		to.fill()
		for _, number := range []uint64{7, 9} {
			granted := grantOf(callableEntry("key", number))
			if !own.postpone(to, granted, &item{id: granted.ID}) {
				t.Fatal("it does not wait")
			}
		}
		if len(to.waiting) != 2 {
			t.Errorf("%d callbacks wait", len(to.waiting))
		}
	})
}

// holding are locks with entries that hold.
type holding struct {
	Holders
	held []*lock.Entry
}

func (h holding) HeldCallbacks() []*lock.Entry { return h.held }

// TestNoCallbackIsForgottenByTheNextOwner: of the entries that hold, those whose callbacks are
// pending need not wait. What is over the bound has a record that says so.
func TestNoCallbackIsForgottenByTheNextOwner(t *testing.T) {
	dispatches(t, func(t *testing.T, w *dispatching) {
		own, to := &owner{out: w.dispatch}, w.targets.of("acme", Callbacks)
		to.fill()
		var locks holding
		for i := range maxWaiting + 20 {
			e := callableEntry("e"+strconv.Itoa(i), 7)
			locks.held = append(locks.held, e)
			if i < 10 {
				to.pending[recordOf(to.id, callID(grantOf(e)))] = &delivery{}
			}
		}
		own.out.Holders = locks
		own.waitHeld(to, lock.EventID{Number: 100}, lock.EventID{Number: 50, Index: 1})
		if len(to.waiting) != maxWaiting || to.waiting[0].entry.id != "e10" {
			t.Errorf("%d wait, the first is %s", len(to.waiting), to.waiting[0].entry.id)
		}
		if to.skipped != 10 || len(to.Recent) != 10 {
			t.Errorf("%d are counted, and %d recorded", to.skipped, len(to.Recent))
		}
	})
}
