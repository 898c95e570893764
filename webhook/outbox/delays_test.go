package outbox_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/fencepost/fencepost/webhook"
	"github.com/fencepost/fencepost/webhook/outbox"
)

// TestHangsForOthers: a receiver that takes its time, or the URL of callbacks, and has much before
// it delays no other target of its shard.
func TestHangsForOthers(t *testing.T) {
	const elsewhere = "https://elsewhere.example/"
	for name, burden := range map[string]func(w *world, r *replica){
		"a subscription": func(_ *world, r *replica) {
			for i := range outbox.MaxOfTarget*3/8 + 50 {
				r.cycle("acme", fmt.Sprint("orders:", i))
			}
		},
		"callbacks": func(w *world, r *replica) {
			for i := range outbox.MaxOfTarget*3/4 + 50 {
				w.async(r, fmt.Sprint("batch:", i), time.Hour)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, func(t *testing.T, w *world) {
				r, _ := warm(t, w)
				if _, err := w.hooks.RotateCallback(t.Context(), actor(principal("acme"))); err != nil {
					t.Fatal(err)
				}
				for i := range 24 { // of each shard, or nearly so
					w.subscribe("bolt", fmt.Sprint(elsewhere, i), "*")
				}
				<-time.After(20 * time.Second)
				hang := make(chan struct{})
				w.setBehave(func(url string, _ webhook.Message) webhook.Result {
					if url == here || url == there {
						w.mu.Unlock()
						<-hang
						w.mu.Lock()
					}
					return webhook.Result{Outcome: webhook.Delivered}
				})
				burden(w, r)
				<-time.After(100 * time.Millisecond)
				r.take("bolt", "a")
				<-time.After(500 * time.Millisecond)
				for i := range 24 {
					if n := len(w.received(fmt.Sprint(elsewhere, i))); n != 1 {
						t.Errorf("the receiver %d of another tenant gets %d events", i, n)
					}
				}
				close(hang)
			})
		})
	}
}
