package outbox_test

import (
	"slices"
	"testing"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/webhook"
	"github.com/fencepost/fencepost/webhook/outbox"
	"github.com/fencepost/fencepost/webhook/subscription"
)

// TestRetryAfterOfAReceiver: the owner sends nothing to a receiver until its Retry-After is over,
// an hour at most, and delays no other receiver. Then the receiver gets its deliveries in order.
func TestRetryAfterOfAReceiver(t *testing.T) {
	for asks, want := range map[time.Duration]time.Duration{
		10 * time.Minute: 10 * time.Minute, 24 * time.Hour: time.Hour,
	} {
		run(t, func(t *testing.T, w *world) {
			r := w.replica("a")
			<-time.After(time.Second)
			w.subscribe("acme", here, "*", lock.EventAcquired)
			w.subscribe("acme", there, "*", lock.EventAcquired)
			<-time.After(2 * time.Second)
			refused, late := 0, 0
			var since time.Time
			w.setBehave(func(url string, _ webhook.Message) webhook.Result {
				switch {
				case url == there:
				case since.IsZero():
					since = time.Now()
					refused++
					return webhook.Result{Outcome: webhook.Throttled, Status: 503, RetryAfter: asks}
				case time.Since(since) < want:
					late++
				}
				return webhook.Result{Outcome: webhook.Delivered, Status: 204}
			})
			for range 20 {
				r.cycle("acme", "orders:1")
				<-time.After(want / 40)
			}
			if n := len(w.received(there)); n != 20 {
				t.Errorf("who asked for nothing was told of %d", n)
			}
			w.untilTold(want, here, "", 19)
			if asks == want {
				w.untilTold(time.Minute, here, "", 20)
			}
			if refused != 1 || late > 0 {
				t.Errorf("%d attempts were made in the time that it asked for, and %d refused", late, refused)
			}
			ids := make([]lock.EventID, 0, 19)
			for _, one := range w.received(here)[:19] {
				ids = append(ids, parse(t, one.id))
			}
			if asks > want && !slices.IsSortedFunc(ids, lock.EventID.Compare) {
				t.Errorf("it is told in the order %v", ids)
			}
		})
	}
}

// TestRetryAfterOfManyReceivers: what is kept of the URLs of callbacks, which are a tenant's to
// choose, is bounded.
func TestRetryAfterOfManyReceivers(t *testing.T) {
	if n := outbox.Quiet(2 * outbox.MaxOfTarget); n != outbox.MaxOfTarget {
		t.Errorf("%d are kept, want %d", n, outbox.MaxOfTarget)
	}
}

// TestRetryAfterOfAnother: what the receiver has asked for that a subscription had before is
// nothing to the one that it has now.
func TestRetryAfterOfAnother(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		r, s := warm(t, w)
		w.setBehave(func(url string, _ webhook.Message) webhook.Result {
			if url == here {
				return webhook.Result{Outcome: webhook.Throttled, Status: 503, RetryAfter: 30 * time.Minute}
			}
			return webhook.Result{Outcome: webhook.Delivered, Status: 204}
		})
		r.cycle("acme", "orders:1")
		<-time.After(time.Second)
		w.change(s.ID, subscription.Change{URL: new(there)})
		<-time.After(2 * time.Second)
		r.cycle("acme", "orders:2")
		w.untilTold(time.Minute, there, "orders:2", 2)
	})
}

// TestRetryAfterOfWhatWaits: what waits for its turn at such a receiver is not sent either, and one
// that is asked for is.
func TestRetryAfterOfWhatWaits(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		r := w.replica("a")
		<-time.After(time.Second)
		s := w.subscribe("acme", here, "*", lock.EventAcquired)
		<-time.After(2 * time.Second)
		w.attemptsTake(time.Second)
		w.setBehave(func(string, webhook.Message) webhook.Result {
			return webhook.Result{Outcome: webhook.Throttled, Status: 429, RetryAfter: 10 * time.Minute}
		})
		for i := range 20 {
			r.cycle("acme", string(rune('a'+i)))
		}
		<-time.After(5 * time.Minute)
		if n := w.attempts(); n > 8 { // that had begun, or began before it was known
			t.Errorf("%d attempts were made", n)
		}
		page, err := w.asks.List(t.Context(), "acme", s.ID, "", 100)
		if err != nil || len(page.Deliveries) == 0 {
			t.Fatalf("%+v, %v", page, err)
		}
		w.setBehave(nil)
		if err := w.asks.Redeliver(t.Context(), order(s), page.Deliveries[0].ID); err != nil {
			t.Fatal(err)
		}
		w.untilTold(10*time.Second, here, "", 1)
		w.untilTold(6*time.Minute, here, "", 20)
	})
}
