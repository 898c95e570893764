package outbox_test

import (
	"slices"
	"testing"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/test/poll"
	"github.com/fencepost/fencepost/webhook"
)

const (
	here  = "https://receiver.example/here"
	there = "https://receiver.example/there"
)

// TestDelivers: each subscription receives its events soon, once and in order.
func TestDelivers(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		r := w.replica("one")
		<-time.After(time.Second)
		w.subscribe("acme", here, "orders:*")
		w.subscribe("acme", there, "*", lock.EventReleased)
		w.subscribe("other", "https://other.example/", "*")
		poll.Within(t, 20*time.Second, "everybody is told", func() bool {
			r.cycle("acme", "orders:1")
			return len(w.received(here)) > 0 && len(w.received(there)) > 0
		})
		<-time.After(time.Second)
		before := len(w.received(here))
		began := time.Now()
		r.cycle("acme", "orders:2")
		r.cycle("acme", "invoices:2")
		poll.Within(
			t, time.Second, "both events are told", func() bool { return len(w.received(here)) == before+2 },
		)
		if took := time.Since(began); took > 100*time.Millisecond {
			t.Errorf("it took %v", took)
		}
		if got, want := kindsOf(w.received(here), "orders:2"), []string{
			"lock.acquired", "lock.released",
		}; !slices.Equal(got, want) {
			t.Errorf("told %v, want %v", got, want)
		}
		poll.Within(
			t, time.Second, "the other one is told",
			func() bool { return len(kindsOf(w.received(there), "invoices:2")) > 0 },
		)
		if got := kindsOf(w.received(there), "invoices:2"); !slices.Equal(
			got, []string{"lock.released"},
		) {
			t.Errorf("the other one is told %v", got)
		}
		if got := w.received("https://other.example/"); len(got) != 0 {
			t.Errorf("another tenant is told %v", got)
		}
		seen := map[string]bool{}
		for _, one := range w.received(here) {
			if seen[one.id] || one.secrets != 1 || one.event.Data.Tenant != "acme" {
				t.Errorf("%+v: twice, not signed, or another tenant's", one)
			}
			seen[one.id] = true
		}
	})
}

// TestRetries: what fails is tried again by the schedule, and nothing of it is left then.
func TestRetries(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		r := w.replica("one")
		w.subscribe("acme", here, "*", lock.EventAcquired)
		poll.Within(
			t, 20*time.Second, "it is told",
			func() bool { r.cycle("acme", "warm"); return len(w.received(here)) > 0 },
		)
		<-time.After(5 * time.Second)
		down := func(string, webhook.Message) webhook.Result {
			return webhook.Result{Outcome: webhook.Failed, Status: 500}
		}
		w.setBehave(down)
		w.took = time.Millisecond
		was := w.attempts()
		r.cycle("acme", "orders:1")
		poll.Within(t, 10*time.Second, "it is tried again", func() bool { return w.attempts() == was+2 })
		if left := w.left(); len(left) != 1 {
			t.Errorf("kept: %v, want the delivery", left)
		}
		w.setBehave(nil)
		w.untilTold(6*time.Minute, here, "orders:1", 1)
		w.untilNoneLeft(10 * time.Second)
		if n := w.attempts() - was; n != 3 {
			t.Errorf("%d attempts, want 3", n)
		}
	})
}
