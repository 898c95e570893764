package outbox_test

import (
	"slices"
	"testing"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/test/poll"
	"github.com/fencepost/fencepost/webhook"
)

// TestBacklogIsTold: a delivery stays in the backlog until its receiver accepts it, and the
// metrics count the outcome of each attempt.
func TestBacklogIsTold(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		r := w.replica("a")
		w.subscribe("acme", "https://bad.example/", "*", lock.EventAcquired)
		w.setBehave(func(string, webhook.Message) webhook.Result { return failed("", webhook.Message{}) })
		r.cycle("acme", "orders:1")
		r.cycle("acme", "orders:2")
		poll.Within(
			t, time.Minute, "both are in the backlog", func() bool { return r.backlog().Deliveries == 2 },
		)
		w.setBehave(nil)
		poll.Within(t, time.Hour, "nothing is left", func() bool { return r.backlog().Deliveries == 0 })
		w.mu.Lock()
		outcomes := slices.Clone(w.outcomes)
		w.mu.Unlock()
		slices.Sort(outcomes)
		if counted := slices.Compact(outcomes); !slices.Equal(counted, []string{"delivered", "failed"}) {
			t.Errorf("told: %q", counted)
		}
		w.setBehave(func(string, webhook.Message) webhook.Result { return failed("", webhook.Message{}) })
		r.cycle("acme", "orders:3")
		poll.Within(t, time.Minute, "it is in the backlog", func() bool {
			return r.backlog().Deliveries == 1
		})
		r.stop()
		if b := r.backlog(); b.Deliveries != 0 {
			t.Errorf("who sends nothing any more has %d to send", b.Deliveries)
		}
	})
}
