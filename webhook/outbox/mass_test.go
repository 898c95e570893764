package outbox_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/store/memory"
	"github.com/fencepost/fencepost/test/poll"
	"github.com/fencepost/fencepost/webhook"
	"github.com/fencepost/fencepost/webhook/outbox"
)

// readers queues async readers with callbacks behind a writer, at another replica than the first
// if there is one, and returns the writer.
func (w *world) readers(r *replica, tenant string, n int, ttl time.Duration) *service.Grant {
	w.t.Helper()
	writer := r.takeFor(tenant, "mass", 10*time.Minute)
	for range n {
		w.reader(r, tenant, ttl)
	}
	return writer
}

func (w *world) reader(r *replica, tenant string, ttl time.Duration) {
	w.t.Helper()
	req := acquire(tenant, "mass", ttl)
	req.Claims[0].Mode, req.Wait = lock.Shared, time.Hour
	req.Async, req.Callback = true, &lock.Callback{URL: there, Secret: "current"}
	if _, err := r.Acquire(w.t.Context(), req); err != nil {
		w.t.Fatal(err)
	}
}

// times returns how often each callback came, by its id.
func (w *world) times(url string) map[string]int {
	seen := map[string]int{}
	for _, one := range w.received(url) {
		seen[one.id]++
	}
	return seen
}

// callsOnly is a replica that sends callbacks, and has no subscription.
func callsOnly(w *world) *replica {
	r := w.replica("one")
	w.callbackSecret()
	<-time.After(10 * time.Second)
	return r
}

// TestMassGrant: of more grants at once than may be pending each is called back, once, as fast as
// the receiver takes them.
func TestMassGrant(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		r := callsOnly(w)
		const n = outbox.MaxOfTarget + 2000
		w.attemptsTake(5 * time.Millisecond)
		w.release(r, w.readers(r, "acme", n, time.Hour))
		began := time.Now()
		poll.Within(t, n/4*5*time.Millisecond+10*time.Second, "all are called back", func() bool {
			return len(w.times(there)) == n
		})
		t.Logf("%d are called back within %v", n, time.Since(began))
		if got := len(w.received(there)); got != n {
			t.Errorf("%d callbacks of %d entries", got, n)
		}
		w.untilNoneLeft(5 * time.Minute)
	})
}

func (w *world) release(r *replica, g *service.Grant) { r.release("acme", "mass", g) }

// TestMassGrantOutlivesItsOwner: the next owner calls back grants that were not taken up when their
// owner died.
func TestMassGrantOutlivesItsOwner(t *testing.T) {
	for name, ends := range map[string]func(w *world, one *replica){
		"dies": func(_ *world, one *replica) { one.kill() },
		"ends": func(w *world, one *replica) { w.leave("one"); one.stop() },
	} {
		t.Run(name, func(t *testing.T) {
			run(t, func(t *testing.T, w *world) {
				one := callsOnly(w)
				two := second(t, w)
				const n = outbox.MaxOfTarget + 1500
				w.attemptsTake(20 * time.Millisecond)
				w.release(two, w.readers(two, "acme", n, time.Hour))
				<-time.After(4 * time.Second) // until some are called, and some are not taken up
				ends(w, one)
				w.join("two")
				poll.Within(t, time.Minute, "all are called back", func() bool {
					return len(w.times(there)) == n
				})
				w.untilNoneLeft(5 * time.Minute)
				if got := len(w.received(there)); name == "ends" && got > n+4 { // four were under way
					t.Errorf("%d callbacks of %d entries", got, n)
				}
			})
		})
	}
}

// TestMassGrantHoldsUpNoOther: grants that wait for a slow receiver delay no other callback, and no
// subscription.
func TestMassGrantHoldsUpNoOther(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		r := callsOnly(w)
		const elsewhere = "https://elsewhere.example/"
		for i := range 24 { // of each shard, or nearly so
			w.subscribe("bolt", fmt.Sprint(elsewhere, i), "*")
		}
		<-time.After(20 * time.Second)
		writer := w.readers(r, "acme", 2*outbox.MaxOfTarget, time.Hour)
		hang := make(chan struct{})
		w.setBehave(func(url string, _ webhook.Message) webhook.Result {
			if url == there {
				w.mu.Unlock()
				<-hang
				w.mu.Lock()
			}
			return webhook.Result{Outcome: webhook.Delivered}
		})
		w.release(r, writer)
		<-time.After(20 * time.Second)
		r.take("bolt", "a")
		<-time.After(500 * time.Millisecond)
		for i := range 24 {
			if n := len(w.received(fmt.Sprint(elsewhere, i))); n != 1 {
				t.Errorf("the receiver %d of another tenant gets %d events", i, n)
			}
		}
		close(hang)
		poll.Within(t, time.Minute, "all are called back", func() bool {
			return len(w.times(there)) == 2*outbox.MaxOfTarget
		})
	})
}

