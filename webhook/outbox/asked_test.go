package outbox_test

import (
	"testing"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/test/poll"
	"github.com/fencepost/fencepost/webhook"
	"github.com/fencepost/fencepost/webhook/subscription"
)

// TestAskedTakesNoStep: a tenant that keeps requesting deliveries while the receiver is down loses
// nothing, and sees all attempts counted.
func TestAskedTakesNoStep(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		r, s := warm(t, w)
		var real follower
		stop := real.follow(t, r)
		w.setBehave(failed)
		began, before := time.Now(), w.attempts()
		r.cycle("acme", "orders:1")
		<-time.After(10 * time.Second)
		stop()
		for range 9 {
			if err := w.asks.Redeliver(t.Context(), order(s), real.seen[0].ID.String()); err != nil {
				t.Fatal(err)
			}
			<-time.After(time.Second)
			if err := w.redeliverSince(order(s), began); err != nil {
				t.Fatal(err)
			}
			<-time.After(time.Second)
		}
		<-time.After(10 * time.Second)
		page, err := w.asks.List(t.Context(), "acme", s.ID, "", 100)
		if err != nil {
			t.Fatal(err)
		}
		shown, made := 0, w.attempts()-before
		for _, d := range page.Deliveries {
			if !d.Made.Before(began) {
				shown += d.Tried
			}
		}
		if made < 20 || shown != made {
			t.Errorf("of %d attempts %d are shown", made, shown)
		}
		w.setBehave(nil)
		w.untilTold(6*time.Minute-time.Since(began), here, "orders:1", 2)
		w.untilNoneLeft(time.Minute)
	})
}

// TestAskedInOrder: a delivery that a tenant requests before its first attempt is not sent before
// earlier events.
func TestAskedInOrder(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		r, s := warm(t, w)
		began := time.Now()
		w.attemptsTake(20 * time.Second)
		r.cycle("acme", "orders:1")
		<-time.After(time.Second)
		w.attemptsTake(time.Millisecond)
		if err := w.redeliverSince(order(s), began); err != nil {
			t.Fatal(err)
		}
		w.untilTold(time.Minute, here, "orders:1", 2)
		if kinds := kindsOf(w.received(here), "orders:1"); kinds[0] != string(lock.EventAcquired) {
			t.Errorf("told are %v", kinds)
		}
	})
}

// TestAskedWhileItGetsNothing: what is asked for while a receiver is disabled, or paused, waits
// until it is set going again.
func TestAskedWhileItGetsNothing(t *testing.T) {
	for name, stop := range map[string]func(w *world, r *replica, s *subscription.Subscription){
		"disabled": func(w *world, r *replica, _ *subscription.Subscription) {
			w.setBehave(func(string, webhook.Message) webhook.Result {
				return webhook.Result{Outcome: webhook.Gone, Status: 410}
			})
			r.cycle("acme", "last")
		},
		"paused": func(w *world, _ *replica, s *subscription.Subscription) {
			w.change(s.ID, paused(true))
		},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, func(t *testing.T, w *world) {
				r, s := warm(t, w)
				r.take("acme", "orders:1")
				poll.Within(t, time.Second, "the receiver gets it", func() bool { return acquired(w) == 1 })
				got := w.received(here)
				stop(w, r, s)
				<-time.After(10 * time.Second)
				w.setBehave(nil)
				if err := w.asks.Redeliver(t.Context(), order(s), got[len(got)-1].id); err != nil {
					t.Fatal(err)
				}
				<-time.After(time.Minute)
				if n := len(w.received(here)); n != len(got) {
					t.Fatalf("%d are told meanwhile", n-len(got))
				}
				w.change(s.ID, paused(false))
				poll.Within(t, time.Minute, "it is told again", func() bool { return acquired(w) == 2 })
				w.untilNoneLeft(time.Minute)
			})
		})
	}
}
