package outbox_test

import (
	"testing"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/test/poll"
	"github.com/fencepost/fencepost/webhook"
)

// wantAge checks how long what is due waits for this replica, for a while.
func (r *replica) wantAge(most, lasts time.Duration) {
	r.w.t.Helper()
	for end := time.Now().Add(lasts); time.Now().Before(end); <-time.After(time.Second) {
		if since := r.backlog().Oldest; !since.IsZero() && time.Since(since) > most {
			r.w.t.Fatalf("something is due for %v", time.Since(since))
		}
	}
}

// TestDeadReceiverIsNoDelay: what one receiver does not take, refuses for now or is slow to answer
// is in the backlog, and no delay of ours.
func TestDeadReceiverIsNoDelay(t *testing.T) {
	for name, c := range map[string]struct {
		took    time.Duration
		outcome webhook.Result
	}{
		"fails": {time.Millisecond, webhook.Result{Outcome: webhook.Failed, Status: 500}},
		"hangs": {15 * time.Second, webhook.Result{Outcome: webhook.Failed}},
		"throttles": {
			time.Millisecond,
			webhook.Result{Outcome: webhook.Throttled, Status: 429, RetryAfter: 30 * time.Minute},
		},
		"is slow": {15 * time.Second, webhook.Result{Outcome: webhook.Delivered}},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, func(t *testing.T, w *world) {
				r, _ := warm(t, w)
				w.attemptsTake(c.took)
				w.setBehave(func(string, webhook.Message) webhook.Result { return c.outcome })
				for range 300 {
					r.cycle("acme", "orders:1")
				}
				poll.Within(
					t, 5*time.Second, "it is in the backlog", func() bool { return r.backlog().Deliveries > 500 },
				)
				r.wantAge(10*time.Second, 30*time.Minute)
				if n := r.backlog().Deliveries; n < 300 {
					t.Errorf("%d are in the backlog", n)
				}
			})
		})
	}
}

// TestStuckOwnerLags: an owner that can neither deliver nor keep what happened, or cannot write its
// cursor, lags behind, until it can. A receiver that fails is no lag.
func TestStuckOwnerLags(t *testing.T) {
	for name, c := range map[string]struct {
		refused string
		behave  func(string, webhook.Message) webhook.Result
		lags    bool
	}{
		"cannot keep":             {"webhook-owed-", failed, true},
		"cannot write its cursor": {"webhook-cursor", nil, true},
		"receiver fails":          {"none", failed, false},
		"all is well":             {"none", nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, func(t *testing.T, w *world) {
				r, _ := warm(t, w)
				<-time.After(10 * time.Second)
				if since := r.backlog().Behind; !since.IsZero() {
					t.Fatalf("without an event it lags since %v", since)
				}
				w.setBehave(c.behave)
				r.own.refuse(c.refused)
				began := time.Now()
				w.wantLag(r, began, c.lags)
				r.own.refuse("")
				poll.Within(t, 10*time.Second, "it lags no more", func() bool {
					return r.backlog().Behind.IsZero()
				})
			})
		})
	}
}

// wantLag has things happen for some minutes, and checks whether a replica lags behind the first
// one.
func (w *world) wantLag(r *replica, began time.Time, lags bool) {
	w.t.Helper()
	for range 180 {
		r.cycle("acme", "orders:1")
		<-time.After(time.Second)
		if since := r.backlog().Behind; !lags && !since.IsZero() && time.Since(since) > 10*time.Second {
			w.t.Fatalf("it lags for %v", time.Since(since))
		}
	}
	if since := r.backlog().Behind; lags && (since.IsZero() || since.Sub(began) > time.Second) {
		w.t.Errorf("it lags since %v after it began", since.Sub(began))
	}
	<-time.After(5 * time.Second)
}

// TestCannotBegin: an owner that never begins lags behind.
func TestCannotBegin(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		one, _ := warm(t, w)
		two := second(t, w)
		two.own.refuse("webhook-cursor")
		one.kill()
		w.join("two")
		poll.Within(t, 10*time.Minute, "it lags", func() bool {
			since := two.backlog().Behind
			return !since.IsZero() && time.Since(since) > 3*time.Minute
		})
		two.own.refuse("")
		poll.Within(t, time.Minute, "it does no more", func() bool {
			return two.backlog().Behind.IsZero()
		})
	})
}

// TestNoTargetIsNoLag: the cursor passes events that no target receives.
func TestNoTargetIsNoLag(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		r, s := warm(t, w)
		w.subscribe("acme", there, "*", lock.EventRevoked)
		<-time.After(10 * time.Second)
		w.attemptsTake(time.Minute)
		r.take("acme", "orders:1")
		if err := w.hooks.Delete(t.Context(), actor(principal("acme")), s.ID); err != nil {
			t.Fatal(err)
		}
		poll.Within(t, time.Minute, "it is no lag", func() bool { return r.backlog().Behind.IsZero() })
		<-time.After(time.Minute)
		if since := r.backlog().Behind; !since.IsZero() {
			t.Errorf("it lags for %v", time.Since(since))
		}
	})
}
