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
	"github.com/fencepost/fencepost/service"
	"github.com/fencepost/fencepost/test/poll"
	"github.com/fencepost/fencepost/webhook"
	"github.com/fencepost/fencepost/webhook/outbox"
	"github.com/fencepost/fencepost/webhook/subscription"
)

func failed(string, webhook.Message) webhook.Result {
	return webhook.Result{Outcome: webhook.Failed, Status: 500, Err: "it answered 500"}
}

// warm is a replica with a subscription to all events of a tenant, which has received one.
func warm(t *testing.T, w *world) (*replica, *subscription.Subscription) {
	t.Helper()
	r := w.replica("one")
	<-time.After(time.Second)
	s := w.subscribe("acme", here, "*")
	poll.Within(
		t, 20*time.Second, "it is told",
		func() bool { r.cycle("acme", "warm"); return len(w.received(here)) > 0 },
	)
	<-time.After(10 * time.Second)
	return r, s
}

// TestDeadReceiver: the pending deliveries of a receiver that is down for long are bounded, and it
// receives what it misses as events.missed.
func TestDeadReceiver(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		r, s := warm(t, w)
		w.setBehave(failed)
		var real follower
		stop := real.follow(t, r)
		for i := range outbox.MaxOfTarget/2 + 500 {
			r.cycle("acme", fmt.Sprint("orders:", i))
		}
		<-time.After(time.Minute)
		stop()
		kept := 0
		for _, n := range w.recordsOf("webhook-owed-") {
			kept += n
		}
		if kept > outbox.MaxOfTarget+1 || kept < outbox.MaxOfTarget*9/10 {
			t.Errorf("%d deliveries are kept, want the bound of %d", kept, outbox.MaxOfTarget)
		}
		w.setBehave(nil)
		w.untilNoneLeft(10 * time.Hour)
		if missed, _ := w.wantTold(here, s.From, real.seen); missed == 0 {
			t.Error("it is not told that something is missing")
		}
		if n := len(w.received(here)); n < outbox.MaxOfTarget*9/10 {
			t.Errorf("%d events were told, want what was kept", n)
		}
	})
}

// TestGone: who answers 410 is sent nothing more, until he is set going again.
func TestGone(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		r, s := warm(t, w)
		w.setBehave(func(string, webhook.Message) webhook.Result {
			return webhook.Result{Outcome: webhook.Gone, Status: 410}
		})
		r.cycle("acme", "orders:1")
		<-time.After(10 * time.Second)
		w.setBehave(nil)
		was := w.attempts()
		r.cycle("acme", "orders:2")
		<-time.After(time.Hour)
		if n := w.attempts() - was; n != 0 {
			t.Errorf("%d attempts after 410", n)
		}
		page, err := w.asks.List(t.Context(), "acme", s.ID, "", 1)
		if err != nil {
			t.Fatal(err)
		}
		if health := page.Health; health.Disabled != webhook.DisabledGone || health.Enabled != s.Enabled {
			t.Errorf("its health is %+v", health)
		}
		off := false
		if _, err := w.hooks.Update(
			t.Context(), actor(principal("acme")), s.ID, subscription.Change{Paused: &off},
		); err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Minute)
		r.cycle("acme", "orders:3")
		w.untilTold(time.Second, here, "orders:3", 2)
	})
}

// TestDeleted: of a subscription that was deleted nothing is left.
func TestDeleted(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		r, s := warm(t, w)
		w.setBehave(failed)
		r.cycle("acme", "orders:1")
		poll.Within(t, 10*time.Second, "it is kept", func() bool { return len(w.left()) > 0 })
		if err := w.hooks.Delete(t.Context(), actor(principal("acme")), s.ID); err != nil {
			t.Fatal(err)
		}
		poll.Within(
			t, 10*time.Second, "nothing is kept",
			func() bool { return len(w.left()) == 0 && len(w.recordsOf("webhook-state-")) == 0 },
		)
		was := w.attempts()
		r.cycle("acme", "orders:2")
		<-time.After(time.Hour)
		if n := w.attempts() - was; n != 0 {
			t.Errorf("%d attempts for what was deleted", n)
		}
	})
}

