package outbox_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fencepost/fencepost/api"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/store/memory"
	"github.com/fencepost/fencepost/test/poll"
	"github.com/fencepost/fencepost/webhook"
	"github.com/fencepost/fencepost/webhook/outbox"
	"github.com/fencepost/fencepost/webhook/subscription"
)

// second is a replica that sends nothing until the first one, which is killed, is gone.
func second(t *testing.T, w *world) *replica {
	t.Helper()
	two := w.replica("two")
	w.leave("two")
	<-time.After(20 * time.Second)
	return two
}

// attemptsTake says how long each attempt takes from now on.
func (w *world) attemptsTake(took time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.took = took
}

// TestDiesAtOnce: what an owner was sending when it died is sent by the next, also when much
// that came later was delivered.
func TestDiesAtOnce(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		one, _ := warm(t, w)
		two := second(t, w)
		w.attemptsTake(time.Hour)
		two.cycle("acme", "orders:1")
		<-time.After(100 * time.Millisecond)
		w.attemptsTake(time.Millisecond)
		for range 4 {
			two.cycle("acme", "orders:2")
			<-time.After(400 * time.Millisecond)
		}
		one.kill()
		w.join("two")
		w.untilTold(time.Minute, here, "orders:1", 2)
	})
}

// TestKeptOnlyInTheStore: a delivery that failed and could not be kept holds the cursor up.
func TestKeptOnlyInTheStore(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		one, _ := warm(t, w)
		two := second(t, w)
		w.setBehave(failed)
		one.own.refuse("webhook-owed-")
		two.cycle("acme", "orders:1")
		<-time.After(4 * time.Second)
		if kinds := kindsOf(w.received(here), "orders:1"); len(kinds) > 0 {
			t.Fatalf("told %v", kinds)
		}
		one.kill()
		w.join("two")
		w.setBehave(nil)
		w.untilTold(time.Minute, here, "orders:1", 2)
	})
}

// TestOldOwner: an owner that was cut off and lost its shard changes neither the cursor nor
// pending deliveries.
func TestOldOwner(t *testing.T) {
	for range 12 { // whether it writes before it learns that it is the owner no more is left to chance
		oldOwner(t)
	}
}

func oldOwner(t *testing.T) {
	t.Helper()
	run(t, func(t *testing.T, w *world) {
		one, _ := warm(t, w)
		two := second(t, w)
		one.own.refuse("webhook-cursor") // there is something to write when it comes back
		two.cycle("acme", "orders:1")
		<-time.After(2 * time.Second)
		one.cable.Cut(memory.Silent)
		w.mu.Lock()
		w.stuck = "one"
		w.mu.Unlock()
		w.leave("one")
		w.join("two")
		<-time.After(15 * time.Second)
		before := one.own.written()
		one.own.refuse("")
		one.cable.Cut("")
		for range 50 {
			two.cycle("acme", "orders:2")
			<-time.After(100 * time.Millisecond)
		}
		if n := one.own.written() - before; n > 0 {
			t.Errorf("it has written a cursor %d times", n)
		}
		two.own.mu.Lock()
		refused := two.own.refused
		two.own.mu.Unlock()
		if refused > 0 {
			t.Errorf("%d writes of the new owner were refused", refused)
		}
	})
}

// TestNoTokenIsKept: of a callback that failed the token is not in the store.
func TestNoTokenIsKept(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		r := callable(t, w)
		w.setBehave(func(_ string, m webhook.Message) webhook.Result {
			if !strings.Contains(string(m.Payload), "fp1_") {
				return webhook.Result{Outcome: webhook.Delivered}
			}
			return failed("", m)
		})
		g := w.async(r, "batch", time.Hour)
		poll.Within(t, 4*time.Second, "it is kept", func() bool { return len(w.left()) > 0 })
		client := w.Connect(nil)
		defer client.Close()
		for _, c := range "01234567" {
			page, err := client.Records().List(
				t.Context(), store.RecordQuery{Kind: "webhook-owed-" + string(c)},
			)
			if err != nil {
				t.Fatal(err)
			}
			for _, record := range page.Records {
				if strings.Contains(string(record.Value), g.Token) {
					t.Errorf("the token is kept: %s", record.Value)
				}
			}
		}
	})
}