// TestMassGrantTooLate: grants that end before a slow receiver has taken them are recorded as
// expired, counted, and logged once.
func TestMassGrantTooLate(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		r := callsOnly(w)
		const n = outbox.MaxOfTarget + 1000
		w.attemptsTake(100 * time.Millisecond)
		w.release(r, w.readers(r, "acme", n, 20*time.Second))
		<-time.After(time.Minute)
		called := len(w.received(there))
		w.mu.Lock()
		expired := 0
		for _, o := range w.outcomes {
			if o == string(webhook.Expired) {
				expired++
			}
		}
		w.mu.Unlock()
		if called < 500 || called+expired != n {
			t.Errorf("of %d grants %d were called back, and %d counted as too late", n, called, expired)
		}
		page, err := w.asks.List(t.Context(), "acme", outbox.Callbacks, "", 100)
		if err != nil || len(page.Deliveries) == 0 || page.Deliveries[0].State != webhook.StateExpired {
			t.Errorf("the records are %+v, %v", page, err)
		}
		if lines := w.logged("callbacks were not sent"); len(lines) != 1 && len(lines) != 2 {
			t.Errorf("logged %q", lines)
		}
		w.untilNoneLeft(5 * time.Minute)
	})
}

// TestTakenUpIsWritten: of the grants that had to wait for space, those that were taken up are
// written if their receiver is slow, so that the next owner need not look for them.
func TestTakenUpIsWritten(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		r := callsOnly(w)
		const n = 1500
		w.attemptsTake(20 * time.Millisecond)
		w.release(r, w.readers(r, "acme", outbox.MaxOfTarget+n, time.Hour))
		<-time.After(10 * time.Second)
		w.attemptsTake(time.Hour)
		<-time.After(10 * time.Second)
		called, kept := len(w.received(there)), 0
		for _, n := range w.recordsOf("webhook-owed-") {
			kept += n
		}
		if called < n || called+kept != outbox.MaxOfTarget+n {
			t.Errorf("%d are called back, and %d in the store", called, kept)
		}
	})
}

// TestWaitingCallsWriteNoStates: while a tenant's callbacks wait, the stored position covers those
// that come after it too. So they cost no writes, and the next owner calls them back all the same.
func TestWaitingCallsWriteNoStates(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		one := callsOnly(w)
		two := second(t, w)
		w.attemptsTake(time.Hour)
		w.release(two, w.readers(two, "acme", outbox.MaxOfTarget+10, time.Hour))
		<-time.After(20 * time.Second)
		before := one.own.statesWritten()
		const more = 100
		for range more {
			w.reader(two, "acme", time.Hour)
			<-time.After(200 * time.Millisecond)
		}
		if n := one.own.statesWritten() - before; n > 2 {
			t.Errorf("%d callbacks that wait cost %d writes of the state", more, n)
		}
		one.kill()
		w.attemptsTake(time.Millisecond)
		w.join("two")
		poll.Within(t, 5*time.Minute, "all are called back", func() bool {
			return len(w.times(there)) == outbox.MaxOfTarget+10+more
		})
	})
}

// lagging is a cable over which the feed comes late.
type lagging struct {
	*memory.Cable
	late atomic.Bool
}

func (l *lagging) Tell(ctx context.Context, r memory.Run) error {
	for l.late.Load() && store.Pause(ctx, 10*time.Millisecond) == nil {
	}
	return l.Cable.Tell(ctx, r)
}

// TestLaggingOwnerCallsBackWhatWaits: the next owner of a shard may not have seen yet what the one
// before has. It calls back the grants that wait all the same.
func TestLaggingOwnerCallsBackWhatWaits(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		one := callsOnly(w)
		slow := &lagging{}
		w.wire = func(c *memory.Cable) memory.Wire { slow.Cable = c; return slow }
		second(t, w)
		w.setBehave(failed)
		w.release(one, w.readers(one, "acme", outbox.MaxOfTarget, time.Hour))
		<-time.After(10 * time.Second) // until all are in the store
		slow.late.Store(true)
		req := acquire("acme", "batch", time.Hour)
		req.Async, req.Callback = true, &lock.Callback{URL: there, Secret: "current"}
		if _, err := one.Acquire(t.Context(), req); err != nil {
			t.Fatal(err)
		}
		<-time.After(3 * time.Second) // until it waits, and the cursor is past it
		w.setBehave(nil)
		w.join("two")
		w.leave("one")
		one.stop()
		<-time.After(2 * time.Second)
		slow.late.Store(false)
		<-time.After(30 * time.Minute)
		if n := len(kindsOf(w.received(there), "batch")); n != 1 {
			t.Errorf("it is called back %d times", n)
		}
	})
}
