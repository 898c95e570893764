package outbox_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/test/poll"
	"github.com/fencepost/fencepost/webhook"
	"github.com/fencepost/fencepost/webhook/subscription"
)

func (w *world) change(id string, c subscription.Change) {
	w.t.Helper()
	if _, err := w.hooks.Update(w.t.Context(), actor(principal("acme")), id, c); err != nil {
		w.t.Fatal(err)
	}
}

func paused(yes bool) subscription.Change { return subscription.Change{Paused: &yes} }

// TestChangeHoldsFromItsWrite: a change takes effect from its write on, although the owner learns
// of it later, or another replica owns the shard by then.
func TestChangeHoldsFromItsWrite(t *testing.T) {
	everything := "*"
	for name, c := range map[string]struct{ before, then subscription.Change }{
		"set going": {paused(true), paused(false)},
		"more":      {subscription.Change{Locks: new("none")}, subscription.Change{Locks: &everything}},
	} {
		for _, dies := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", the one who sends dies: ", dies), func(t *testing.T) {
				run(t, func(t *testing.T, w *world) {
					one, s := warm(t, w)
					two := w.replica("two")
					w.leave("two")
					w.change(s.ID, c.before)
					<-time.After(30 * time.Second)
					two.cycle("acme", "before:1")
					<-time.After(10 * time.Second)
					one.own.setBlind(true)
					w.change(s.ID, c.then)
					two.cycle("acme", "orders:1")
					<-time.After(5 * time.Second)
					if dies {
						one.kill()
						w.join("two")
					}
					one.own.setBlind(false)
					w.untilTold(time.Minute, here, "orders:1", 2)
					if got := kindsOf(w.received(here), "before:1"); len(got) > 0 {
						t.Errorf("it is told %v from before the change", got)
					}
				})
			})
		}
	}
}

// TestFirstOfTwoChangesHolds: the first of two changes takes effect from its write on, although the
// owner learns of both at once.
func TestFirstOfTwoChangesHolds(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		one, s := warm(t, w)
		two := w.replica("two")
		w.leave("two")
		w.change(s.ID, subscription.Change{Locks: new("none")})
		<-time.After(30 * time.Second)
		two.cycle("acme", "before:1")
		<-time.After(10 * time.Second)
		one.own.setBlind(true)
		w.change(s.ID, subscription.Change{Locks: new("*")})
		two.cycle("acme", "orders:1")
		<-time.After(time.Second)
		w.change(s.ID, subscription.Change{Description: new("all that happens")})
		one.own.setBlind(false)
		w.untilTold(time.Minute, here, "orders:1", 2)
		if got := kindsOf(w.received(here), "before:1"); len(got) > 0 {
			t.Errorf("it is told %v from before the changes", got)
		}
	})
}

// TestPausedJustNow: events from before a subscription was paused wait for it, although the
// owner that was about to send them is gone.
func TestPausedJustNow(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		one, s := warm(t, w)
		two := w.replica("two")
		w.leave("two")
		<-time.After(20 * time.Second)
		w.setBehave(failed)
		w.attemptsTake(time.Minute)
		two.cycle("acme", "orders:1")
		<-time.After(100 * time.Millisecond)
		w.change(s.ID, paused(true))
		<-time.After(400 * time.Millisecond)
		one.kill()
		w.join("two")
		<-time.After(time.Minute)
		w.setBehave(nil)
		w.attemptsTake(time.Millisecond)
		two.cycle("acme", "orders:2")
		<-time.After(time.Minute)
		w.change(s.ID, paused(false))
		w.untilTold(10*time.Minute, here, "orders:1", 2)
		if got := kindsOf(w.received(here), "orders:2"); len(got) > 0 {
			t.Errorf("it is told %v of while it was paused", got)
		}
	})
}

