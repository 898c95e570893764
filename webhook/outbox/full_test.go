package outbox_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/webhook"
	"github.com/fencepost/fencepost/webhook/outbox"
)

// TestManyCallbacks: more callbacks than there is room for are not sent, which a tenant can
// bring about: the list says so, and later waiters receive callbacks again.
func TestManyCallbacks(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		r := callable(t, w)
		w.attemptsTake(10 * time.Second)
		for i := range outbox.MaxOfTarget {
			w.async(r, fmt.Sprint("batch:", i), time.Hour)
		}
		<-time.After(5 * time.Second) // for which the shard waits for receivers that do well
		for i := range 20 {
			w.async(r, fmt.Sprint("more:", i), time.Hour)
		}
		<-time.After(7 * time.Second) // states are written every few seconds
		page, err := w.asks.List(t.Context(), "acme", outbox.Callbacks, "", 100)
		refused := func(d outbox.Delivery) bool { return d.State == webhook.StateFailed && d.Tried == 0 }
		if err != nil || !slices.ContainsFunc(page.Deliveries, refused) {
			t.Errorf("no record says that it was not sent: %v", err)
		}
		w.attemptsTake(time.Millisecond)
		<-time.After(time.Minute)
		w.async(r, "last", time.Hour)
		until(
			t, 20*time.Second, "there is room again",
			func() bool { return len(kindsOf(w.received(there), "last")) > 0 },
		)
	})
}

// TestRequestedTwiceIsKept: a delivery that is sent again is kept although its earlier record is
// still being deleted.
func TestRequestedTwiceIsKept(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		r, s := warm(t, w)
		w.setBehave(failed)
		r.take("acme", "orders:1")
		until(t, 5*time.Second, "it is kept", func() bool { return len(w.left()) > 0 })
		w.setBehave(nil)
		r.own.slow("webhook-owed-", 0, 3*time.Second)
		until(t, 10*time.Second, "it is told", func() bool { return acquired(w) == 1 })
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
		until(t, 10*time.Minute, "it is told again", func() bool { return acquired(w) == 2 })
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
