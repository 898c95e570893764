package outbox_test

import (
	"testing"
	"time"

	"github.com/fencepost/fencepost/api"
	"github.com/fencepost/fencepost/store/memory"
	"github.com/fencepost/fencepost/test/poll"
)

// TestOldOwnerComesBack: an owner that was cut off while another took its shard, and reconnects,
// writes nothing into the store before it learns of that, and reports no gap that only it
// has.
func TestOldOwnerComesBack(t *testing.T) {
	for name, c := range map[string]struct {
		away   func(w *world, two *replica)
		cannot string // the kinds that it could not write before
	}{
		"to a gap": {func(w *world, two *replica) {
			two.cycle("acme", "orders:2")
			<-time.After(time.Second) // which the other one has read
			w.Compact()
		}, "none"},
		"with what it could not keep": {func(*world, *replica) {}, "webhook-owed-"},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, func(t *testing.T, w *world) {
				one, _ := warm(t, w)
				two := second(t, w)
				one.own.refuse(c.cannot)
				w.setBehave(failed)
				two.cycle("acme", "orders:1")
				<-time.After(4 * time.Second)
				w.isolate(one)
				w.untilTold(10*time.Minute, here, "orders:1", 2)
				w.untilNoneLeft(time.Minute)
				c.away(w, two)
				<-time.After(5 * time.Second)
				one.own.refuse("")
				one.cable.Cut("")
				<-time.After(20 * time.Second)
				if left := w.left(); len(left) > 0 {
					t.Errorf("kept: %v", left)
				}
				for _, got := range w.received(here) {
					if got.event.Type == api.EventsMissed {
						t.Errorf("it is told to miss %+v", got.event.Data)
					}
				}
				two.own.wantNoneRefused(t)
			})
		})
	}
}

// TestOldOwnerWritesNothingThatWaited: what waited for a free call while its owner was cut off is
// not written when the owner is reached again and does not know yet that another one has the shard.
func TestOldOwnerWritesNothingThatWaited(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		one, _ := warm(t, w)
		two := second(t, w)
		one.own.slow("webhook-owed-", 4*time.Second, 0)
		w.setBehave(failed)
		for range 40 {
			two.cycle("acme", "orders:1")
		}
		<-time.After(time.Second)
		w.isolate(one)
		w.untilTold(10*time.Minute, here, "orders:1", 80)
		w.untilNoneLeft(time.Minute)
		one.own.slow("webhook-owed-", 0, 0)
		one.cable.Cut("")
		<-time.After(20 * time.Second)
		if left := w.left(); len(left) > 0 {
			t.Errorf("kept: %v", left)
		}
	})
}

// TestOldOwnerBegins: who got a shard's lock, was cut off before it could begin, and lost it, does
// not begin when it is reached again.
func TestOldOwnerBegins(t *testing.T) {
	for i := range 8 { // whether it learns of that before it begins is left to chance
		oldOwnerBegins(t, time.Duration(i)*500*time.Millisecond)
	}
}

func oldOwnerBegins(t *testing.T, more time.Duration) {
	t.Helper()
	run(t, func(t *testing.T, w *world) {
		one, _ := warm(t, w)
		two := second(t, w)
		late := w.replica("late")
		late.own.refuse("webhook-cursor")
		w.leave("one")
		<-time.After(10 * time.Second)
		one.stop()
		w.isolate(late)
		poll.Within(t, time.Minute, "the other one tells", func() bool {
			two.cycle("acme", "orders:1")
			return len(kindsOf(w.received(here), "orders:1")) > 0
		})
		<-time.After(more)
		late.own.refuse("")
		late.cable.Cut("")
		for range 100 {
			two.cycle("acme", "orders:2")
			<-time.After(100 * time.Millisecond)
		}
		two.own.wantNoneRefused(t)
	})
}

// isolate cuts a replica off that goes on believing that it is to send, and has another one take
// over.
func (w *world) isolate(one *replica) {
	one.cable.Cut(memory.Silent)
	w.mu.Lock()
	w.stuck = one.name
	w.mu.Unlock()
	w.leave(one.name)
	w.join("two")
	<-time.After(5 * time.Second) // until a second attempt of what failed
	w.setBehave(nil)
	<-time.After(10 * time.Second)
}

// wantNoneRefused checks that no other replica has written what this one writes.
func (s *slowRecords) wantNoneRefused(t *testing.T) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refused > 0 {
		t.Errorf("%d writes met another one's", s.refused)
	}
}
