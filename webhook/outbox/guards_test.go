package outbox_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/store/memory"
	"github.com/fencepost/fencepost/test/poll"
	"github.com/fencepost/fencepost/webhook/outbox"
)

// TestSinceIsTheEarliestCursor: a replica whose events begin there misses nothing of any shard.
func TestSinceIsTheEarliestCursor(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		client := w.Connect(nil)
		defer client.Close()
		for shard, after := range []string{"70-1", "50-2", "90-1"} {
			key := store.RecordKey{
				Kind: "webhook-cursor", Tenant: store.NoTenant, ID: fmt.Sprint("webhooks:", shard),
			}
			value := fmt.Appendf(nil, `{"after":%q}`, after)
			if _, err := client.Records().Put(
				t.Context(), store.RecordPut{RecordKey: key, Value: value},
			); err != nil {
				t.Fatal(err)
			}
		}
		if n, err := outbox.Since(t.Context(), client.Records()); n != 49 || err != nil {
			t.Errorf("events begin at %d, %v; want 49", n, err)
		}
	})
}

// TestCatchUpIsKeptBeforeItIsDone: an owner that dies after it learned of a subscription, and
// before what it missed is delivered or written, leaves that to the next one.
func TestCatchUpIsKeptBeforeItIsDone(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		one, _ := warm(t, w)
		two := second(t, w)
		one.own.setBlind(true)
		w.subscribe("acme", there, "*")
		two.cycle("acme", "orders:1")
		<-time.After(10 * time.Second) // until the cursor is past it
		w.setBehave(failed)
		one.own.refuse("webhook-owed-")
		one.own.setBlind(false)
		<-time.After(20 * time.Second) // states are written
		one.kill()
		w.setBehave(nil)
		w.join("two")
		w.untilTold(10*time.Minute, there, "orders:1", 2)
	})
}

// TestCallbacksOfOneWrite: entries of different locks that are written together share their number.
// Each gets its callback, under an id of its own, also where the owner dies before it has sent
// them.
func TestCallbacksOfOneWrite(t *testing.T) {
	for _, dies := range []bool{false, true} {
		t.Run(fmt.Sprint("dies ", dies), func(t *testing.T) {
			run(t, func(t *testing.T, w *world) {
				one := callable(t, w)
				two := second(t, w)
				const entries = 50
				granted := make(chan *service.Grant, entries)
				for i := range entries {
					go func() { granted <- w.async(two, fmt.Sprint("batch:", i), time.Hour) }()
				}
				numbers := map[uint64]bool{}
				for range entries {
					numbers[(<-granted).Entry.Number] = true
				}
				if len(numbers) == entries {
					t.Error("no two share a number")
				}
				if dies {
					one.kill()
					w.join("two")
				}
				ids := map[string]lock.ID{}
				poll.Within(t, 19*time.Second, "all are called back", func() bool {
					for _, got := range w.received(there) {
						ids[got.id] = lock.ID(got.event.Data.Entry.ID)
					}
					return len(ids) == entries
				})
			})
		})
	}
}

// TestUnreadableIsMissed: a delivery in the store that cannot be read counts as missed, and its
// record goes.
func TestUnreadableIsMissed(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		one, s := warm(t, w)
		two := second(t, w)
		two.cycle("acme", "seen-by-both")
		<-time.After(5 * time.Second) // until the cursor is past it
		one.kill()
		client := w.Connect(nil)
		defer client.Close()
		shard := outbox.ShardOf(s.ID)
		key := store.RecordKey{
			Kind: "webhook-owed-" + shard[len(shard)-1:], Tenant: "acme", ID: s.ID + ":105-1",
		}
		if _, err := client.Records().Put(
			t.Context(), store.RecordPut{RecordKey: key, Value: []byte(`{"id":`)},
		); err != nil {
			t.Fatal(err)
		}
		w.join("two")
		poll.Within(t, time.Minute, "the receiver gets it", func() bool {
			return slices.ContainsFunc(w.received(here), func(got received) bool {
				return got.event.Data.Reason == "unreadable" && got.event.Data.Before == "105-1"
			})
		})
		w.untilNoneLeft(time.Minute)
		two.cycle("acme", "orders:1")
		w.untilTold(2*time.Second, here, "orders:1", 2)
	})
}

// TestUnreadableCallbackIsMadeAgain: a callback whose record cannot be read is derived from its
// entry, which holds.
func TestUnreadableCallbackIsMadeAgain(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		one := callable(t, w)
		two := second(t, w)
		w.setBehave(failed)
		w.async(two, "batch:1", time.Hour)
		<-time.After(4 * time.Second) // until the delivery is written
		one.kill()
		client := w.Connect(nil)
		defer client.Close()
		shard := outbox.ShardOf("acme")
		kind, damaged := "webhook-owed-"+shard[len(shard)-1:], 0
		q := store.RecordQuery{Kind: kind}
		for r, err := range store.EachRecord(t.Context(), client.Records(), q) {
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasPrefix(r.ID, outbox.Callbacks+":") {
				continue
			}
			damaged++
			put := store.RecordPut{RecordKey: r.RecordKey, Value: []byte(`{"id":`), Version: r.Version}
			if _, err := client.Records().Put(t.Context(), put); err != nil {
				t.Fatal(err)
			}
		}
		w.setBehave(nil)
		w.join("two")
		poll.Within(t, 2*time.Minute, "it is called back", func() bool {
			return len(w.received(there)) > 0
		})
		w.untilNoneLeft(time.Minute)
		if damaged != 1 {
			t.Errorf("%d callbacks were in the store", damaged)
		}
	})
}

// TestGapCallsBackTheHolders: a grant that the owner's feed has missed is called back, because its
// entry holds.
func TestGapCallsBackTheHolders(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		one := callable(t, w)
		two := second(t, w)
		one.cable.Cut(memory.Silent)
		w.async(two, "batch:1", time.Hour)
		two.cycle("acme", "orders:1")
		w.Compact()
		<-time.After(2 * time.Second) // shorter than the lease of the shard
		one.cable.Cut("")
		w.untilTold(time.Minute, there, "batch:1", 1)
		if one.sent == 0 {
			t.Error("another replica has sent it")
		}
	})
}