// TestStopsAtOnce: what waits for its turn is not sent any more to who answered 410, is
// paused or deleted, and elsewhere if the URL was changed.
func TestStopsAtOnce(t *testing.T) {
	for name, stop := range map[string]func(w *world, s *subscription.Subscription) webhook.Outcome{
		"gone": func(*world, *subscription.Subscription) webhook.Outcome { return webhook.Gone },
		"paused": func(w *world, s *subscription.Subscription) webhook.Outcome {
			w.change(s.ID, paused(true))
			return webhook.Failed
		},
		"deleted": func(w *world, s *subscription.Subscription) webhook.Outcome {
			if err := w.hooks.Delete(w.t.Context(), actor(principal("acme")), s.ID); err != nil {
				w.t.Fatal(err)
			}
			return webhook.Failed
		},
		"elsewhere": func(w *world, s *subscription.Subscription) webhook.Outcome {
			w.change(s.ID, subscription.Change{URL: new(there)})
			return webhook.Failed
		},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, func(t *testing.T, w *world) {
				r, s := warm(t, w)
				hang, outcome, asked := make(chan struct{}), webhook.Failed, 0
				w.setBehave(func(url string, _ webhook.Message) webhook.Result {
					if url == there {
						return webhook.Result{Outcome: webhook.Delivered}
					}
					asked++
					w.mu.Unlock()
					<-hang
					w.mu.Lock()
					return webhook.Result{Outcome: outcome}
				})
				for i := range 50 {
					r.cycle("acme", fmt.Sprint("orders:", i))
				}
				<-time.After(time.Second)
				how := stop(w, s)
				<-time.After(2 * time.Second)
				w.mu.Lock()
				outcome = how
				before := asked
				w.mu.Unlock()
				close(hang)
				<-time.After(4 * time.Second)
				w.mu.Lock()
				defer w.mu.Unlock()
				if asked > before+4 { // of 410, those that run learn of it one by one
					t.Errorf("%d attempts were made after that", asked-before)
				}
			})
		})
	}
}

// TestOldAnswer: an answer to what was sent before a subscription was set going does not
// disable it.
func TestOldAnswer(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		r, s := warm(t, w)
		hang := make(chan struct{})
		w.setBehave(func(string, webhook.Message) webhook.Result {
			w.mu.Unlock()
			<-hang
			w.mu.Lock()
			return webhook.Result{Outcome: webhook.Gone, Status: 410}
		})
		r.cycle("acme", "orders:1")
		<-time.After(time.Second)
		url, going := there, false
		w.change(s.ID, subscription.Change{URL: &url, Paused: &going})
		<-time.After(2 * time.Second)
		w.setBehave(nil)
		close(hang)
		<-time.After(time.Second)
		r.cycle("acme", "orders:2")
		w.untilTold(time.Second, there, "orders:2", 2)
	})
}

// TestDeletedWhileWritten: nothing is left of a subscription that is deleted while how it
// does is being written, or while its shard has no owner.
func TestDeletedWhileWritten(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		one, first := warm(t, w)
		one.own.slow("webhook-state-", 3*time.Second, 0)
		s := w.subscribe("acme", there, "*")
		<-time.After(2 * time.Second)
		if err := w.hooks.Delete(t.Context(), actor(principal("acme")), s.ID); err != nil {
			t.Fatal(err)
		}
		<-time.After(10 * time.Second)
		if n := w.states(); n != 1 {
			t.Errorf("%d states are kept, want that of the one that is there", n)
		}
		one.kill()
		if err := w.hooks.Delete(t.Context(), actor(principal("acme")), first.ID); err != nil {
			t.Fatal(err)
		}
		w.replica("two")
		poll.Within(t, 5*time.Minute, "nothing is kept", func() bool { return w.states() == 0 })
	})
}

func (w *world) states() (n int) {
	for _, count := range w.recordsOf("webhook-state-") {
		n += count
	}
	return n
}

