package outbox_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/fencepost/fencepost/webhook"
	"github.com/fencepost/fencepost/webhook/outbox"
)

// TestClockJumps: the owner's wall clock jumps by an hour while deliveries wait to be tried
// again. They are tried when they would have been, a grant as long as its lease runs, and each
// attempt has a time of its own.
func TestClockJumps(t *testing.T) {
	for _, by := range []time.Duration{time.Hour, -time.Hour} {
		t.Run(fmt.Sprint(by), func(t *testing.T) {
			run(t, func(t *testing.T, w *world) {
				r, s := warm(t, w)
				w.callbackSecret()
				w.setBehave(failed)
				r.take("acme", "orders:1")
				w.async(r, "batch", time.Hour)
				<-time.After(time.Second)
				w.mu.Lock()
				w.ahead = by
				w.mu.Unlock()
				r.take("acme", "orders:2")
				<-time.After(time.Second)
				w.setBehave(nil)
				until(t, 7*time.Second, "all are told", func() bool {
					return acquired(w) == 1 && len(w.received(there)) == 1 &&
						len(kindsOf(w.received(here), "orders:2")) == 1
				})
				w.async(r, "another", time.Hour)
				w.untilTold(time.Second, there, "", 2)
				<-time.After(10 * time.Second)
				page, err := w.asks.List(t.Context(), "acme", s.ID, "", 100)
				if err != nil {
					t.Fatal(err)
				}
				i := slices.IndexFunc(
					page.Deliveries, func(d outbox.Delivery) bool { return d.Lock == "orders:1" },
				)
				if all := page.Deliveries[i].Attempts; len(all) != 2 || (all[1].At.Sub(
					all[0].At,
				)-by).Abs() > 10*time.Second {
					t.Errorf("the attempts were made at %+v", all)
				}
				w.untilNoneLeft(time.Minute)
			})
		})
	}
}

// TestEndedMeanwhile: the notice of a grant is not sent once the entry is known to have ended,
// however long its lease would have lasted.
func TestEndedMeanwhile(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		r := callable(t, w)
		w.setBehave(failed)
		g := w.async(r, "batch", time.Hour)
		<-time.After(time.Second)
		r.release("acme", "batch", g)
		w.setBehave(nil)
		<-time.After(15 * time.Second)
		if got := w.received(there); len(got) != 0 {
			t.Errorf("told %+v", got)
		}
		page, err := w.asks.List(t.Context(), "acme", outbox.Callbacks, "", 100)
		if err != nil || len(page.Deliveries) != 1 || page.Deliveries[0].State != webhook.StateExpired {
			t.Errorf("the record is %+v, %v", page, err)
		}
	})
}

// TestFirstSecret: a grant that comes right after a tenant's first secret was made is sent as soon
// as the owner knows the secret, and the attempts that wait for that take no step of the schedule.
func TestFirstSecret(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		r, _ := warm(t, w)
		r.own.setBlind(true)
		if _, err := w.hooks.RotateCallback(t.Context(), actor(principal("acme"))); err != nil {
			t.Fatal(err)
		}
		w.async(r, "batch", time.Hour)
		<-time.After(time.Second)
		r.own.setBlind(false)
		w.untilTold(3*time.Second, there, "", 1)
		<-time.After(10 * time.Second)
		page, err := w.asks.List(t.Context(), "acme", outbox.Callbacks, "", 100)
		if err != nil || len(page.Deliveries) != 1 || page.Deliveries[0].Tried != 1 {
			t.Errorf("the record is %+v, %v", page, err)
		}
	})
}

// TestNoSecretEver: a tenant without a secret sees in the list why nothing comes.
func TestNoSecretEver(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		r, _ := warm(t, w)
		w.async(r, "batch", time.Hour)
		<-time.After(20 * time.Second)
		page, err := w.asks.List(t.Context(), "acme", outbox.Callbacks, "", 100)
		if err != nil || len(page.Deliveries) != 1 || len(page.Deliveries[0].Attempts) == 0 ||
			page.Deliveries[0].Attempts[0].Outcome != webhook.Rejected {
			t.Errorf("the record is %+v, %v", page, err)
		}
	})
}
