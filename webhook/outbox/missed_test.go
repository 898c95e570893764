package outbox_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fencepost/fencepost/api"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/test/poll"
	"github.com/fencepost/fencepost/webhook"
	"github.com/fencepost/fencepost/webhook/outbox"
	"github.com/fencepost/fencepost/webhook/subscription"
)

// TestMissedMeanwhile: while events.missed takes long to reach a receiver, further gaps are kept,
// so that the cursor continues; and the receiver learns of all of them in the end.
func TestMissedMeanwhile(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		r, s := warm(t, w)
		hang := make(chan struct{})
		var real follower
		stop := real.follow(t, r)
		w.setBehave(failed)
		for i := range outbox.MaxOfTarget/2 - 2 {
			r.cycle("acme", fmt.Sprint("orders:", i))
		}
		w.setBehave(func(url string, m webhook.Message) webhook.Result {
			if isMissed(m) {
				w.mu.Unlock()
				<-hang
				w.mu.Lock()
				return webhook.Result{Outcome: webhook.Delivered}
			}
			return failed(url, m)
		})
		for i := range 10 {
			r.cycle("acme", fmt.Sprint("bills:", i))
		}
		<-time.After(3 * time.Second)
		for i := range 10 {
			r.cycle("acme", fmt.Sprint("invoices:", i))
		}
		<-time.After(20 * time.Second) // a tenant's deliveries are kept in turns
		stop()
		last := real.seen[len(real.seen)-1].ID
		if at := w.cursorOf(s.ID); at.Compare(last) < 0 {
			t.Errorf("the cursor is at %s, and the last event was %s", at, last)
		}
		close(hang)
		w.setBehave(nil)
		w.untilNoneLeft(10 * time.Hour)
		w.wantTold(here, s.From, real.seen)
		for _, one := range w.received(here) {
			if one.event.Type == api.EventsMissed && one.event.Data.After == (lock.EventID{}).String() {
				t.Errorf("it is told that everything is missing: %+v", one.event.Data)
			}
		}
	})
}

// TestGrantsOfAnother: one release that grants very many entries of another tenant makes no
// receiver miss anything.
func TestGrantsOfAnother(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		r, _ := warm(t, w)
		g := r.takeFor("flood", "a", time.Hour)
		wish := acquire("flood", "a", time.Hour)
		wish.Claims[0].Mode, wish.Wait, wish.Async = lock.Shared, time.Hour, true
		for range 30_000 { // more than those have room for who follow all tenants
			if _, err := r.Acquire(t.Context(), wish); err != nil {
				t.Fatal(err)
			}
		}
		<-time.After(2 * time.Second)
		r.cycle("acme", "before")
		r.release("flood", "a", g)
		r.cycle("acme", "after")
		<-time.After(30 * time.Second)
		got := w.received(here)
		for _, one := range got {
			if one.event.Type == api.EventsMissed {
				t.Errorf("it is told to miss %+v", one.event.Data)
			}
		}
		if before, after := kindsOf(got, "before"), kindsOf(
			got, "after",
		); len(before) != 2 || len(after) != 2 {
			t.Errorf("told are %v and %v", before, after)
		}
	})
}

// TestMissedIsSentOnRequest: a tenant can have events.missed sent at once, like any delivery that
// waits for a retry.
func TestMissedIsSentOnRequest(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		r, s := warm(t, w)
		w.setBehave(failed)
		for i := range outbox.MaxOfTarget/2 + 2 {
			r.cycle("acme", fmt.Sprint("orders:", i))
		}
		<-time.After(time.Minute) // until its third attempt is minutes away
		id := w.missedOf(s)
		w.setBehave(func(url string, m webhook.Message) webhook.Result {
			if isMissed(m) {
				return webhook.Result{Outcome: webhook.Delivered}
			}
			return failed(url, m)
		})
		after, end, _ := strings.Cut(id, "_")
		for _, bad := range []string{
			"_", "x_y", id + "_", strings.Repeat("1", 500) + "_1-1", "1-1_1-1\n", "missed", "9-9_1-1",
			"2-1_2-0", "1-1_" + end, after + "_900000-1", end + "_" + after,
		} {
			if err := w.asks.Redeliver(t.Context(), order(s), bad); !errors.Is(err, lock.NotFound) {
				t.Errorf("%.20q: %v", bad, err)
			}
		}
		// as before it grew
		if err := w.asks.Redeliver(t.Context(), order(s), after+"_"+after); err != nil {
			t.Fatal(err)
		}
		poll.Within(t, 10*time.Second, "the receiver gets it", func() bool {
			got := w.received(here)
			return got[len(got)-1].id == id
		})
		if err := w.asks.Redeliver(t.Context(), order(s), id); !errors.Is(err, lock.NotFound) {
			t.Errorf("once more: %v", err)
		}
	})
}

// missedOf is the id of the delivery that tells a subscription what it misses.
func (w *world) missedOf(s *subscription.Subscription) string {
	w.t.Helper()
	for cursor, more := "", true; more; more = cursor != "" {
		page, err := w.asks.List(w.t.Context(), s.Tenant, s.ID, cursor, 100)
		if err != nil {
			w.t.Fatal(err)
		}
		if at := slices.IndexFunc(
			page.Deliveries, func(d outbox.Delivery) bool { return d.Type == api.EventsMissed },
		); at >= 0 {
			return page.Deliveries[at].ID
		}
		cursor = page.Next
	}
	w.t.Fatal("nothing is told to be missed")
	return ""
}
