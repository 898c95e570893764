package outbox_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/fencepost/fencepost/api"
	"github.com/fencepost/fencepost/test/poll"
	"github.com/fencepost/fencepost/webhook"
)

// TestRestored: the store is restored from a backup under a replica that sends, and given a fence
// floor. Receivers get each earlier event, or events.missed for it: also the pending ones that the
// backup lacks. No two events have one id.
func TestRestored(t *testing.T) {
	for name, behave := range map[string]struct {
		took  time.Duration
		of    func(string, webhook.Message) webhook.Result
		lasts time.Duration
	}{
		"answers": {time.Millisecond, nil, 3 * time.Second},
		"slow":    {5 * time.Second, nil, 3 * time.Second},
		"fails":   {time.Millisecond, failed, 3 * time.Second},
		// the next attempts are minutes away
		"fails for long": {time.Millisecond, failed, 20 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, func(t *testing.T, w *world) {
				r, s := warm(t, w)
				var real follower
				stop := real.follow(t, r)
				w.setBehave(behave.of)
				w.attemptsTake(behave.took)
				expires := r.takeFor("acme", "expires", 10*time.Second)
				<-time.After(5 * time.Second)
				copied := w.Checkpoint()
				for i := range 20 {
					r.cycle("acme", fmt.Sprint("orders:", i))
				}
				r.release("acme", "expires", expires)
				<-time.After(behave.lasts)
				stop()
				w.Restore(copied)
				<-time.After(20 * time.Second)
				if err := w.Raise(w.Distrusted()); err != nil {
					t.Fatal(err)
				}
				w.setBehave(nil)
				w.attemptsTake(time.Millisecond)
				poll.Within(t, time.Minute, "it is told on", func() bool {
					_, err := r.Acquire(t.Context(), acquire("acme", "after", time.Second))
					return err == nil && len(kindsOf(w.received(here), "after")) > 0
				})
				w.untilNoneLeft(40 * time.Hour)
				w.wantTold(here, s.From, real.seen)
				w.wantOneOfEachID(here)
			})
		})
	}
}

// wantOneOfEachID checks that no id was given to two messages, and that gaps end behind where they
// begin.
func (w *world) wantOneOfEachID(url string) {
	w.t.Helper()
	seen := map[string]string{}
	for _, one := range w.received(url) {
		what := fmt.Sprint(one.event.Type, " ", one.event.Data.Lock)
		if was, ok := seen[one.id]; ok && was != what {
			w.t.Errorf("%s is %s, and was %s", one.id, what, was)
		}
		seen[one.id] = what
		if one.event.Type == api.EventsMissed &&
			parse(w.t, one.event.Data.After).Compare(parse(w.t, one.event.Data.Before)) > 0 {
			w.t.Errorf("a gap is told from %s to %s", one.event.Data.After, one.event.Data.Before)
		}
	}
}
