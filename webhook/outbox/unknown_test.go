package outbox_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/fencepost/fencepost/test/poll"
)

// TestOwnWriteAfterAll: a write whose answer was lost, and that was made nonetheless, is this
// owner's, also when what it writes next is something else. It keeps the shard.
func TestOwnWriteAfterAll(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		r, s := warm(t, w)
		before := w.fenceOf(s.ID)
		w.setBehave(failed)
		r.own.loseAnswers(6 * time.Second)
		r.take("acme", "orders:1")
		<-time.After(30 * time.Second)
		r.own.loseAnswers(0)
		w.setBehave(nil)
		poll.Within(t, time.Hour, "the receiver gets it", func() bool { return acquired(w) == 1 })
		w.untilNoneLeft(time.Minute)
		if after := w.fenceOf(s.ID); after != before {
			t.Errorf("the shard was owned under fence %d, and is under %d", before, after)
		}
	})
}

// fenceOf is the fence under which the shard of a subscription is owned.
func (w *world) fenceOf(id string) uint64 {
	w.t.Helper()
	client := w.Connect(nil)
	defer client.Close()
	r, err := client.Records().Get(w.t.Context(), cursorKey(id))
	if err != nil {
		w.t.Fatal(err)
	}
	var f struct{ Fence uint64 }
	if err := json.Unmarshal(r.Value, &f); err != nil {
		w.t.Fatal(err)
	}
	return f.Fence
}
