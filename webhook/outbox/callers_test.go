package outbox_test

import (
	"errors"
	"testing"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/test/poll"
	"github.com/fencepost/fencepost/webhook/outbox"
)

// TestCallbackAgain: a caller may have a message sent again, the grant for as long as it holds; a
// message that it never got, or that went to a subscription, has no delivery.
func TestCallbackAgain(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		r, _ := warm(t, w)
		if _, err := w.hooks.RotateCallback(t.Context(), actor(principal("acme"))); err != nil {
			t.Fatal(err)
		}
		released := w.subscribe("acme", "https://receiver.example/released", "*", lock.EventReleased)
		<-time.After(2 * time.Second)
		callers := outbox.Order{Actor: actor(principal("acme"))}
		g := w.async(r, "batch", time.Hour)
		w.async(r, "batch", 5*time.Second)
		<-time.After(15 * time.Second) // until nothing is known of the callers in memory
		told := w.received(there)
		if len(told) != 2 {
			t.Fatalf("told %+v", told)
		}
		for i, one := range told {
			if err := w.asks.Redeliver(t.Context(), callers, one.id); err != nil {
				t.Fatal(err)
			}
			poll.Within(t, 3*time.Second, "it is told again", func() bool {
				return len(w.received(there)) == 3+i
			})
			if again := w.received(there)[2+i]; again.id != one.id || again.event.Type != one.event.Type ||
				again.event.Data.Entry.Token != one.event.Data.Entry.Token {
				t.Errorf("told again is %+v", again)
			}
		}
		r.release("acme", "batch", g)
		<-time.After(10 * time.Second)
		if err := w.asks.Redeliver(t.Context(), callers, told[0].id); !errors.Is(err, lock.Lost) {
			t.Errorf("a grant whose lease is over: %v", err)
		}
		for _, one := range w.received(here) {
			if one.event.Type == string(lock.EventReleased) ||
				one.event.Type == string(lock.EventWaitTimeout) {
				continue
			}
			for name, o := range map[string]outbox.Order{
				"callers": callers, "another subscription": order(released),
			} {
				if err := w.asks.Redeliver(t.Context(), o, one.id); !errors.Is(err, lock.NotFound) {
					t.Errorf("%s: %s, %s: %v", name, one.id, one.event.Type, err)
				}
			}
		}
		if err := w.asks.Redeliver(t.Context(), callers, "7-0000000000000000000000000a"); !errors.Is(
			err, lock.NotFound,
		) {
			t.Errorf("a grant that nobody knows: %v", err)
		}
	})
}
