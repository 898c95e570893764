package view_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service/view"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/test/bubble"
)

// TestAskAgain: an entry that asked when it joined, and again later, has asked once, also for
// a replica that lists.
func TestAskAgain(t *testing.T) {
	v, l := listener(t)
	v.Reset(store.Snapshot{Number: 1})
	now := time.Now().UTC().Truncate(time.Millisecond)
	entry := func(number uint64) *lock.Entry {
		return &lock.Entry{
			ID: view.NumberedID(number), Tenant: "acme", Number: number, Holder: "w", TTL: time.Minute, EnqueuedAt: now, WaitUntil: now.Add(time.Hour),
			Claims: []lock.Claim{{Name: "a", Mode: lock.Exclusive}}, AskWithin: new(time.Duration),
		}
	}
	holds, waits := entry(2), entry(3)
	n := lock.NoticeOfAsk(waits, lock.Ask{Since: now.Add(time.Minute), Within: time.Hour})
	n.Number = 4
	v.Apply(4, []store.Change{{Number: 2, Joined: holds}, {Number: 3, Joined: waits}, {Number: 4, Notice: n}})
	listed, _ := listener(t)
	listed.Reset(store.Snapshot{Number: 4, Entries: []*lock.Entry{holds, waits}, Notices: []*lock.Notice{n}})
	want := view.Asked{Since: now, By: "w", Waiting: 1, Wished: now}
	for _, v := range []*view.View{v, listed} {
		if got := v.AskedOf(holds); got == nil || *got != want {
			t.Errorf("the holder is told %+v, want %+v", got, want)
		}
	}
	if got := v.AskedOf(waits); got != nil {
		t.Errorf("one that the view has wait is told of itself: %+v", got)
	}
	if got := l.last.String(); got != "3-2" {
		t.Errorf("the last event is %s, want 3-2: it asked when it joined", got)
	}
}

// TestAskEnds: an entry asks for as long as it waits, and counts for the bound of those who
// ask for no longer, also for a replica that lists.
func TestAskEnds(t *testing.T) {
	v := empty()
	v.Reset(store.Snapshot{Number: 1})
	now := time.Now().UTC()
	entry := func(n uint64, name string) *lock.Entry {
		return &lock.Entry{
			ID: view.NumberedID(n), Tenant: "acme", Number: n, TTL: time.Minute, EnqueuedAt: now, WaitUntil: now.Add(time.Hour),
			Claims: []lock.Claim{{Name: name, Mode: lock.Semaphore, Limit: view.MaxAsksPerLock}}, AskWithin: new(time.Duration),
		}
	}
	number, all := uint64(1), []*lock.Entry{}
	join := func() {
		number++
		all = append(all, entry(number, "a"))
		v.Apply(number, []store.Change{{Number: number, Joined: all[len(all)-1]}})
	}
	for range 2 * view.MaxAsksPerLock {
		join()
	}
	holds, waits := all[:view.MaxAsksPerLock], all[view.MaxAsksPerLock:]
	next := entry(9999, "a")
	if v.RoomToAsk(next) == nil {
		t.Error("there is room for more than the bound")
	}
	for i, e := range holds {
		number++
		v.Apply(number, []store.Change{{Number: number, Left: e.ID, Reason: lock.Released}})
		if v.Asks(waits[i].ID) {
			t.Fatalf("%d asks still, and holds", i)
		}
		if err := v.RoomToAsk(next); err != nil {
			t.Fatalf("when %d hold that asked: %v", i+1, err)
		}
	}
	v.Reset(store.Snapshot{Number: number, Entries: waits})
	if v.Asks(waits[0].ID) || v.RoomToAsk(next) != nil {
		t.Error("after a list those who hold ask")
	}
}

