package service_test

import (
	"context"
	"testing"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/test/bubble"
)

// TestReasonsAreWaitedFor: a replica that has just started tells why an entry ended
// before, although it learns the reasons a moment after the entries; if they do not
// come it says soon that it does not know.
func TestReasonsAreWaitedFor(t *testing.T) {
	for name, c := range map[string]struct {
		late time.Duration
		want lock.Reason
	}{
		"a moment": {300 * time.Millisecond, lock.Released},
		"for long": {time.Minute, lock.Unknown},
	} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				s := newSharedStore(t)
				before := s.replica(t)
				g := before.hold(want("a", 0))
				before.release(g)
				after := s.replica(t, func(cfg *service.Config) { cfg.Store = lateReasons{cfg.Store, c.late} })
				began := time.Now()
				lostFor(t, after.Release(t.Context(), by(g)), c.want)
				took(t, began, min(c.late, time.Second))
			})
		})
	}
}

// TestWaiterLearnsTheReason: a request whose entry ended while the feed was interrupted
// waits for the reasons too, which come after the entries.
func TestWaiterLearnsTheReason(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		a, b := s.replica(t), s.replica(
			t, func(cfg *service.Config) { cfg.Store = lateReasons{cfg.Store, 300 * time.Millisecond} },
		)
		after(time.Second) // the reasons of the first list have come
		a.hold(want("a", 0))
		p := b.line(want("a", time.Minute))
		b.store.setFeed(lost)
		if err := s.end(p.entry(s, 1), lock.Revoked); err != nil {
			t.Fatal(err)
		}
		p.waits()
		b.store.setFeed(running)
		after(400 * time.Millisecond)
		p.ends(lock.Revoked)
	})
}

// lateReasons is a store whose feed recalls what ended before a while after its list.
type lateReasons struct {
	store.Store
	late time.Duration
}

func (s lateReasons) Watch(ctx context.Context, f store.Watcher) {
	s.Store.Watch(ctx, recallsLate{f, s.late})
}

type recallsLate struct {
	store.Watcher
	late time.Duration
}

func (r recallsLate) Recall(ends []store.Ended, complete bool) {
	time.AfterFunc(r.late, func() { r.Watcher.Recall(ends, complete) })
}
