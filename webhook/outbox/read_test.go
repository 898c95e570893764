package outbox_test

import (
	"testing"
	"time"

	"github.com/fencepost/fencepost/webhook"
)

// TestOverWhileRead: of a delivery that is over while its payload is read again nothing is left,
// which would keep the next one of its name from being kept.
func TestOverWhileRead(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		r, s := warm(t, w)
		began := time.Now()
		w.setBehave(failed)
		r.take("acme", "orders:1")
		<-time.After(time.Minute)
		third := make(chan struct{}, 1)
		w.setBehave(func(url string, m webhook.Message) webhook.Result {
			r.own.slowReads(2 * time.Second) // that which precedes the writing of this attempt
			third <- struct{}{}
			return failed(url, m)
		})
		<-third
		<-time.After(50 * time.Millisecond)
		r.own.slowReads(0)
		w.setBehave(nil)
		if err := w.asks.RedeliverSince(t.Context(), order(s), began); err != nil {
			t.Fatal(err)
		}
		until(t, time.Second, "it is told", func() bool { return acquired(w) == 1 })
		until(t, time.Minute, "nothing is kept", func() bool { return len(w.left()) == 0 })
	})
}
