package outbox_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service"
	"github.com/fencepost/fencepost/test/poll"
	"github.com/fencepost/fencepost/webhook"
	"github.com/fencepost/fencepost/webhook/outbox"
)

// TestClockJumps: the owner's wall clock jumps by an hour while deliveries wait to be tried
// again. They are tried when they would have been, a grant as long as its lease runs, and each
// attempt has a time of its own.
func TestClockJumps(t *testing.T) {
	for _, by := range []time.Duration{time.Hour, -time.Hour} {
		t.Run(fmt.Sprint(by), func(t *testing.T) {
			run(t, func(t *testing.T, w *world) {
				r, s := warm(t, w)
				w.callbackSecret()
				w.setBehave(failed)
				r.take("acme", "orders:1")
				w.async(r, "batch", time.Hour)
				<-time.After(time.Second)
				w.setAhead(by)
				r.take("acme", "orders:2")
				<-time.After(time.Second)
				w.setBehave(nil)
				poll.Within(t, 7*time.Second, "all are told", func() bool {
					return acquired(w) == 1 && len(w.received(there)) == 1 &&
						len(kindsOf(w.received(here), "orders:2")) == 1
				})
				w.async(r, "another", time.Hour)
				w.untilTold(time.Second, there, "", 2)
				<-time.After(10 * time.Second)
				page, err := w.asks.List(t.Context(), "acme", s.ID, "", 100)
				if err != nil {
					t.Fatal(err)
				}
				i := slices.IndexFunc(
					page.Deliveries, func(d outbox.Delivery) bool { return d.Lock == "orders:1" },
				)
				if all := page.Deliveries[i].Attempts; len(all) != 2 ||
					(all[1].At.Sub(all[0].At)-by).Abs() > 10*time.Second {
					t.Errorf("the attempts were made at %+v", all)
				}
				w.untilNoneLeft(time.Minute)
			})
		})
	}
}

// TestEndedMeanwhile: the notice of a grant is not sent once the entry is known to have ended,
// however long its lease would have lasted.
func TestEndedMeanwhile(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		r := callable(t, w)
		w.setBehave(failed)
		g := w.async(r, "batch", time.Hour)
		<-time.After(time.Second)
		r.release("acme", "batch", g)
		w.setBehave(nil)
		<-time.After(15 * time.Second)
		if got := w.received(there); len(got) != 0 {
			t.Errorf("told %+v", got)
		}
		page, err := w.asks.List(t.Context(), "acme", outbox.Callbacks, "", 100)
		if err != nil || len(page.Deliveries) != 1 || page.Deliveries[0].State != webhook.StateExpired {
			t.Errorf("the record is %+v, %v", page, err)
		}
	})
}

// TestFirstSecret: a grant that comes right after a tenant's first secret was made is sent as soon
// as the owner knows the secret, and the attempts that wait for that take no step of the schedule.
func TestFirstSecret(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		r, _ := warm(t, w)
		r.own.setBlind(true)
		if _, err := w.hooks.RotateCallback(t.Context(), actor(principal("acme"))); err != nil {
			t.Fatal(err)
		}
		w.async(r, "batch", time.Hour)
		<-time.After(time.Second)
		r.own.setBlind(false)
		w.untilTold(3*time.Second, there, "", 1)
		<-time.After(10 * time.Second)
		page, err := w.asks.List(t.Context(), "acme", outbox.Callbacks, "", 100)
		if err != nil || len(page.Deliveries) != 1 || page.Deliveries[0].Tried != 1 {
			t.Errorf("the record is %+v, %v", page, err)
		}
	})
}

// TestNoSecretEver: a tenant without a secret sees in the list why nothing comes.
func TestNoSecretEver(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		r, _ := warm(t, w)
		w.async(r, "batch", time.Hour)
		<-time.After(20 * time.Second)
		page, err := w.asks.List(t.Context(), "acme", outbox.Callbacks, "", 100)
		if err != nil || len(page.Deliveries) != 1 || len(page.Deliveries[0].Attempts) == 0 ||
			page.Deliveries[0].Attempts[0].Outcome != webhook.Rejected {
			t.Errorf("the record is %+v, %v", page, err)
		}
	})
}

