package outbox_test

import (
	"strings"
	"testing"
	"time"

	"github.com/fencepost/fencepost/store"
)

// TestKeptLate: what the owner before kept, and the store executed only when the next one had read what there
// is, is not left for the one after that: days later, when everybody has long dealt with it.
func TestKeptLate(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		one, _ := warm(t, w)
		two := second(t, w)
		one.own.refuse("webhook-cursor")
		w.setBehave(failed)
		two.take("acme", "orders:1")
		until(t, 4*time.Second, "it is kept", func() bool { return len(w.left()) == 1 })
		one.kill()
		late := w.takeOwed() // as if it was still under way
		w.setBehave(nil)
		w.join("two")
		until(t, time.Minute, "it is told", func() bool { return acquired(w) == 1 })
		client := w.Connect(nil)
		defer client.Close()
		if _, err := client.Records().Put(t.Context(), store.RecordPut{RecordKey: late.RecordKey, Value: late.Value}); err != nil {
			t.Fatal(err)
		}
		until(t, 2*time.Minute, "nothing is kept", func() bool { return len(w.left()) == 0 })
		two.own.wantNoneRefused(t)
		if n := acquired(w); n > 2 {
			t.Errorf("it is told %d times", n)
		}
	})
}

// takeOwed takes the one delivery away that is kept.
func (w *world) takeOwed() store.Record {
	w.t.Helper()
	client := w.Connect(nil)
	defer client.Close()
	for _, kind := range strings.Fields("0 1 2 3 4 5 6 7") {
		page, err := client.Records().List(w.t.Context(), store.RecordQuery{Kind: "webhook-owed-" + kind})
		if err != nil {
			w.t.Fatal(err)
		}
		for _, r := range page.Records {
			if err := client.Records().Delete(w.t.Context(), r.RecordKey, r.Version); err != nil {
				w.t.Fatal(err)
			}
			return r
		}
	}
	w.t.Fatal("nothing is kept")
	return store.Record{}
}
