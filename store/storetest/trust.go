package storetest

import (
	"errors"
	"math"
	"sync"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
)

func trustCases() []testCase {
	return []testCase{
		{name: "trust/a store that went back is noticed", run: wentBack, needs: backup},
		{name: "trust/a floor binds all at once", run: floorBinds, needs: floors},
		{name: "trust/of two floors the higher one stays", run: floorsRace, needs: floors},
		{
			name: "trust/a floor that a client does not know yet is no lost past", run: floorUnknown,
			needs: floors,
		},
		{name: "trust/feeds add the floor to what was there before", run: floorListed, needs: floors},
		{name: "trust/a floor that cannot be right is refused", run: floorRefused, needs: floors},
	}
}

// floorBinds lets clients that have run before a floor was given, and follow nothing,
// write after it.
func floorBinds(t *trial) {
	first := t.enqueue(t.A, t.draft("a"))
	t.remove(t.A, first, lock.Released)
	floor := first.Number + 1_000_000
	last := t.enqueue(t.openFloor(floor), t.draft("a"))
	if last.Number <= floor {
		t.Fatalf("fence %d with the fence floor %d", last.Number, floor)
	}
	t.remove(t.Reopen(t.T), last, lock.Released)
	for i := range 10 {
		e := t.enqueue(t.client(i), t.draft("a"))
		if e.Number <= last.Number {
			t.Fatalf("fence %d of a lock after %d", e.Number, last.Number)
		}
		t.remove(t.client(i), e, lock.Released)
		last = e
	}
}

func (t *trial) openFloor(floor uint64) store.Store {
	t.Helper()
	s, err := t.OpenFloor(t.T, floor)
	if err != nil {
		t.Fatalf("Open with the fence floor %d: %v", floor, err)
	}
	return s
}

// floorsRace starts two clients with different floors at one moment. The lower one may
// be refused, but it must not win.
func floorsRace(t *trial) {
	for i := range uint64(10) {
		floor := (i + 1) * 1_000_000
		var both sync.WaitGroup
		var high *lock.Entry
		both.Go(func() {
			if s, err := t.OpenFloor(t.T, floor+500_000); err != nil {
				t.Errorf("Open with the higher floor: %v", err)
			} else if high, _, err = s.Enqueue(t.ctx, t.draft("a")); err != nil {
				t.Errorf("Enqueue with the higher floor: %v", err)
			}
		})
		both.Go(func() { _, _ = t.OpenFloor(t.T, floor) })
		both.Wait()
		if t.Failed() {
			return
		}
		if after := t.enqueue(t.Reopen(t.T), t.draft("a")); after.Number <= high.Number {
			t.Fatalf("fence %d after %d", after.Number, high.Number)
		}
	}
}

// floorUnknown shows a client, which follows nothing, a number that another one was
// given after a floor was.
func floorUnknown(t *trial) {
	t.enqueue(t.A, t.draft("a"))
	raised := t.openFloor(1 << 40)
	newest := t.enqueue(raised, t.draft("a"))
	if err := t.A.Distrust(t.ctx, newest.Number); err != nil {
		t.Fatalf("Distrust: %v", err)
	}
	for _, s := range []store.Store{t.A, t.B, raised, t.Reopen(t.T)} {
		if e := t.enqueue(s, t.draft("b")); e.Number <= newest.Number {
			t.Errorf("fence %d after %d", e.Number, newest.Number)
		}
	}
}

// floorListed looks at an entry from before a floor was given, in a feed that ran then
// and in those that begin afterwards.
func floorListed(t *trial) {
	feeds := []*feed{t.follow(t.A)}
	before := t.enqueue(t.A, t.draft("a"))
	raised := t.openFloor(1 << 40)
	want := t.queue(raised, t.ref("a"))
	if len(want) != 1 || want[0].Number != before.Number+1<<40 {
		t.Fatalf("the queue is %v, want %s with number %d", want, before.ID, before.Number+1<<40)
	}
	feeds = append(feeds, t.follow(raised), t.follow(t.Reopen(t.T)))
	for i, f := range feeds {
		t.eventually(4*t.CallLimit, "the feed has the number with the floor", func() bool {
			queue := f.state().queues[t.ref("a")]
			if i > 0 && (len(queue) != 1 || queue[0].Entry.Number != want[0].Number) {
				t.Fatalf("feed %d begins with %v", i, queue)
			}
			return len(queue) == 1 && queue[0].Entry.Number == want[0].Number
		})
	}
}

func floorRefused(t *trial) {
	for _, floor := range []uint64{1 << 53, 1<<53 - 1000, math.MaxUint64, math.MaxUint64 - 1<<40} {
		if _, err := t.OpenFloor(t.T, floor); err == nil {
			t.Errorf("Open with the fence floor %d succeeds", floor)
		}
	}
	const floor = 1 << 40
	t.openFloor(floor)
	if _, err := t.OpenFloor(t.T, floor-1); err == nil {
		t.Error("Open with a floor below the one that was given succeeds")
	}
	if e := t.enqueue(t.A, t.draft("a")); e.Number <= floor || e.Number >= 1<<52 {
		t.Errorf("fence %d with the fence floor %d", e.Number, uint64(floor))
	}
}

// wentBack puts an older copy of its data under a store while a client runs. No request
// shows a token: the client finds out by what it has seen itself.
func wentBack(t *trial) {
	t.remove(t.A, t.enqueue(t.A, t.draft("a")), lock.Released)
	follower := t.follow(t.A)
	restore := t.Backup(t.T)
	var last uint64
	t.eventually(longTTL, "the store is there again", func() bool {
		e, _, err := t.A.Enqueue(t.ctx, t.draft("a"))
		if err == nil {
			last = e.Number
		}
		return err == nil
	})
	for range 30 {
		last = t.enqueue(t.A, t.draft("b")).Number
	}
	if !follower.await(longTTL, func() bool { return follower.current }) {
		t.Fatal("the feed is not there again")
	}
	follower.mu.Lock()
	follower.goesBack = true
	follower.mu.Unlock()
	restore(t.T)
	t.eventually(longTTL, "a client that starts later refuses", func() bool {
		if e, _, err := t.A.Enqueue(t.ctx, t.draft("c")); err == nil && e.Number <= last {
			t.Fatalf("fence %d was handed out after %d", e.Number, last)
		}
		s, err := t.OpenFloor(t.T, 0)
		if err != nil {
			return false // the store is not there again
		}
		_, _, err = s.Enqueue(t.ctx, t.draft("d"))
		var refusal *lock.Error
		return errors.As(err, &refusal) && refusal.Code == lock.FenceFloorRequired &&
			!refusal.OutcomeUnknown
	})
	t.wantRefusal(t.A)
	if e := t.enqueue(t.openFloor(last), t.draft("e")); e.Number <= last {
		t.Errorf("fence %d with the fence floor %d", e.Number, last)
	}
	t.eventually(longTTL, "the client that has noticed it grants again", func() bool {
		e, _, err := t.A.Enqueue(t.ctx, t.draft("f"))
		if err == nil && e.Number <= last {
			t.Errorf("fence %d after %d", e.Number, last)
		}
		return err == nil && t.A.Refusal() == nil
	})
}