// TestOldDirectoryKeepsPending: a new owner with an old copy of the subscriptions does not remove
// their pending deliveries.
func TestOldDirectoryKeepsPending(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		one, _ := warm(t, w)
		two := w.replica("two")
		w.leave("two")
		<-time.After(20 * time.Second)
		two.own.setBlind(true)
		w.subscribe("acme", there, "*")
		<-time.After(2 * time.Second)
		w.setBehave(failed)
		two.cycle("acme", "orders:1")
		<-time.After(3 * time.Second)
		one.kill()
		w.join("two")
		<-time.After(3 * time.Minute)
		w.setBehave(nil)
		two.own.setBlind(false)
		w.untilTold(10*time.Minute, there, "orders:1", 2)
	})
}

// TestAskedJustNow: a test that is asked for as soon as the subscription is made is sent.
func TestAskedJustNow(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		r, _ := warm(t, w)
		r.own.setBlind(true)
		s := w.subscribe("acme", there, "*")
		id, err := w.asks.Test(t.Context(), order(s))
		if err != nil {
			t.Fatal(err)
		}
		<-time.After(2 * time.Second)
		r.own.setBlind(false)
		poll.Within(t, 10*time.Second, "it is sent", func() bool {
			return slices.ContainsFunc(w.received(there), func(one received) bool { return one.id == id })
		})
		if err := w.hooks.Delete(t.Context(), actor(principal("acme")), s.ID); err != nil {
			t.Fatal(err)
		}
		if _, err := w.asks.Test(t.Context(), order(s)); err != nil {
			t.Fatal(err)
		}
		poll.Within(
			t, time.Minute, "no request is left",
			func() bool { return len(w.recordsOf("webhook-request-")) == 0 },
		)
	})
}

// TestFirstAttemptsInOrder: a new owner makes first attempts in the order of the events, those
// that it finds kept and those that it reads.
func TestFirstAttemptsInOrder(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		one, _ := warm(t, w)
		two := w.replica("two")
		w.leave("two")
		<-time.After(20 * time.Second)
		var order []string
		w.attemptsTake(time.Hour) // nothing comes of it
		for range 6 {
			two.cycle("acme", "orders:1")
		}
		<-time.After(5 * time.Second) // they are kept
		one.kill()
		w.join("two")
		w.attemptsTake(time.Millisecond)
		w.setBehave(func(_ string, m webhook.Message) webhook.Result {
			if strings.Contains(string(m.Payload), "orders:1") {
				order = append(order, m.ID)
				w.mu.Unlock()
				<-time.After(time.Second)
				w.mu.Lock()
				order = append(order, m.ID)
			}
			return webhook.Result{Outcome: webhook.Delivered}
		})
		w.untilTold(2*time.Minute, here, "orders:1", 12)
		ids := make([]lock.EventID, 0, len(order))
		for _, id := range order {
			ids = append(ids, parse(t, id))
		}
		if !slices.IsSortedFunc(ids, lock.EventID.Compare) {
			t.Errorf("attempts began and ended in the order %v", order)
		}
	})
}

// TestNarrowedDropsOthers: what is pending about locks that a subscription selects no longer is not
// sent, to its new URL neither, also by a replica that takes over.
func TestNarrowedDropsOthers(t *testing.T) {
	for _, dies := range []bool{false, true} {
		run(t, func(t *testing.T, w *world) {
			one, s := warm(t, w)
			two := second(t, w)
			w.setBehave(failed)
			two.cycle("acme", "orders:1")
			two.cycle("acme", "stock:1")
			<-time.After(4 * time.Second)
			if dies {
				one.kill()
			}
			w.change(s.ID, subscription.Change{Locks: new("stock:*"), URL: new(there)})
			w.join("two")
			w.setBehave(nil)
			poll.Within(t, 10*time.Minute, "the others are sent", func() bool {
				return len(kindsOf(w.received(there), "stock:1")) == 2 && len(w.left()) == 0
			})
			if n := len(kindsOf(w.received(there), "orders:1")); n > 0 {
				t.Errorf("dies %v: %d of other locks are sent", dies, n)
			}
		})
	}
}