// TestCallbackSaysWhenItEnds: a callback is of use until the lease of its grant is over, and says
// when that is.
func TestCallbackSaysWhenItEnds(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		r := callable(t, w)
		var notAfter []time.Time
		w.setBehave(func(url string, m webhook.Message) webhook.Result {
			if url == there {
				notAfter = append(notAfter, m.NotAfter)
			}
			return webhook.Result{Outcome: webhook.Delivered}
		})
		w.async(r, "batch", time.Hour)
		w.untilTold(time.Second, there, "batch", 1)
		w.wantEnd(w.received(there)[0], notAfter[0], 20*time.Second)
	})
}

// wantEnd wants a callback to end a TTL after it came, about.
func (w *world) wantEnd(got received, notAfter time.Time, ttl time.Duration) {
	w.t.Helper()
	said, err := time.Parse(time.RFC3339, string(got.event.Data.Entry.ExpiresAt))
	if err != nil {
		w.t.Fatal(err)
	}
	for what, at := range map[string]time.Time{"expires_at": said, "NotAfter": notAfter} {
		if off := at.Sub(got.at.Add(ttl)).Abs(); off > 2*time.Second {
			w.t.Errorf("%s is %v off", what, off)
		}
	}
}

// TestCallbackOfAProlongedLease: the callback of an entry that still holds is sent although its TTL
// has passed since the grant. An election or a restart prolongs leases, and a client may renew.
func TestCallbackOfAProlongedLease(t *testing.T) {
	for name, ends := range map[string]func(r *replica){
		"before it is written": func(r *replica) { r.own.refuse("webhook-owed-") },
		"after it is written":  func(*replica) {},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, func(t *testing.T, w *world) {
				one := callable(t, w)
				two := second(t, w)
				ends(one)
				w.attemptsTake(time.Hour)
				g := w.async(two, "batch", time.Hour)
				<-time.After(5 * time.Second)
				w.join("another") // which does nothing
				one.kill()
				for range 4 {
					<-time.After(6 * time.Second)
					if _, err := two.Renew(t.Context(), service.TokenRequest{
						Tenant: "acme", Name: "batch", Token: g.Token,
					}); err != nil {
						t.Fatal(err)
					}
				}
				var notAfter time.Time
				w.setBehave(func(url string, m webhook.Message) webhook.Result {
					if url == there {
						notAfter = m.NotAfter
					}
					return webhook.Result{Outcome: webhook.Delivered}
				})
				w.attemptsTake(time.Millisecond)
				w.leave("another")
				w.join("two")
				w.untilTold(time.Minute, there, "batch", 1)
				w.wantEnd(w.received(there)[0], notAfter, 20*time.Second)
			})
		})
	}
}

// TestAskedByAnotherClock: a test waits until the owner knows its subscription, whatever the wall
// clock of the owner says.
func TestAskedByAnotherClock(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		r, _ := warm(t, w)
		w.setAhead(time.Hour)
		r.own.setBlind(true)
		s := w.subscribe("acme", there, "*")
		if _, err := w.asks.Test(t.Context(), order(s)); err != nil {
			t.Fatal(err)
		}
		<-time.After(5 * time.Second)
		r.own.setBlind(false)
		w.untilTold(time.Minute, there, "", 1)
	})
}

func (w *world) setAhead(by time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ahead = by
}

// TestMissedSoonByAnotherClock: an events.missed that failed is sent soon after the receiver
// answers, although the wall clock was set back.
func TestMissedSoonByAnotherClock(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		r, s := warm(t, w)
		w.setBehave(failed)
		for i := range outbox.MaxOfTarget/2 + 2 {
			r.cycle("acme", fmt.Sprint("orders:", i))
		}
		<-time.After(time.Minute) // until its third attempt is minutes away
		w.setBehave(nil)
		w.setAhead(-24 * time.Hour)
		id := w.missedOf(s)
		<-time.After(time.Minute)
		page, err := w.asks.List(t.Context(), "acme", s.ID, "", 100)
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(page.Deliveries, func(d outbox.Delivery) bool {
			return d.Type == string(lock.EventReleased) && d.State == webhook.StatePending
		})
		if err := w.asks.Redeliver(t.Context(), order(s), page.Deliveries[i].ID); err != nil {
			t.Fatal(err)
		}
		poll.Within(t, 10*time.Second, "the receiver gets it", func() bool {
			return w.times(here)[id] > 0
		})
	})
}
