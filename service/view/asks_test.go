package view_test

import (
	"testing"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service/view"
	"github.com/fencepost/fencepost/store"
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
