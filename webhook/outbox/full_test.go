package outbox_test

import (
	"testing"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/test/poll"
)

// TestRequestedTwiceIsKept: a delivery that is sent again is kept although its earlier record is
// still being deleted.
func TestRequestedTwiceIsKept(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		r, s := warm(t, w)
		w.setBehave(failed)
		r.take("acme", "orders:1")
		poll.Within(t, 5*time.Second, "it is kept", func() bool { return len(w.left()) > 0 })
		w.setBehave(nil)
		r.own.slow("webhook-owed-", 0, 3*time.Second)
		poll.Within(t, 10*time.Second, "the receiver gets it", func() bool { return acquired(w) == 1 })
		got := w.received(here)
		w.setBehave(failed)
		if err := w.asks.Redeliver(t.Context(), order(s), got[len(got)-1].id); err != nil {
			t.Fatal(err)
		}
		<-time.After(4 * time.Second)
		r.own.slow("", 0, 0)
		if r.own.refused > 0 {
			t.Errorf("%d writes met what the same replica had written", r.own.refused)
		}
		if left := w.left(); len(left) != 1 {
			t.Errorf("kept: %v, want what is to be told again", left)
		}
		w.setBehave(nil)
		poll.Within(t, 10*time.Minute, "it is told again", func() bool { return acquired(w) == 2 })
		w.untilNoneLeft(time.Minute)
	})
}

// acquired counts how often the first receiver got the grant of orders:1.
func acquired(w *world) (n int) {
	for _, kind := range kindsOf(w.received(here), "orders:1") {
		if kind == string(lock.EventAcquired) {
			n++
		}
	}
	return n
}