// TestShutDownLeavesNothingToResend: a replica that shuts down leaves nothing to send again.
func TestShutDownLeavesNothingToResend(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		r, _ := warm(t, w)
		for range 20 {
			r.cycle("acme", "orders:1")
		}
		w.leave("one")
		r.stop()
		two := w.replica("two")
		poll.Within(t, time.Minute, "another one tells", func() bool {
			two.cycle("acme", "orders:2")
			return len(kindsOf(w.received(here), "orders:2")) >= 2
		})
		<-time.After(time.Minute)
		seen := map[string]int{}
		for _, one := range w.received(here) {
			if seen[one.id]++; seen[one.id] > 1 {
				t.Errorf("%s, %s, was told again", one.id, one.event.Type)
			}
		}
		if n := len(kindsOf(w.received(here), "orders:1")); n != 40 {
			t.Errorf("%d events were told, want 40", n)
		}
	})
}

// TestAsked: tests and deliveries that are asked for again.
func TestAsked(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		r, s := warm(t, w)
		id, err := w.asks.Test(t.Context(), order(s))
		if err != nil {
			t.Fatal(err)
		}
		poll.Within(t, 5*time.Second, "the test comes", func() bool {
			got := w.received(here)
			return got[len(got)-1].id == id && got[len(got)-1].event.Type == api.WebhookTest
		})
		r.cycle("acme", "orders:1")
		w.untilTold(time.Second, here, "orders:1", 2)
		got := w.received(here)
		again := got[len(got)-1].id
		if err := w.asks.Redeliver(t.Context(), order(s), again); err != nil {
			t.Fatal(err)
		}
		w.untilTold(5*time.Second, here, "orders:1", 3)
		if err := w.asks.Redeliver(t.Context(), order(s), "1-1"); !errors.Is(err, lock.NotFound) {
			t.Errorf("what nobody knows: %v", err)
		}
		since := time.Now()
		w.setBehave(failed)
		r.cycle("acme", "orders:2")
		<-time.After(10 * time.Second)
		w.setBehave(nil)
		r.cycle("acme", "orders:3")
		<-time.After(time.Second)
		if err := w.redeliverSince(order(s), since); err != nil {
			t.Fatal(err)
		}
		poll.Within(t, 5*time.Second, "all since then is told again", func() bool {
			got := w.received(here)
			return len(kindsOf(got, "orders:2")) == 2 && len(kindsOf(got, "orders:3")) == 4 &&
				len(kindsOf(got, "orders:1")) == 3
		})
		<-time.After(10 * time.Second)
		page, err := w.asks.List(t.Context(), "acme", s.ID, "", 100)
		if err != nil || len(page.Deliveries) < 5 || page.Deliveries[0].State != webhook.StateDelivered {
			t.Errorf("the list is %+v, %v", page, err)
		}
		w.untilNoneLeft(time.Minute)
	})
}

