package outbox_test

import (
	"strings"
	"testing"
	"time"

	"github.com/fencepost/fencepost/webhook"
	"github.com/fencepost/fencepost/webhook/outbox"
)

// TestRowsOfWhoDied: who takes over shows as pending what is to be tried again, and nothing else: the
// one before had the rest delivered, and died before it wrote that.
func TestRowsOfWhoDied(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		one, s := warm(t, w)
		two := second(t, w)
		w.setBehave(failed)
		began := time.Now()
		two.cycle("acme", "orders:1")
		two.cycle("acme", "orders:2")
		<-time.After(15 * time.Second)
		if n := w.pendingOf(s.ID); n != 4 {
			t.Fatalf("%d are shown as pending", n)
		}
		one.own.refuse("webhook-state-")
		w.setBehave(func(url string, m webhook.Message) webhook.Result {
			if strings.Contains(string(m.Payload), "orders:2") {
				return failed(url, m)
			}
			return webhook.Result{Outcome: webhook.Delivered}
		})
		if err := w.asks.RedeliverSince(t.Context(), order(s), began); err != nil {
			t.Fatal(err)
		}
		until(t, 5*time.Second, "it is told", func() bool { return len(kindsOf(w.received(here), "orders:1")) == 2 })
		<-time.After(2 * time.Second) // until nothing is kept of it, and the cursor is past it
		one.kill()
		w.join("two")
		<-time.After(time.Minute)
		if n := w.pendingOf(s.ID); n != 2 {
			t.Errorf("%d are shown as pending, want what is", n)
		}
	})
}

// pendingOf is how many deliveries are shown as pending where those attempted last are.
func (w *world) pendingOf(id string) (n int) {
	w.t.Helper()
	client := w.Connect(nil)
	defer client.Close()
	page, err := outbox.NewDeliveries(client.Records(), nil, nil).List(w.t.Context(), "acme", id, "", 1)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, d := range page.Deliveries {
		if d.State == webhook.StatePending {
			n++
		}
	}
	return n
}
