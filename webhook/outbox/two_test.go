package outbox_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/fencepost/fencepost/api"
	"github.com/fencepost/fencepost/webhook"
)

// firsts checks that first attempts are made in the order of their events, for each receiver and
// lock.
type firsts struct {
	t    *testing.T
	seen map[string]bool
	last map[string]string // the id, by receiver and lock
	next func(url string, m webhook.Message) webhook.Result
}

func (f *firsts) attempt(url string, m webhook.Message) webhook.Result {
	var e api.Event
	if err := json.Unmarshal(m.Payload, &e); err != nil {
		f.t.Error(err)
	}
	of := url + " " + e.Data.Lock
	if !f.seen[url+m.ID] && e.Data.Lock != "" {
		if was := f.last[of]; was != "" && parse(f.t, m.ID).Compare(parse(f.t, was)) < 0 {
			f.t.Errorf("%s: %s is tried after %s", of, m.ID, was)
		}
		f.last[of] = m.ID
	}
	f.seen[url+m.ID] = true
	return f.next(url, m)
}

// TestTwoSend: two replicas send at once, each to its part of the receivers, what happens at both:
// each event comes, once if nothing fails, and first attempts are in order for each lock.
func TestTwoSend(t *testing.T) {
	for name, fails := range map[string]int{"all is well": 0, "one in three fails": 3} {
		t.Run(name, func(t *testing.T) {
			run(t, func(t *testing.T, w *world) {
				one, two := w.replica("one"), w.replica("two")
				<-time.After(time.Minute)
				urls, from := []string{}, []uint64{}
				for i := range 32 { // each replica has some of them
					urls = append(urls, fmt.Sprint("https://receiver.example/", i))
					from = append(from, w.subscribe("acme", urls[i], "*").From)
				}
				<-time.After(10 * time.Second)
				tries := 0
				order := &firsts{t: t, seen: map[string]bool{}, last: map[string]string{}}
				order.next = func(string, webhook.Message) webhook.Result {
					if tries++; fails > 0 && tries%fails == 0 {
						return failed("", webhook.Message{})
					}
					return webhook.Result{Outcome: webhook.Delivered}
				}
				w.setBehave(order.attempt)
				var real follower
				stop := real.follow(t, one)
				for i := range 60 {
					one.cycle("acme", fmt.Sprint("orders:", i%5))
					two.cycle("acme", fmt.Sprint("orders:", i%3))
				}
				<-time.After(5 * time.Second)
				stop()
				w.setBehave(nil)
				<-time.After(40 * time.Minute)
				for i, url := range urls {
					missed, twice := w.wantTold(url, from[i], real.seen)
					if missed > 0 || twice > 0 {
						t.Errorf("%s is told of %d gaps, and of %d events more than once", url, missed, twice)
					}
				}
				w.mu.Lock()
				defer w.mu.Unlock()
				if len(real.seen) < 240 || one.sent == 0 || two.sent == 0 {
					t.Errorf(
						"of %d events the replicas made %d and %d attempts", len(real.seen), one.sent, two.sent,
					)
				}
			})
		})
	}
}