// TestCallback: the callback of an async entry receives its grant with the token, in time.
func TestCallback(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		r := callable(t, w)
		first := r.take("acme", "batch")
		g := w.async(r, "batch", 20*time.Second)
		<-time.After(time.Second)
		if n := len(w.received(there)); n != 0 {
			t.Errorf("%d callbacks before the grant", n)
		}
		r.release("acme", "batch", first)
		w.untilTold(2*time.Second, there, "", 1)
		told := w.received(there)[0].event
		if told.Type != string(lock.EventAcquired) || told.Data.Entry.Token != g.Token ||
			told.Data.Entry.Fence != g.Entry.Number || told.Data.Entry.ExpiresAt == "" {
			t.Errorf("told %+v, want token %s and fence %d", told.Data.Entry, g.Token, g.Entry.Number)
		}
		for _, one := range w.received(here) {
			if one.event.Data.Entry.Token != "" {
				t.Error("a subscription is told a token")
			}
		}
		r.release("acme", "batch", g)

		first = r.take("acme", "batch")
		w.async(r, "batch", 20*time.Second)
		w.untilTold(30*time.Second, there, "", 2)
		if told := w.received(there)[1].event; told.Type != string(lock.EventWaitTimeout) ||
			told.Data.Entry.Token != "" {
			t.Errorf("told %+v", told)
		}

		w.async(r, "batch", time.Hour)
		w.setBehave(failed)
		if g, err := r.Renew(
			t.Context(), service.TokenRequest{Tenant: "acme", Name: "batch", Token: first.Token},
		); err != nil {
			t.Fatal(g, err)
		}
		r.release("acme", "batch", first)
		<-time.After(time.Minute)
		w.setBehave(nil)
		<-time.After(time.Hour)
		if n := len(w.received(there)); n != 2 {
			t.Errorf("a grant is told when its lease is over: %+v", w.received(there)[2:])
		}
		page, err := w.asks.List(t.Context(), "acme", outbox.Callbacks, "", 100)
		if err != nil || !slices.ContainsFunc(
			page.Deliveries, func(d outbox.Delivery) bool { return d.State == webhook.StateExpired },
		) {
			t.Errorf("no record says expired: %+v, %v", page, err)
		}
		if text := fmt.Sprintf("%+v", page); strings.Contains(text, "fp1_") {
			t.Error("a listing shows a token")
		}
		if left := w.left(); len(left) > 0 {
			t.Errorf("kept: %v", left)
		}
	})
}

func (w *world) async(r *replica, name string, wait time.Duration) *service.Grant {
	w.t.Helper()
	g, err := r.Acquire(w.t.Context(), service.AcquireRequest{
		Tenant: "acme", Claims: []lock.Claim{{Name: name, Mode: lock.Exclusive}}, Holder: "job",
		TTL: 20 * time.Second, Wait: wait,
		Async: true, Callback: &lock.Callback{URL: there, Secret: "current"},
	})
	if err != nil {
		w.t.Fatalf("Acquire: %v", err)
	}
	return g
}

// TestBacklog: all events from while a shard had no owner reach its receivers: a
// receiver that is fast, and one that is slower than things happened.
func TestBacklog(t *testing.T) {
	for name, c := range map[string]struct {
		took   time.Duration
		cycles int
	}{"fast": {time.Millisecond, 2500}, "slow": {50 * time.Millisecond, 1400}} {
		t.Run(name, func(t *testing.T) {
			run(t, func(t *testing.T, w *world) { w.backlog(c.took, c.cycles) })
		})
	}
}

func (w *world) backlog(took time.Duration, cycles int) {
	one, s := warm(w.t, w)
	two := w.replica("two")
	<-time.After(time.Minute)
	var real follower
	stop := real.follow(w.t, two)
	one.kill()
	w.attemptsTake(took)
	for i := range cycles {
		two.cycle("acme", fmt.Sprint("orders:", i%10))
	}
	<-time.After(5 * time.Minute)
	stop()
	if missed, _ := w.wantTold(here, s.From, real.seen); missed > 0 || len(real.seen) < 2*cycles {
		w.t.Errorf("%d events, and something is missed %d times", len(real.seen), missed)
	}
}

// TestCallbackAtOnce: the callback comes also if the grant came before any replica owned the shard.
func TestCallbackAtOnce(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		if _, err := w.hooks.RotateCallback(t.Context(), actor(principal("acme"))); err != nil {
			t.Fatal(err)
		}
		r := w.replica("one")
		w.async(r, "batch", time.Hour)
		w.untilTold(15*time.Second, there, "", 1)
		<-time.After(time.Minute)
		if got := w.received(there); len(got) != 1 || got[0].event.Type != string(lock.EventAcquired) {
			t.Errorf("told %+v", got)
		}
	})
}