// TestAsksOfTenant: what one tenant's entries ask is bounded, over all locks, and counted anew
// by a replica that lists.
func TestAsksOfTenant(t *testing.T) {
	v := empty()
	now := time.Now().UTC()
	entry := func(n uint64) *lock.Entry {
		name := fmt.Sprint("l", n/(view.MaxAsksPerLock+1))
		return &lock.Entry{
			ID: view.NumberedID(n), Tenant: "acme", Number: n + 1, TTL: time.Minute, EnqueuedAt: now, WaitUntil: now.Add(time.Hour),
			Claims: []lock.Claim{{Name: name, Mode: lock.Exclusive}}, AskWithin: new(time.Duration),
		}
	}
	var all []*lock.Entry
	for n := range uint64(view.MaxAsksPerTenant / view.MaxAsksPerLock * (view.MaxAsksPerLock + 1)) {
		all = append(all, entry(n))
	}
	few := all[:len(all)-1]
	next := entry(1 << 30)
	v.Reset(store.Snapshot{Number: uint64(len(few)), Entries: few})
	if err := v.RoomToAsk(next); err != nil {
		t.Fatalf("with one less than the bound: %v", err)
	}
	last := all[len(all)-1]
	v.Apply(last.Number, []store.Change{{Number: last.Number, Joined: last}})
	if v.RoomToAsk(next) == nil {
		t.Error("there is room for more than the bound")
	}
	v.Apply(last.Number+1, []store.Change{{Number: last.Number + 1, Left: last.ID, Reason: lock.Released}})
	if err := v.RoomToAsk(next); err != nil {
		t.Errorf("one has left: %v", err)
	}
	v.Reset(store.Snapshot{Number: last.Number + 1, Entries: few})
	if err := v.RoomToAsk(next); err != nil {
		t.Errorf("after another list: %v", err)
	}
}

// TestLetAsk: who was let ask counts until the view has him, for a minute at most, or until it is
// clear that he does not.
func TestLetAsk(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		v := empty()
		v.Reset(store.Snapshot{Number: 1})
		now := time.Now().UTC()
		entry := func(n uint64) *lock.Entry {
			return &lock.Entry{
				ID: view.NumberedID(n), Tenant: "acme", Number: n, TTL: time.Minute, EnqueuedAt: now, WaitUntil: now.Add(time.Hour),
				Claims: []lock.Claim{{Name: "a", Mode: lock.Exclusive}}, AskWithin: new(time.Duration),
			}
		}
		wantRoom := func(when string, want int) {
			t.Helper()
			got := 0
			for n := uint64(10_000); v.LetAsk(entry(n)) == nil; n++ {
				got++
			}
			for n := range uint64(got) {
				v.DropAsk(entry(10_000 + n).ID)
			}
			if got != want {
				t.Errorf("%s there is room for %d, want %d", when, got, want)
			}
		}
		let := func(n uint64) {
			t.Helper()
			for range 2 { // a retry counts once
				if err := v.LetAsk(entry(n)); err != nil {
					t.Fatal(err)
				}
			}
		}
		wantRoom("at first", view.MaxAsksPerLock)
		for n := range uint64(10) {
			let(n + 2)
		}
		wantRoom("with ten on their way", view.MaxAsksPerLock-10)
		v.Apply(2, []store.Change{{Number: 2, Joined: entry(2)}})
		wantRoom("when one holds", view.MaxAsksPerLock-9)
		v.Apply(3, []store.Change{{Number: 3, Joined: entry(3)}})
		wantRoom("when another one waits", view.MaxAsksPerLock-9)
		v.Apply(12, []store.Change{{Number: 12, Left: entry(3).ID, Reason: lock.Released}})
		wantRoom("when that is gone", view.MaxAsksPerLock-8)
		later := entry(13)
		later.AskWithin = nil
		v.Apply(13, []store.Change{{Number: 13, Joined: later}})
		let(13)
		wantRoom("when one who waits was let ask later", view.MaxAsksPerLock-9)
		v.Apply(14, []store.Change{{Number: 14, Left: later.ID, Reason: lock.Released}})
		wantRoom("when he is gone", view.MaxAsksPerLock-8)
		v.Reset(store.Snapshot{Number: 15, Entries: []*lock.Entry{entry(2), entry(4)}})
		wantRoom("after a list", view.MaxAsksPerLock-8)
		<-time.After(2 * time.Minute)
		wantRoom("after two minutes", view.MaxAsksPerLock-1)
	})
}