func cursorKey(id string) store.RecordKey {
	return store.RecordKey{Kind: "webhook-cursor", Tenant: store.NoTenant, ID: outbox.ShardOf(id)}
}

// TestCursorIsTriedAgain: a cursor that could not be written is, although nothing happens any more.
func TestCursorIsTriedAgain(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		r, s := warm(t, w)
		r.own.refuse("webhook-cursor")
		r.cycle("acme", "orders:1")
		w.untilTold(time.Second, here, "orders:1", 2)
		got := w.received(here)
		last := parse(t, got[len(got)-1].id)
		<-time.After(5 * time.Second)
		r.own.refuse("")
		poll.Within(
			t, 5*time.Second, "the cursor is behind it",
			func() bool { return w.cursorOf(s.ID).Compare(last) >= 0 },
		)
	})
}

// TestAskedOfWhoDies: what was asked for, and is taking long when its owner dies, is sent by the
// next.
func TestAskedOfWhoDies(t *testing.T) {
	for _, refused := range []string{"", "webhook-owed-"} { // that fail
		askedOfWhoDies(t, refused)
	}
}

func askedOfWhoDies(t *testing.T, refused string) {
	t.Helper()
	run(t, func(t *testing.T, w *world) {
		one, s := warm(t, w)
		two := second(t, w)
		two.take("acme", "orders:1")
		poll.Within(t, time.Second, "the receiver gets it", func() bool { return acquired(w) == 1 })
		got := w.received(here)
		<-time.After(5 * time.Second) // until the cursor is behind it
		w.attemptsTake(time.Hour)
		one.own.refuse(refused)
		if err := w.asks.Redeliver(t.Context(), order(s), got[len(got)-1].id); err != nil {
			t.Fatal(err)
		}
		<-time.After(2 * time.Second)
		one.kill()
		w.attemptsTake(time.Millisecond)
		w.join("two")
		poll.Within(t, time.Minute, "it is told again", func() bool { return acquired(w) == 2 })
	})
}

// TestHandsOver: who ends leaves its shards to the next at once.
func TestHandsOver(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		one, _ := warm(t, w)
		two := second(t, w)
		w.leave("one")
		w.join("two")
		one.stop()
		two.cycle("acme", "orders:1")
		w.untilTold(shardTime/2, here, "orders:1", 2)
	})
}

// shardTime is how long the lock of a shard lasts whose owner is gone.
const shardTime = 6 * time.Second

// TestEndsWhileItQueues: a replica that is terminated while it queues for shards leaves no entry
// that becomes their holder.
func TestEndsWhileItQueues(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		one, _ := warm(t, w)
		w.mu.Lock()
		w.stuck = "two" // it queues for all shards
		w.mu.Unlock()
		two, three := w.replica("two"), w.replica("three")
		w.leave("two")
		w.leave("three")
		<-time.After(20 * time.Second)
		two.Drain()
		<-time.After(100 * time.Millisecond)
		two.stop()
		w.leave("one")
		w.join("three")
		one.stop()
		three.cycle("acme", "orders:1")
		w.untilTold(shardTime/2, here, "orders:1", 2)
	})
}

// TestFirstOwnerEndsWithoutACursor: the first owner of a shard took up a subscription, and its
// cursor did not reach the store. The next owner has not seen what happened since: the receiver
// learns that it may miss that.
func TestFirstOwnerEndsWithoutACursor(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		one := w.replica("one")
		one.own.refuse("webhook-cursor")
		two := second(t, w)
		s := w.subscribe("acme", here, "*")
		poll.Within(t, 20*time.Second, "it is taken up", func() bool {
			return w.recordsOf("webhook-state-")["webhook-state-"+shardNumber(s)] > 0
		})
		one.kill()
		two.cycle("acme", "orders:1")
		two.kill()
		w.Compact()
		w.replica("three")
		poll.Within(t, time.Minute, "the receiver learns of the gap", func() bool {
			return slices.ContainsFunc(w.received(here), func(got received) bool {
				return got.event.Type == api.EventsMissed
			})
		})
	})
}

func shardNumber(s *subscription.Subscription) string {
	shard := outbox.ShardOf(s.ID)
	return shard[len(shard)-1:]
}
